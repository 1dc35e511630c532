"""How results are kept and keyed."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabula.engine import edits
from fabula.engine.edits import NAME, append_edits, edits_of, read_edits
from fabula.engine.journal import Basis, decode, encode, encode_lists, gather_fields
from fabula.engine.manifest import (
    Source,
    creation_time,
    fingerprint,
    fingerprints,
    normal_time,
    path_from,
    path_in,
    read_manifest,
    with_added,
)
from fabula.engine.stage import Failed, Made, Rejected
from fabula.errors import ConfigError, InputError, RunBusy, RunError
from fabula.schemas.canonical import digest, sha256_bytes
from fabula.schemas.values import Edit

BASIS = Basis("work", 1, {"seed": 42, "settings": {}}, {})
PINNED = "4e4f52d235c3bb3a9552d0de4973b453f36878ea1fe3fb2a2fa3bb0e3b47a717"  # a change forgets all results


def test_encode_when_made_keeps_fields_and_their_digests() -> None:
    fields = {"b": [1, 2.5, None], "a": {"text": "ñ \u2028 \U0001f600"}}
    kept = encode(Made(fields))
    assert kept.blob is not None
    assert decode(kept.blob) == fields
    assert kept.outputs == {name: digest(value) for name, value in fields.items()}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800", object()])
def test_encode_when_value_is_not_json_raises(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode(Made({"a": value}))


def test_encode_when_reason_holds_a_lone_surrogate_stores_text() -> None:
    assert encode(Rejected("x", "bad \ud800 text")).reason == "bad ? text"
    assert encode(Failed("x", "r", "\udfff")).evidence == "?"


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 20_000])
def test_encode_lists_when_lines_come_one_by_one_gives_the_bytes_of_the_whole_lists(count: int) -> None:
    rng = random.Random(count)
    lines = [[f'i{number} "ñ\U0001f600', rng.randbytes(32).hex()] for number in range(count)]
    for lists in ({"items": lines}, {"kept": lines[:3], "items": lines}):
        assert encode_lists({name: iter(rows) for name, rows in lists.items()}) == encode(Made(lists))


def test_gather_fields_when_blobs_hold_more_takes_only_the_named_ones() -> None:
    first, second = encode(Made({"a": 1, "b": 2})).blob, encode(Made({"c": 3})).blob
    assert first is not None
    assert second is not None
    assert gather_fields([(first, ("b",)), (second, ("c",))]) == {"b": 2, "c": 3}


def test_key_when_nothing_differs_is_the_same_in_every_process() -> None:
    turned = Basis("work", 1, {"settings": {}, "seed": 42}, {})
    assert BASIS.key("a", ["1" * 64]) == turned.key("a", ["1" * 64])
    assert BASIS.key("a", []) == PINNED


def test_key_when_any_component_item_or_input_differs_differs() -> None:
    base = {"seed": 42, "settings": {}}
    others = [
        Basis("work2", 1, base, {}), Basis("work", 2, base, {}), Basis("work", 1, {**base, "seed": 7}, {}),
        Basis("work", 1, {**base, "settings": {"a": 1}}, {}), Basis("work", 1, base, {"pebble": "1"}),
    ]  # fmt: skip
    one, two = "1" * 64, "2" * 64
    places = [("a", [one, two]), ("b", [one, two]), ("a", [two, one]), ("a", [one]), ("a" + one, [two])]
    keys = {BASIS.key(*place) for place in (*places, ("\ud800", [one]))}
    assert len(keys | {other.key("a", [one]) for other in others}) == 6 + 5


# edits.jsonl is appended as a whole and read with every bad line named.

EDIT = Edit(id="a", path="$.scenes[0].action", old=None, new="it runs", who="ana", why="seen")


@pytest.fixture
def folder(run: object, tmp_path: Path) -> Path:
    run()  # type: ignore[operator]
    return tmp_path / "run"


def test_append_edits_when_called_twice_keeps_both_in_order(folder: Path) -> None:
    append_edits(folder, lambda: (EDIT,))
    append_edits(folder, lambda: (EDIT.model_copy(update={"who": "bo"}),))
    assert [edit.who for edit in read_edits(folder / NAME)] == ["ana", "bo"]
    assert (folder / NAME).read_bytes().endswith(b"}\n")


def test_append_edits_when_file_is_torn_is_refused_and_left_alone(folder: Path) -> None:
    append_edits(folder, lambda: (EDIT,))
    torn = (folder / NAME).read_bytes()[:-10]
    (folder / NAME).write_bytes(torn)
    with pytest.raises(InputError, match=r"edits\.jsonl:1"):
        append_edits(folder, lambda: (EDIT,))
    assert (folder / NAME).read_bytes() == torn


PROGRAM = """
import sys
from pathlib import Path
from fabula.engine.edits import append_edits
from fabula.schemas.values import Edit
edit = Edit(id="a", path="$.text", old=None, new=sys.argv[2], who="ana", why="seen")
append_edits(Path(sys.argv[1]), lambda: (edit,))
"""


@pytest.mark.slow
def test_append_edits_when_several_are_added_at_once_keeps_them_all(folder: Path) -> None:
    names = [f"value {number}" for number in range(8)]
    commands = [[sys.executable, "-c", PROGRAM, str(folder), name] for name in names]
    started = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in started] == [0] * 8
    assert sorted(str(edit.new) for edit in edits_of(folder, "a")) == names
    assert edits_of(folder, "b") == ()


def test_append_edits_when_composed_sees_what_stands_before_it(folder: Path) -> None:
    append_edits(folder, lambda: (EDIT,))
    (added,) = append_edits(folder, lambda: (EDIT.model_copy(update={"old": edits_of(folder, "a")[-1].new}),))
    assert added.old == "it runs"
    assert edits_of(folder, "a") == (EDIT, added)


def test_append_edits_when_somebody_keeps_the_file_says_so(folder, monkeypatch):
    monkeypatch.setattr(edits, "WAIT", 0.0)

    def compose() -> tuple[Edit]:
        with pytest.raises(RunBusy, match=r"edits\.jsonl.*kept this file for 0 seconds"):
            append_edits(folder, lambda: (EDIT,))
        return (EDIT,)

    append_edits(folder, compose)
    assert edits_of(folder, "a") == (EDIT,)


def test_append_edits_when_the_run_starts_meanwhile_keeps_its_half_written_file(run, folder):
    part = folder / ".edits.jsonl.x1y2.part"
    part.write_text("half")
    run()
    assert part.exists()
    append_edits(folder, lambda: (EDIT,))
    assert not part.exists()


def test_append_edits_when_folder_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        append_edits(tmp_path, lambda: (EDIT,))


def test_append_edits_when_path_is_wrong_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="JSON path"):
        append_edits(folder, lambda: (EDIT.model_copy(update={"path": "scenes.0"}),))
    assert not (folder / NAME).exists()


def test_read_edits_when_lines_are_bad_lists_each(tmp_path: Path) -> None:
    good = json.dumps(EDIT.as_json()).encode()
    bad = [b"{", b"[]", b'{"id": "a"}', b"\xff", good.replace(b"$.s", b"s."), b"[" * 100_000]
    (tmp_path / NAME).write_bytes(b"\xef\xbb\xbf" + b"\n".join([good, b"", b"  ", *bad, good]) + b"\r\n")
    with pytest.raises(InputError) as caught:
        read_edits(tmp_path / NAME)
    assert [problem.where.rsplit(":", 1)[1] for problem in caught.value.problems] == [*"456789"]


# -- run.json, the creation time, and what sources are


def test_creation_time_when_option_is_given_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert creation_time(None) == "2023-11-14T22:13:20Z"
    assert creation_time("2026-01-31T12:00:00+02:00") == "2026-01-31T10:00:00Z"
    for epoch in ("soon", "99999999999999", "-99999999999", "1e3"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
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


def test_read_manifest_when_a_value_was_damaged_names_it(tmp_path, refusals, snapshot):
    source, run = GOOD["sources"][0], GOOD["run"]
    assert refusals(lambda change: read_manifest(write(tmp_path, {**GOOD, **change})), [
        {"settings": 5}, {"settings": {"work": 5}}, {"sources": 3},
        {"sources": [{"name": "a", "path": "a", "sha256": "0" * 64}]},
        {"sources": [{**source, "path": "a\0"}]},
        {"sources": [{**source, "sha256": None}]}, {"stages": [{}]}, {"threshold": "high"},
        {"threshold": 0.5}, {"run": {**run, "threshold": 2}}, {"run": {**run, "item_timeout": 0}},
        {"run": {**run, "seed": "42"}}, {"seed": -1, "run": {**run, "seed": -1}}, {"run": {}},
        {"created_at": 5}, {"created_at": "999-01-01T00:00:00Z"},
        {"created_at": "2026-01-31T12:00:00+01:00"}, {"prompts": []}, {"kind": None}, {"format": "1"},
        {"extra": 1},
    ]) == snapshot  # fmt: skip


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
    for place in (folder, tmp_path / "far" / "runs"):
        assert path_in(place, path) == tmp_path / "far" / "current.jsonl"
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
