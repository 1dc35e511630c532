"""run.json, the creation time, and what sources are."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.manifest import creation_time, normal_time, read_manifest
from fabula.engine.sources import Source, fingerprint, fingerprints, path_from, path_in, with_added
from fabula.errors import ConfigError, InputError, RunError
from fabula.schemas.canonical import sha256_bytes


def test_creation_time_when_option_is_given_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert creation_time(None) == "2023-11-14T22:13:20Z"
    assert creation_time("2026-01-31T12:00:00+02:00") == "2026-01-31T10:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(ConfigError, match="seconds since 1970"):
        creation_time(None)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert normal_time(creation_time(None)) > "2026"


@pytest.mark.parametrize(
    "text",
    [
        "yesterday", "2026-01-31", "2026-01-31T12:00:00", "", "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)  # fmt: skip
def test_normal_time_when_no_zone_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a time with its zone"):
        normal_time(text)


@pytest.mark.parametrize("epoch", ["99999999999999", "-99999999999", "1e3"])
def test_creation_time_when_the_variable_is_no_time_of_ours_says_so(
    monkeypatch: pytest.MonkeyPatch, epoch: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(ConfigError, match="seconds since 1970"):
        creation_time(None)


GOOD: dict[str, Any] = {
    "format": 1, "kind": "toy", "created_at": "2026-01-31T12:00:00Z", "fabula_version": "0.1.0", "seed": 42,
    "threshold": 0.95, "run": {"item_timeout": 120.0, "seed": 42, "threshold": 0.95},
    "settings": {"work": {}}, "stages": [{"name": "work", "version": 1, "libraries": {}}], "prompts": {},
    "models": {"openai:m": {"concurrency": 4}},
    "sources": [{"role": "lines", "name": "a", "path": "a", "sha256": "0" * 64, "added_at": None}],
}  # fmt: skip


def write(folder: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "run.json").write_text(text)
    return folder


def test_read_manifest_when_good_gives_sources_relative_to_the_folder(tmp_path: Path) -> None:
    manifest = read_manifest(write(tmp_path, GOOD))
    assert manifest.created_at == "2026-01-31T12:00:00Z"
    assert manifest.source_list(tmp_path) == (Source("lines", tmp_path / "a"),)
    assert manifest.as_json() == GOOD


def test_read_manifest_when_written_before_models_could_be_asked_has_none(tmp_path: Path) -> None:
    old = {name: value for name, value in GOOD.items() if name != "models"}
    assert read_manifest(write(tmp_path, old)).models == {}


def test_read_manifest_when_numbers_are_at_their_bounds_takes_them(tmp_path: Path) -> None:
    for seed, threshold in ((0, 0.0), (1, 1.0)):
        part = {**GOOD["run"], "seed": seed, "threshold": threshold}
        made = read_manifest(write(tmp_path, {**GOOD, "seed": seed, "threshold": threshold, "run": part}))
        assert (made.run.seed, made.run.threshold) == (seed, threshold)


def test_read_manifest_when_newer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="format 2 is of a newer Fabula"):
        read_manifest(write(tmp_path, {**GOOD, "format": 2, "kind": {"unknown": "shape"}}))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"settings": 5}, "settings"),
        ({"settings": {"work": 5}}, "settings.work"),
        ({"sources": 3}, "sources"),
        ({"sources": [{"name": "a", "path": "a", "sha256": "0" * 64}]}, "sources.0.role"),
        ({"sources": [{**GOOD["sources"][0], "path": "a\0"}]}, "sources.0.path"),
        ({"sources": [{**GOOD["sources"][0], "sha256": None}]}, "sources.0.sha256"),
        ({"stages": [{}]}, "stages.0.name"),
        ({"threshold": "high"}, "threshold"),
        ({"threshold": 0.5}, "seed and threshold must be those in run"),
        ({"run": {**GOOD["run"], "threshold": 2}}, "run.threshold"),
        ({"run": {**GOOD["run"], "item_timeout": 0}}, "run.item_timeout"),
        ({"run": {**GOOD["run"], "seed": "42"}}, "run.seed"),
        ({"seed": -1, "run": {**GOOD["run"], "seed": -1}}, "run.seed"),
        ({"run": {}}, "run.item_timeout"),
        ({"created_at": 5}, "created_at"),
        ({"created_at": "999-01-01T00:00:00Z"}, "created_at"),
        ({"created_at": "2026-01-31T12:00:00+01:00"}, "created_at"),
        ({"prompts": []}, "prompts"),
        ({"kind": None}, "kind"),
        ({"format": "1"}, "format"),
        ({"extra": 1}, "extra"),
    ],
)
def test_read_manifest_when_a_value_was_damaged_names_it(
    tmp_path: Path, change: dict[str, object], place: str
) -> None:
    with pytest.raises(RunError, match="the manifest of a run") as caught:
        read_manifest(write(tmp_path, {**GOOD, **change}))
    assert place in caught.value.found


def test_fingerprint_when_file_is_its_sha256(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")
    found = fingerprint(Source("lines", path))
    assert (found.name, found.sha256) == ("a.txt", sha256_bytes(b"abc"))
    assert found.as_json(tmp_path)["path"] == "a.txt"
    assert found.as_json(tmp_path / "b")["path"] == "../a.txt"


def test_paths_when_run_and_sources_are_reached_by_links_lead_to_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "far" / "runs").mkdir(parents=True)
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "runs").symlink_to(tmp_path / "far" / "runs")
    (tmp_path / "near" / "data").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "v2.jsonl").write_text("x")
    (tmp_path / "far" / "current.jsonl").symlink_to("v2.jsonl")
    folder, source = tmp_path / "near" / "runs", tmp_path / "near" / "data" / "current.jsonl"
    path = path_from(folder, source)
    assert path == "../current.jsonl"
    assert (
        path_in(folder, path)
        == path_in(tmp_path / "far" / "runs", path)
        == tmp_path / "far" / "current.jsonl"
    )
    assert path_in(folder, str(source)) == source, "as earlier versions wrote it"


def test_fingerprint_when_folder_covers_names_and_contents_but_not_hidden_files(tmp_path: Path) -> None:
    folder = tmp_path / "tales"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("a")
    (folder / "b.txt").write_text("b")
    (folder / os.fsdecode(b"\xff.txt")).write_text("name that is not UTF-8")
    first = fingerprint(Source("stories", folder)).sha256
    (folder / ".hidden").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("x")
    assert fingerprint(Source("stories", folder)).sha256 == first
    (folder / "deep" / "a.txt").rename(folder / "deep" / "c.txt")
    second = fingerprint(Source("stories", folder)).sha256
    (folder / "deep" / "c.txt").write_text("changed")
    third = fingerprint(Source("stories", folder)).sha256
    assert len({first, second, third}) == 3


def test_fingerprints_when_edits_exist_come_last_and_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "a").write_text("a")
    sources = (Source("edits", run / "edits.jsonl"), Source("lines", tmp_path / "a"))
    assert [entry.role for entry in fingerprints(sources, run)] == ["lines"]
    (run / "edits.jsonl").write_text("")
    assert [entry.role for entry in fingerprints(sources, run)] == ["lines", "edits"]


def test_fingerprints_when_several_are_missing_lists_them_all(tmp_path: Path) -> None:
    sources = tuple(Source("lines", tmp_path / name) for name in "ab")
    with pytest.raises(InputError) as caught:
        fingerprints(sources, tmp_path)
    assert len(caught.value.problems) == 2


def test_with_added_when_a_run_was_extended_keeps_its_additions_and_their_times(tmp_path: Path) -> None:
    first, later, other = (Source("lines", tmp_path / name) for name in ("first", "later", "other"))
    added = Source("lines", tmp_path / "later", "2026-03-01T00:00:00Z")
    assert with_added((first,), (first, added)) == (first, added)
    assert with_added((first, later), (first, added)) == (first, added)
    assert with_added((other, later), (first, added)) == (other, added)
    assert with_added((other,), (first,)) == (other,)
    written = Source("lines", tmp_path / "x" / ".." / "later")
    assert with_added((written,), (added,)) == (Source("lines", written.path, added.added_at),)


def test_manifest_when_a_source_was_added_gives_its_time_and_the_latest(tmp_path: Path) -> None:
    time = "2026-03-01T00:00:00Z"
    added = {"role": "lines", "name": "b", "path": "b", "sha256": "1" * 64, "added_at": time}
    manifest = read_manifest(write(tmp_path, {**GOOD, "sources": [*GOOD["sources"], added]}))
    assert manifest.changed_at == time
    assert manifest.source_list(tmp_path)[1] == Source("lines", tmp_path / "b", time)
    assert [entry.field().get("added_at") for entry in manifest.sources] == [None, time]
    assert read_manifest(write(tmp_path, GOOD)).changed_at == GOOD["created_at"]
