"""A table fetched without the rest, records read one by one from the Hub, and the way of large files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import HubUnavailable, InputError
from fabula.kinds.verbs import publish
from fabula.releases.hub.fetch import FetchOptions, StreamedRelease, fetch, open_source
from fabula.releases.pack.packing import PackResult
from fabula.schemas.layout import CARD, RELEASE
from fabula.testing.hub import CutUpload, LostReply, Refused
from fabula.testing.sample_history import command

REPO = "user/fables"
VERSION = f"{REPO}@0.1.0"
Versions = tuple[PackResult, PackResult]
READ = """
import sys, datasets
rows = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])
print(*sorted(rows), sum(len(split) for split in rows.values()))
"""


@pytest.fixture
def published(client: Any, contents: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch) -> Any:
    commit = client.hub.put(REPO, contents(versions[0].folder))
    client.hub.repository(REPO).tags["0.1.0"] = commit
    monkeypatch.setenv("HF_ENDPOINT", client.hub.url)
    return client


def part(published: Any, config: str | None, split: str | None = None) -> FetchOptions:
    source = published.source
    return FetchOptions(source.endpoint, source.cache, source.retries, config=config, split=split)


@pytest.mark.slow
def test_table_when_fetched_comes_alone_and_is_what_the_release_says(
    published: Any, contents: Any, versions: Versions, tmp_path: Path
) -> None:
    found = fetch(VERSION, tmp_path / "dist", part(published, "scenes"))
    assert (found.part, found.version, found.cached) == ("scenes", "0.1.0", False)
    assert found.folder == tmp_path / "dist/fables-0.1.0-scenes"
    whole, came = contents(versions[0].folder), contents(found.folder)
    tables = {path for path in came if path.startswith("data/")}
    assert tables == {path for path in whole if path.startswith("data/scenes/")}
    assert came.keys() - tables == {CARD, "LICENSE", RELEASE}
    assert came == {path: whole[path] for path in came}
    assert len(published.hub.asked("lfs-download")) == len(tables)

    published.hub.forget()
    assert fetch(VERSION, None, part(published, "scenes")).cached
    assert published.hub.log == ()
    done = subprocess.run(
        [sys.executable, "-P", "-c", READ, str(found.folder / "data/scenes"), str(tmp_path / "cache")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    *splits, count = done.stdout.split()
    assert {f"data/scenes/{split}.parquet" for split in splits} == tables
    assert int(count) == versions[0].counts["scenes"]


def test_table_when_it_was_tampered_with_is_refused(published: Any, tmp_path: Path) -> None:
    path = "data/scenes/train.parquet"
    stored = published.hub.files(REPO)[path]
    published.hub.tamper(REPO, path, stored[:-2] + b"!\n")
    with pytest.raises(InputError, match=path):
        fetch(VERSION, tmp_path / "dist", part(published, "scenes"))
    assert not (tmp_path / "dist").exists()
    assert not fetch(VERSION, None, part(published, "stories")).cached  # others are as they were


def test_command_when_given_a_table_fetches_it(published: Any, tmp_path: Path) -> None:
    wanted = ("--config", "stories", "--split", "train")
    said = json.loads(command("fetch", VERSION, *wanted, "--out", tmp_path, "--json"))
    assert (said["part"], said["files"]) == ("stories-train", 4)
    assert (tmp_path / "fables-0.1.0-stories-train/data/stories/train.parquet").is_file()


def test_release_when_streamed_gives_the_records_and_loads_nothing_else(
    published: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabula.releases.hub.fetch.BLOCK", 1000)  # so that records lie across pieces
    whole = fabula.load(versions[0].folder)
    streamed = fabula.load(VERSION, streaming=True)
    assert isinstance(streamed, StreamedRelease)
    assert (streamed.version, len(streamed)) == ("0.1.0", len(whole))
    asked = len(published.hub.log)
    first = next(iter(streamed))
    assert first == whole.records[0]
    size = (versions[0].folder / "annotations.jsonl").stat().st_size
    assert sum(one.sent for one in published.hub.log[asked:]) < size // 2  # only as far as it was read
    assert tuple(streamed) == whole.records == tuple(streamed)
    assert published.hub.asked("lfs-download", "tree") == []
    assert tuple(fabula.load(versions[0].folder, streaming=True)) == whole.records


def test_release_when_streamed_and_answers_fail_goes_on(
    published: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabula.releases.hub.fetch.BLOCK", 5000)
    source = open_source(VERSION, published.source)
    published.hub.forget()
    published.hub.faults = {"resolve": [None, Refused(503), LostReply(100), CutUpload(), Refused(429)]}
    whole = fabula.load(versions[0].folder)
    streamed = StreamedRelease(source, "annotations.jsonl", "story_id", type(whole.records[0]))
    assert tuple(streamed) == whole.records
    assert len([one for one in published.hub.log if one.fault]) == 4
    published.hub.faults = {"resolve": Refused(403)}
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
def test_release_when_streamed_and_tampered_with_is_refused_at_that_record(
    published: Any, change: Any, words: str
) -> None:
    streamed = fabula.load(VERSION, streaming=True)
    lines = published.hub.files(REPO)["annotations.jsonl"].splitlines(keepends=True)
    published.hub.tamper(REPO, "annotations.jsonl", b"".join(change(lines)))
    with pytest.raises((InputError, HubUnavailable), match=words):
        list(streamed)


def test_publishing_when_the_hub_cannot_speak_xet_uses_lfs(
    client: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
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
