"""Fetching: every byte checked, by tag or commit, offline afterwards."""

import errno
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import ConfigError, HubUnavailable, InputError, TargetError
from fabula.kinds.verbs import load, publish, verify
from fabula.releases.hub.fetch import (
    FetchOptions,
    StreamedRelease,
    fetch,
    fetch_repository,
    open_source,
    release_folder,
)
from fabula.releases.pack.packing import PackResult
from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.paths import CARD, RELEASE, SUMS
from fabula.testing.hub import TOKEN, CutUpload, HtmlPage, LostReply, Refused, Tampered
from fabula.testing.sample_history import command

REPO = "user/fables"
Versions = tuple[PackResult, PackResult]


@pytest.fixture
def published(client: Any, contents: Any, versions: Versions) -> Any:
    """The client, with the first version on the Hub as publishing puts it there."""
    commit = client.hub.put(REPO, contents(versions[0].folder))
    client.hub.repository(REPO).tags["0.1.0"] = commit
    return client


def test_fetching_when_version_is_published_gives_it_byte_for_byte_and_once(
    published: Any, contents: Any, versions: Versions, tmp_path: Path
) -> None:
    found = fetch(f"{REPO}@0.1.0", tmp_path / "dist", published.source)
    assert found.folder == tmp_path / "dist" / "fables-0.1.0"
    assert contents(found.folder) == contents(versions[0].folder)
    assert verify(found.folder, quick=True).ok
    assert (found.version, found.cached) == ("0.1.0", False)

    published.hub.forget()
    again = fetch(f"{REPO}@0.1.0", tmp_path / "dist", published.source)
    by_commit = fetch(f"{REPO}@{found.commit}", None, published.source)
    assert again.cached and by_commit.cached
    assert contents(by_commit.folder) == contents(versions[0].folder)
    assert published.hub.log == ()


def test_fetching_when_token_is_there_does_not_send_it_to_the_storage(published: Any) -> None:
    fetch(f"{REPO}@0.1.0", None, published.source)
    users = {one.route: one.user for one in published.hub.log}
    assert users["resolve"] == "user"
    assert users["lfs-download"] is None


def test_fetching_when_tag_was_moved_afterwards_keeps_what_it_meant(published, contents, versions):
    first = fetch(f"{REPO}@0.1.0", None, published.source)
    commit = published.hub.put(REPO, {"README.md": b"other\n"})
    published.hub.repository(REPO).tags["0.1.0"] = commit
    assert fetch(f"{REPO}@0.1.0", None, published.source).commit == first.commit


def test_fetching_when_faults_pass_ends_well(published: Any, contents: Any, versions: Versions) -> None:
    published.hub.faults = {
        "refs": [Refused(429, retry_after=2)],
        "tree": [Refused(500)],
        "resolve-head": [None, Refused(503)],
        "resolve": [None, CutUpload(), LostReply(4)],
        "lfs-download": [LostReply(100), Refused(500), Tampered()],
    }
    found = fetch(f"{REPO}@0.1.0", None, published.source)
    assert contents(found.folder) == contents(versions[0].folder)
    assert len([one for one in published.hub.log if one.fault]) == 8


@pytest.mark.parametrize(
    ("path", "longer"),
    [("annotations.jsonl", False), ("data/stories/train.parquet", True), (RELEASE, False), (SUMS, True)],
)
def test_fetching_when_a_file_was_tampered_with_refuses_it(published, tmp_path, path, longer):
    stored = published.hub.files(REPO)[path]
    published.hub.tamper(REPO, path, stored + b"\n" if longer else stored[:-2] + b"!\n")
    with pytest.raises((InputError, HubUnavailable)) as caught:
        fetch(f"{REPO}@0.1.0", tmp_path / "dist", published.source)
    assert path in str(caught.value)
    assert not (tmp_path / "dist").exists()

    published.hub.tamper(REPO, path, stored)
    assert not fetch(f"{REPO}@0.1.0", None, published.source).cached


@pytest.mark.parametrize("damage", ["change", "remove", "add"])
def test_fetching_when_cache_was_tampered_with_refuses_it(published: Any, damage: str) -> None:
    folder = fetch(f"{REPO}@0.1.0", None, published.source).folder
    target = folder / ("notes.txt" if damage == "add" else "annotations.jsonl")
    if damage == "remove":
        target.unlink()
    else:
        target.write_bytes(b"{}\n")
    with pytest.raises(InputError, match=r"remove .* and fetch it again"):
        fetch(f"{REPO}@0.1.0", None, published.source)
    shutil.rmtree(folder)
    assert not fetch(f"{REPO}@0.1.0", None, published.source).cached


def test_fetching_when_stopped_halfway_goes_on_with_what_is_there(published: Any) -> None:
    published.hub.faults = {"lfs-download": Refused(403)}
    with pytest.raises(HubUnavailable):
        fetch(f"{REPO}@0.1.0", None, published.source)
    before = len(published.hub.asked("resolve"))
    published.hub.faults = {}
    published.hub.forget()
    found = fetch(f"{REPO}@0.1.0", None, published.source)
    assert len(published.hub.asked("resolve")) < before
    assert not (found.folder / ".cache").exists()


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("9.9.9", r"not a version of this repository; the versions are: 0\.1\.0"),
        ("main", "a branch, whose content can change"),
        ("f" * 40, "user/fables has no such version"),
    ],
)
def test_fetching_when_there_is_no_such_version_lists_those_there_are(published, revision, words):
    with pytest.raises(ConfigError, match=words):
        fetch(f"{REPO}@{revision}", None, published.source)


@pytest.mark.parametrize(
    "text", [REPO, f"{REPO}@", "user/a/b@0.1.0", f"{REPO}@../x", "@0.1.0", "a@b@c", f"{REPO}@a b"]
)
def test_fetching_when_reference_is_malformed_refuses_at_once(client: Any, text: str) -> None:
    with pytest.raises(ConfigError, match="REPO@VERSION"):
        fetch(text, None, client.source)
    assert client.hub.log == ()


def test_fetching_when_repository_is_no_release_says_so(client: Any) -> None:
    commit = client.hub.put("user/other", {"data.csv": b"a,b\n"})
    with pytest.raises(InputError, match="a release made by Fabula"):
        fetch(f"user/other@{commit}", None, client.source)
    found = fetch_repository(f"user/other@{commit}", client.source)
    assert (found.folder / "data.csv").read_bytes() == b"a,b\n"
    client.hub.forget()
    assert fetch_repository(f"user/other@{commit}", client.source).cached
    assert client.hub.log == ()


HOSTILE = (
    "../evil", "/etc/evil", "a/../../evil", ".git/hooks/post-checkout", "a\\b", "c:evil", "", "a//b", "a\nb",
)  # fmt: skip
ENTRY = {"bytes": 1, "sha256": "0" * 64}


@pytest.mark.parametrize("path", HOSTILE)
def test_fetching_when_release_lists_a_hostile_path_writes_nothing(client, path, tmp_path):
    document = {"kind": "katha", "version": "0.1.0", "files": {path: ENTRY}}
    commit = client.hub.put(REPO, {RELEASE: pretty_bytes(document)})
    with pytest.raises(InputError, match="plain relative paths"):
        fetch(f"{REPO}@{commit}", tmp_path / "dist", client.source)
    assert not (tmp_path / "dist").exists()
    assert not list(client.cache.rglob("*evil*"))


@pytest.mark.parametrize(
    "files",
    [
        {"a": ENTRY, "A": ENTRY}, {"a": ENTRY, "a/b": ENTRY}, {"a": {**ENTRY, "bytes": -1}},
        {"a": {**ENTRY, "sha256": "zz"}}, {"a": {**ENTRY, "bytes": True}}, {"a": None}, [], None,
    ],
)  # fmt: skip
def test_fetching_when_release_document_is_odd_refuses(client: Any, files: Any) -> None:
    commit = client.hub.put(REPO, {RELEASE: json.dumps({"version": "0.1.0", "files": files}).encode()})
    with pytest.raises(InputError):
        fetch(f"{REPO}@{commit}", None, client.source)


def test_fetching_when_disk_fills_meanwhile_removes_what_it_loaded(published, monkeypatch):
    real = os.replace
    count = iter(range(100))

    def full(source: Any, target: Any, **more: Any) -> None:
        if "annotations" in str(target) and next(count) == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        real(source, target, **more)

    monkeypatch.setattr("shutil.move", lambda source, target, *_, **__: full(source, target))
    with pytest.raises(TargetError, match="No space left"):
        fetch(f"{REPO}@0.1.0", None, published.source)
    assert [path.suffix for path in published.cache.glob("releases/*/*/*")] == [".lock"]
    assert not fetch(f"{REPO}@0.1.0", None, published.source).cached


def test_fetching_when_hub_is_none_or_offline_says_so(published, monkeypatch):
    published.hub.faults = {"refs": HtmlPage()}
    with pytest.raises(HubUnavailable, match="HF_ENDPOINT") as caught:
        fetch(f"{REPO}@0.1.0", None, published.source)
    assert TOKEN not in str(caught.value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnavailable, match="HF_HUB_OFFLINE"):
        fetch(f"{REPO}@0.1.0", None, published.source)


def test_release_folder_when_text_is_a_version_fetches_it_and_a_folder_stays(
    published: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", published.hub.url)
    folder = release_folder(f"{REPO}@0.1.0")
    assert load(folder).version == "0.1.0"
    assert release_folder(versions[0].folder) == versions[0].folder
    assert release_folder("dist/not-there") == Path("dist/not-there")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user" / "fables@0.1.0").mkdir(parents=True)
    assert release_folder(f"{REPO}@0.1.0") == Path(f"{REPO}@0.1.0")


def test_fetching_when_two_want_the_same_loads_it_once(published: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(fetch, f"{REPO}@0.1.0", None, published.source) for _ in range(2)]
        found = [task.result() for task in tasks]
    assert found[0].folder == found[1].folder
    assert len(published.hub.asked("lfs-download")) == len(list(found[0].folder.rglob("*.parquet")))


# -- A table fetched without the rest, records read one by one from the Hub, and the way of large files

VERSION = f"{REPO}@0.1.0"
READ = """
import sys, datasets
rows = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])
print(*sorted(rows), sum(len(split) for split in rows.values()))
"""


@pytest.fixture
def on_hub(published: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_ENDPOINT", published.hub.url)
    return published


def part(on_hub: Any, config: str | None, split: str | None = None) -> FetchOptions:
    source = on_hub.source
    return FetchOptions(source.endpoint, source.cache, source.retries, config=config, split=split)


@pytest.mark.slow
def test_table_when_fetched_comes_alone_and_is_what_the_release_says(on_hub, contents, versions, tmp_path):
    found = fetch(VERSION, tmp_path / "dist", part(on_hub, "scenes"))
    assert (found.part, found.version, found.cached) == ("scenes", "0.1.0", False)
    assert found.folder == tmp_path / "dist/fables-0.1.0-scenes"
    whole, came = contents(versions[0].folder), contents(found.folder)
    tables = {path for path in came if path.startswith("data/")}
    assert tables == {path for path in whole if path.startswith("data/scenes/")}
    assert came.keys() - tables == {CARD, "LICENSE", RELEASE}
    assert came == {path: whole[path] for path in came}
    assert len(on_hub.hub.asked("lfs-download")) == len(tables)

    on_hub.hub.forget()
    assert fetch(VERSION, None, part(on_hub, "scenes")).cached
    assert on_hub.hub.log == ()
    done = subprocess.run(
        [sys.executable, "-P", "-c", READ, str(found.folder / "data/scenes"), str(tmp_path / "cache")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    *splits, count = done.stdout.split()
    assert {f"data/scenes/{split}.parquet" for split in splits} == tables
    assert int(count) == versions[0].counts["scenes"]


def test_table_when_it_was_tampered_with_is_refused(on_hub: Any, tmp_path: Path) -> None:
    path = "data/scenes/train.parquet"
    stored = on_hub.hub.files(REPO)[path]
    on_hub.hub.tamper(REPO, path, stored[:-2] + b"!\n")
    with pytest.raises(InputError, match=path):
        fetch(VERSION, tmp_path / "dist", part(on_hub, "scenes"))
    assert not (tmp_path / "dist").exists()
    assert not fetch(VERSION, None, part(on_hub, "stories")).cached  # others are as they were


def test_command_when_given_a_table_fetches_it(on_hub: Any, tmp_path: Path) -> None:
    wanted = ("--config", "stories", "--split", "train")
    said = json.loads(command("fetch", VERSION, *wanted, "--out", tmp_path, "--json"))
    assert (said["part"], said["files"]) == ("stories-train", 4)
    assert (tmp_path / "fables-0.1.0-stories-train/data/stories/train.parquet").is_file()


def test_release_when_streamed_gives_the_records_and_loads_nothing_else(on_hub, versions, monkeypatch):
    monkeypatch.setattr("fabula.releases.hub.fetch.BLOCK", 1000)  # so that records lie across pieces
    whole = fabula.load(versions[0].folder)
    streamed = fabula.load(VERSION, streaming=True)
    assert isinstance(streamed, StreamedRelease)
    assert (streamed.version, len(streamed)) == ("0.1.0", len(whole))
    asked = len(on_hub.hub.log)
    first = next(iter(streamed))
    assert first == whole.records[0]
    size = (versions[0].folder / "annotations.jsonl").stat().st_size
    assert sum(one.sent for one in on_hub.hub.log[asked:]) < size // 2  # only as far as it was read
    assert tuple(streamed) == whole.records == tuple(streamed)
    assert on_hub.hub.asked("lfs-download", "tree") == []
    assert tuple(fabula.load(versions[0].folder, streaming=True)) == whole.records


def test_release_when_streamed_and_answers_fail_goes_on(on_hub, versions, monkeypatch):
    monkeypatch.setattr("fabula.releases.hub.fetch.BLOCK", 5000)
    source = open_source(VERSION, on_hub.source)
    on_hub.hub.forget()
    on_hub.hub.faults = {"resolve": [None, Refused(503), LostReply(100), CutUpload(), Refused(429)]}
    whole = fabula.load(versions[0].folder)
    streamed = StreamedRelease(source, "annotations.jsonl", "story_id", type(whole.records[0]))
    assert tuple(streamed) == whole.records
    assert len([one for one in on_hub.hub.log if one.fault]) == 4
    on_hub.hub.faults = {"resolve": Refused(403)}
    with pytest.raises(HubUnavailable, match="no right"):
        list(streamed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [lines[0].replace(b'"title"', b'"titel"', 1), *lines[1:]], "no record"),
        (lambda lines: [lines[0].replace(b" the ", b" a ", 1), *lines[1:]], "another record"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "after"),
        (lambda lines: lines[:-1], "records, and release.json names"),
        (lambda lines: [], "0 records, and release.json names"),
    ],
)
def test_release_when_streamed_and_tampered_with_is_refused_at_that_record(on_hub, change, words):
    streamed = fabula.load(VERSION, streaming=True)
    lines = on_hub.hub.files(REPO)["annotations.jsonl"].splitlines(keepends=True)
    on_hub.hub.tamper(REPO, "annotations.jsonl", b"".join(change(lines)))
    with pytest.raises((InputError, HubUnavailable), match=words):
        list(streamed)


def test_publishing_when_the_hub_cannot_speak_xet_uses_lfs(client, versions, monkeypatch):
    monkeypatch.delenv("HF_HUB_DISABLE_XET", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # imported when it was set
    publish(versions[0].folder, client.to())
    assert client.hub.asked("xet-token") == ["xet-token"]
    assert len(client.hub.asked("lfs-upload")) == len(list(versions[0].folder.rglob("*.parquet")))

    client.hub.forget()
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)  # imported before it was set
    publish(versions[1].folder, client.to())
    assert client.hub.asked("xet-token") == []
    assert client.hub.asked("lfs-upload")
