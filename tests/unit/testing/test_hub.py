"""The loopback Hub: what its client relies on, and what a real Hub refuses."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from fabula.testing.hub import TOKEN, WRITES, CutUpload, HubServer, Refused

REPO = "user/mine"
DATA = {"repo_id": REPO, "repo_type": "dataset"}

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with HubServer(page=2, log_path=tmp_path / "log.jsonl") as server:
        yield server


@pytest.fixture
def api(hub: HubServer) -> HfApi:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo(**DATA)
    return api


def commit(api: HfApi, *operations: object, **more: object) -> str:
    return str(api.create_commit(**DATA, operations=operations, commit_message="x", **more).oid)


def test_space_when_it_is_there_is_kept_whatever_kind_is_asked_for(api: HfApi) -> None:
    space = {"repo_id": "user/board", "repo_type": "space"}
    api.create_repo(**space, space_sdk="static")
    api.create_repo(**space, space_sdk="gradio", exist_ok=True)  # as `hf upload` does
    with pytest.raises(HfHubHTTPError, match="static Spaces only"):
        api.create_repo("user/other", repo_type="space", space_sdk="gradio")


def test_listing_when_longer_than_a_page_is_whole(api: HfApi) -> None:
    names = [f"folder/{number}.txt" for number in range(7)]
    commit(api, *(CommitOperationAdd(name, name.encode()) for name in names))
    listed = [one.path for one in api.list_repo_tree(**DATA, recursive=True)]
    assert sorted(listed) == sorted([".gitattributes", "folder", *names])
    assert [one.path for one in api.list_repo_tree(**DATA)] == [".gitattributes", "folder"]


def test_commit_when_parent_is_not_the_head_is_refused_and_changes_nothing(
    hub: HubServer, api: HfApi
) -> None:
    first = hub.repository(REPO).branches["main"]
    commit(api, CommitOperationAdd("a.txt", b"a"), parent_commit=first)
    with pytest.raises(HfHubHTTPError) as caught:
        commit(api, CommitOperationAdd("b.txt", b"b"), parent_commit=first)
    assert caught.value.response.status_code == 412
    assert "b.txt" not in hub.files(REPO)


def test_commit_when_one_operation_is_wrong_changes_nothing(hub: HubServer, api: HfApi) -> None:
    with pytest.raises(HfHubHTTPError):
        commit(api, CommitOperationAdd("a.txt", b"a"), CommitOperationDelete("not-there.txt"))
    assert list(hub.files(REPO)) == [".gitattributes"]


def test_large_files_when_uploaded_twice_are_kept_once(hub: HubServer, api: HfApi) -> None:
    commit(api, CommitOperationAdd("a.parquet", b"PAR1" * 10), CommitOperationAdd("b.parquet", b"PAR1" * 10))
    assert len(hub.store.objects) == 1
    entry = hub.repository(REPO).commit_of("main").tree["a.parquet"]
    assert entry.size == 40
    assert entry.pointer_size > 100


def test_large_files_when_larger_than_a_part_come_in_parts_and_again_after_a_cut(
    hub: HubServer, api: HfApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    hub.service.large.size = 16
    hub.faults = {"lfs-part": [None, CutUpload(4)]}
    commit(api, CommitOperationAdd("a.parquet", b"PAR1" * 10))
    assert hub.asked("lfs-part", "lfs-complete") == ["lfs-part"] * 4 + ["lfs-complete"]
    assert hub.files(REPO)["a.parquet"] == b"PAR1" * 10


def test_tag_when_there_is_refused(api: HfApi) -> None:
    api.create_tag(**DATA, tag="1.0")
    with pytest.raises(HfHubHTTPError) as caught:
        api.create_tag(**DATA, tag="1.0")
    assert caught.value.response.status_code == 409
    api.delete_tag(**DATA, tag="1.0")
    assert api.list_repo_refs(**DATA).tags == []


def test_strangers_when_asking_see_public_and_no_private_repositories(hub: HubServer, api: HfApi) -> None:
    stranger = HfApi(endpoint=hub.url, token="hf_wrong")
    assert stranger.dataset_info(REPO).id == REPO
    api.create_repo("user/secret", repo_type="dataset", private=True)
    with pytest.raises(RepositoryNotFoundError):
        stranger.dataset_info("user/secret")
    with pytest.raises(RevisionNotFoundError):
        api.dataset_info(REPO, revision="9.9.9")


def test_log_when_requests_came_tells_routes_and_no_token(hub: HubServer, api: HfApi, tmp_path: Path) -> None:
    hub.faults = {"tag": [Refused(500)]}
    with pytest.raises(HfHubHTTPError):
        api.create_tag(**DATA, tag="1.0")
    assert [(one.route, one.status, one.fault) for one in hub.log] == [
        ("create-repo", 200, None),
        ("tag", 500, "Refused"),
    ]
    assert hub.asked(*WRITES) == ["create-repo", "tag"]
    text = (tmp_path / "log.jsonl").read_text("utf-8")
    assert TOKEN not in text
    assert [json.loads(line)["route"] for line in text.splitlines()] == ["create-repo", "tag"]
