"""Publishing: one commit, one tag, whatever goes wrong on the way."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, HubUnavailable, InputError, TargetError
from fabula.kinds.verbs import pack, plan_publishing, publish
from fabula.releases.hub.client import open_hub
from fabula.releases.hub.publish import Local, lacking_right, look, require_same_benchmark
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.schemas.canonical import pretty_bytes, sha256_file
from fabula.schemas.paths import RELEASE
from fabula.testing.hub import (
    TOKEN,
    WRITES,
    CutUpload,
    Fault,
    HtmlPage,
    HubServer,
    LostReply,
    Refused,
)
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles

pytestmark = pytest.mark.slow

REPO = "user/fables"
Versions = tuple[PackResult, PackResult]


def on_hub(hub: HubServer, revision: str) -> dict[str, bytes]:
    files = hub.files(REPO, revision)
    files.pop(".gitattributes")
    return files


def test_publishing_when_repository_is_new_makes_one_commit_and_a_tag(client, contents, versions):
    done = publish(versions[0].folder, client.to())

    repository = client.hub.repository(REPO)
    assert on_hub(client.hub, "0.1.0") == contents(versions[0].folder)
    assert [one.title for one in repository.history("main")] == ["Version 0.1.0", "initial commit"]
    assert repository.tags == {"0.1.0": done.commit}
    assert (done.committed, done.tagged) == (True, True)
    assert client.hub.asked("create-repo", "commit", "tag") == ["create-repo", "commit", "tag"]
    # Large files go through LFS, each once, and only what is not there.
    parquet = [path for path in on_hub(client.hub, "main") if path.endswith(".parquet")]
    assert len(client.hub.asked("lfs-upload")) == len(parquet)


def test_publishing_when_version_is_there_changes_nothing(client: Any, versions: Versions) -> None:
    first = publish(versions[0].folder, client.to())
    client.hub.forget()
    again = publish(versions[0].folder, client.to())
    assert (again.commit, again.committed, again.tagged) == (first.commit, False, False)
    assert client.hub.asked(*WRITES) == []
    assert "nothing to do" in "\n".join(again.lines())


def test_publishing_when_version_is_the_next_sends_only_what_changed_and_removes_what_is_gone(
    client: Any, contents: Any, versions: Versions, tmp_path: Path, helpers: Any
) -> None:
    first = Path(shutil.copytree(versions[0].folder, tmp_path / "fables-0.1.0"))
    (first / "subsets").mkdir()
    (first / "subsets" / "lite.jsonl").write_bytes(b"{}\n")
    helpers.reseal(first)
    client.hub.repository(REPO).tags["0.1.0"] = client.hub.put(REPO, contents(first))
    client.hub.put(REPO, {"images/banner.svg": b"<svg/>"})
    plan = plan_publishing(versions[1].folder, client.to())
    kinds = {one.path: one.kind for one in plan.operations}
    assert kinds["data/stories/validation.parquet"] == "keep"
    assert kinds["annotations.jsonl"] == "change"
    assert kinds["subsets/lite.jsonl"] == "delete"
    assert plan.foreign == ("images/banner.svg",)

    client.hub.forget()
    publish(versions[1].folder, client.to())
    left = on_hub(client.hub, "0.2.0")
    assert left.pop("images/banner.svg") == b"<svg/>"
    assert left == contents(versions[1].folder)
    assert client.hub.asked("commit", "tag") == ["commit", "tag"]
    assert on_hub(client.hub, "0.1.0") == contents(first)


def test_dry_run_when_asked_lists_every_operation_and_writes_nothing(client: Any, versions: Versions) -> None:
    plan = plan_publishing(versions[0].folder, client.to(private=True))
    text = "\n".join(plan.lines())
    assert "create private data set user/fables" in text
    assert "add    data/stories/train.parquet" in text
    assert "tag 0.1.0: make it" in text
    assert plan.as_json()["create_tag"] is True
    assert {one.method for one in client.hub.log} == {"GET"}
    assert client.hub.store.repositories == {}


PASSING: dict[str, Fault | list[Fault]] = {
    "info": Refused(500),
    "create-repo": Refused(429, retry_after=3),
    "refs": Refused(503),
    "preupload": Refused(500),
    "lfs-upload": [Refused(500), LostReply(), CutUpload(100)],
    "commit": [Refused(500), Refused(429, retry_after=3), CutUpload(100), LostReply(), LostReply(9)],
    "tag": [Refused(500), LostReply()],
}


def each(faults: dict[str, Fault | list[Fault]]) -> list[Any]:
    return [
        pytest.param(step, fault, id=f"{step}-{type(fault).__name__}-{getattr(fault, 'status', '')}-{number}")
        for step, several in faults.items()
        for number, fault in enumerate(several if isinstance(several, list) else [several])
    ]


@pytest.mark.parametrize(("step", "fault"), each(PASSING))
def test_publishing_when_a_fault_passes_ends_with_one_commit_and_the_tag(
    client: Any, contents: Any, versions: Versions, step: str, fault: Fault
) -> None:
    client.hub.faults = {step: [fault]}
    publish(versions[0].folder, client.to())
    repository = client.hub.repository(REPO)
    assert [one.title for one in repository.history("main")] == ["Version 0.1.0", "initial commit"]
    assert repository.tags == {"0.1.0": repository.branches["main"]}
    assert on_hub(client.hub, "0.1.0") == contents(versions[0].folder)
    assert [one.fault for one in client.hub.log if one.fault] == [type(fault).__name__]


STAYING: tuple[tuple[str, Fault, type[Exception], str], ...] = (
    ("info", Refused(401, echo=True), HubUnavailable, "does not accept the token"),
    ("create-repo", Refused(403, echo=True), HubUnavailable, "write access to user/fables"),
    ("refs", HtmlPage(), HubUnavailable, "HF_ENDPOINT"),
    ("lfs-batch", Refused(401, echo=True), HubUnavailable, "does not accept the token"),
    ("lfs-upload", Refused(403, echo=True), HubUnavailable, "write access"),
    ("commit", Refused(412), TargetError, "somebody else has committed"),
    ("commit", HtmlPage(), HubUnavailable, "what answered is not a Hub"),
    ("commit", Refused(500, echo=True), HubUnavailable, "goes on where it stopped"),
    ("tag", Refused(409), TargetError, "status 409"),
    ("tag", Refused(429, retry_after=10_000), HubUnavailable, "again later"),
    ("tag", HtmlPage(), HubUnavailable, "what answered is not a Hub"),
)


@pytest.mark.parametrize(
    ("step", "fault", "kind", "words"), STAYING, ids=[f"{one[0]}-{type(one[1]).__name__}" for one in STAYING]
)
def test_publishing_when_a_fault_stays_says_so_and_goes_on_later_without_duplicating(
    client: Any, versions: Versions, step: str, fault: Fault, kind: type[Exception], words: str
) -> None:
    client.hub.faults = {step: fault}
    with pytest.raises(kind) as caught:
        publish(versions[0].folder, client.to())
    told = "\n".join([str(caught.value), *client.told])
    assert words in told
    assert TOKEN not in told

    client.hub.faults = {}
    publish(versions[0].folder, client.to())
    repository = client.hub.repository(REPO)
    assert len(repository.commits) == 2
    assert repository.tags == {"0.1.0": repository.branches["main"]}


def test_publishing_when_upload_was_cut_sends_again_only_what_is_missing(client, versions):
    client.hub.faults = {"commit": Refused(403)}
    with pytest.raises(HubUnavailable):
        publish(versions[0].folder, client.to())
    client.hub.faults = {}
    client.hub.forget()
    publish(versions[0].folder, client.to())
    assert client.hub.asked("lfs-upload") == []


def test_publishing_when_somebody_commits_meanwhile_refuses_and_overwrites_nothing(
    client: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(versions[0].folder, client.to())
    service = client.hub.service
    answer = service.answer

    def interfere(call: Any) -> Any:
        if call.route == "commit":
            service.answer = answer
            client.hub.put(REPO, {"README.md": b"# changed by hand\n"})
        return answer(call)

    service.answer = interfere
    with pytest.raises(TargetError, match="somebody else has committed meanwhile"):
        publish(versions[1].folder, client.to())
    assert client.hub.files(REPO)["README.md"] == b"# changed by hand\n"
    assert "0.2.0" not in client.hub.repository(REPO).tags


def test_publishing_when_tag_points_elsewhere_refuses(client: Any, versions: Versions) -> None:
    commit = client.hub.put(REPO, {"notes.txt": b"-"})
    client.hub.repository(REPO).tags["0.1.0"] = commit
    client.hub.forget()
    with pytest.raises(TargetError, match="a published version is never changed"):
        publish(versions[0].folder, client.to())
    assert client.hub.asked(*WRITES) == []


def test_publishing_when_same_version_has_other_content_refuses(client, versions, tmp_path):
    publish(versions[0].folder, client.to())
    run = write_run(tmp_path / "run", sample_bundles(6))
    other = pack(run, tmp_path / "other", PackOptions("0.1.0", name="fables", allow_drafts=True)).folder
    with pytest.raises(TargetError, match="published already, with other content"):
        publish(other, client.to())


def test_publishing_when_release_follows_another_version_of_that_number_refuses(
    client: Any, versions: Versions, tmp_path: Path, helpers: Any
) -> None:
    publish(versions[0].folder, client.to())
    release = json.loads((versions[0].folder / RELEASE).read_bytes())
    for sha256, refused in (("0" * 64, True), (sha256_file(versions[0].folder / RELEASE), False)):
        local = Local(versions[1].folder, {"about": release["about"], "version": "0.2.0"})
        local.document["previous"] = {"version": "0.1.0", "sha256": sha256}  # type: ignore[index]
        with open_hub(REPO, client.hub.url, retries=client.retries) as hub:
            remote = look(hub)
        if refused:
            with pytest.raises(TargetError, match=r"pack again with --since"):
                require_same_benchmark(local, remote, REPO)
        else:
            require_same_benchmark(local, remote, REPO)


def test_publishing_when_repository_holds_something_else_refuses(client: Any, versions: Versions) -> None:
    client.hub.put(REPO, {RELEASE: pretty_bytes({"version": "0.0.1", "about": {"name": "other"}})})
    with pytest.raises(TargetError, match="holds another benchmark, 'other'"):
        publish(versions[0].folder, client.to())
    client.hub.put("user/loose", {"annotations.jsonl": b"{}\n"})
    words = r"not a release of Fabula and would be overwritten: annotations\.jsonl"
    with pytest.raises(TargetError, match=words):
        publish(versions[0].folder, client.to("user/loose"))


def test_publishing_when_private_makes_a_repository_that_strangers_do_not_see(client, versions, monkeypatch):
    publish(versions[0].folder, client.to(private=True))
    assert client.hub.repository(REPO).private
    monkeypatch.setenv("HF_TOKEN", "hf_unknown_token")
    with pytest.raises((ConfigError, HubUnavailable), match="HF_TOKEN"):
        publish(versions[0].folder, client.to())


def damage_line(folder: Path, helpers: Any) -> None:
    helpers.edit_line(folder / "annotations.jsonl", 0, lambda row: row.update(title="another"))


def unhide(folder: Path, helpers: Any) -> None:
    helpers.edit_line(folder / "annotations.jsonl", 0, lambda row: row.update(split="hidden_test"))
    helpers.reseal(folder)


UNSOUND: dict[str, tuple[Any, str | None]] = {
    "a line": (damage_line, None),
    "a file with a dot": (lambda folder, _: (folder / ".env").write_text("HF_TOKEN=x\n"), None),
    "a stray file": (lambda folder, _: (folder / "notes.txt").write_text("-\n"), None),
    "a story of the hidden test": (unhide, None),
    "an imported package with hidden stories": (
        lambda folder, helpers: helpers.edit_json(
            folder / RELEASE, lambda document: document.update(visibility="whole")
        ), "an imported package with hidden-test stories",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSOUND)
def test_publishing_when_release_is_not_sound_refuses_and_sends_nothing(
    client: Any, versions: Versions, tmp_path: Path, helpers: Any, what: str
) -> None:
    damage, words = UNSOUND[what]
    folder = Path(shutil.copytree(versions[0].folder, tmp_path / "copy"))
    damage(folder, helpers)
    with pytest.raises(InputError, match=words):
        publish(folder, client.to())
    assert {each.route for each in client.hub.log} <= {"whoami"}


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("user-reads", "may only read"),
        ("ana", "it is of ana, who is not in user"),
        (None, "does not accept the token"),
    ],
)
def test_publishing_when_the_token_may_not_write_says_so_before_the_release_is_checked(
    client: Any, versions: Versions, tmp_path: Path, helpers: Any, who: str | None, said: str
) -> None:
    folder = Path(shutil.copytree(versions[0].folder, tmp_path / "copy"))
    damage_line(folder, helpers)
    client.hub.tokens = {} if who is None else dict.fromkeys(client.hub.tokens, who)
    with pytest.raises(HubUnavailable, match=said) as refused:
        publish(folder, client.to())
    assert "HF_TOKEN" in refused.value.fix
    assert {each.route for each in client.hub.log} <= {"whoami"}


def scoped(name: str, *permissions: str) -> dict[str, Any]:
    """What the Hub says of a fine-grained token, of which only the scopes matter here."""
    scope = {"entity": {"_id": "6", "type": "user", "name": name}, "permissions": list(permissions)}
    rights = {"canReadGatedRepos": True, "global": ["post.write"], "scoped": [scope]}
    return {"role": "fineGrained", "fineGrained": rights}


FINE = f"it is a fine-grained one without repo.write for {REPO}"


@pytest.mark.parametrize(
    ("token", "orgs", "lacking"),
    [
        (scoped("user", "repo.content.read", "repo.write"), [], ""),
        (scoped("User/Fables", "repo.write"), [], ""),
        (scoped("user", "repo.content.read"), [], FINE),
        (scoped("ana", "repo.write"), [], FINE),
        ({"role": "write"}, [{"name": "User", "roleInOrg": "contributor"}], ""),
        ({"role": "write"}, [{"name": "user", "roleInOrg": "read"}], "ana may only read in user"),
        ({"role": "write"}, [], "it is of ana, who is not in user"),
        ({"role": "read"}, [{"name": "user", "roleInOrg": "admin"}], "it may only read"),
    ],
)  # fmt: skip
def test_right_to_write_when_the_hub_tells_of_a_token_is_read_from_it(token, orgs, lacking):
    assert lacking_right({"name": "ana", "orgs": orgs, "auth": {"accessToken": token}}, REPO) == lacking


def test_publishing_when_folder_is_a_clone_sends_nothing_of_the_hub(client, contents, versions, tmp_path):
    folder = Path(shutil.copytree(versions[0].folder, tmp_path / "copy"))
    (folder / ".gitattributes").write_text("*.parquet filter=lfs\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    publish(folder, client.to())
    assert on_hub(client.hub, "0.1.0") == contents(versions[0].folder)
    assert json.loads(client.hub.files(REPO)[RELEASE])["version"] == "0.1.0"


def test_publishing_when_another_process_publishes_the_same_takes_its_commit(client, versions):
    service = client.hub.service
    answer = service.answer

    def twice(call: Any) -> Any:
        if call.route in ("commit", "tag"):
            answer(call)  # the other process is faster
        return answer(call)

    service.answer = twice
    done = publish(versions[0].folder, client.to())
    repository = client.hub.repository(REPO)
    assert len(repository.commits) == 2
    assert repository.tags == {"0.1.0": done.commit}
    assert [one.status for one in client.hub.log if one.route in ("commit", "tag")] == [412, 409]


@pytest.mark.parametrize(
    "endpoint", ["nonsense", "ftp://127.0.0.1", "http://", "http://user:s3cretpass@127.0.0.1:9"]
)
def test_publishing_when_endpoint_is_no_hub_says_so_without_its_password(client, versions, endpoint):
    options = replace(client.to(), endpoint=endpoint)
    with pytest.raises(HubUnavailable) as caught:
        publish(versions[0].folder, options)
    assert "s3cretpass" not in "\n".join([str(caught.value), *client.told])
