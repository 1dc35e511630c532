"""How results are kept and keyed."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine import edits
from fabula.engine.codec import (
    Basis,
    decode,
    encode,
    encode_lists,
    gather_fields,
)
from fabula.engine.edits import NAME, append_edits, edits_of, read_edits
from fabula.engine.stage import Failed, Made, Rejected
from fabula.errors import InputError, RunBusy, RunError
from fabula.schemas.canonical import digest
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
    assert BASIS.key("a", ["1" * 64]) == Basis("work", 1, {"settings": {}, "seed": 42}, {}).key(
        "a", ["1" * 64]
    )
    assert BASIS.key("a", []) == PINNED


@pytest.mark.parametrize(
    "other",
    [
        Basis("work2", 1, {"seed": 42, "settings": {}}, {}),
        Basis("work", 2, {"seed": 42, "settings": {}}, {}),
        Basis("work", 1, {"seed": 7, "settings": {}}, {}),
        Basis("work", 1, {"seed": 42, "settings": {"a": 1}}, {}),
        Basis("work", 1, {"seed": 42, "settings": {}}, {"pebble": "1"}),
    ],
)
def test_key_when_any_component_differs_differs(other: Basis) -> None:
    assert BASIS.key("a", ["1" * 64]) != other.key("a", ["1" * 64])


def test_key_when_item_or_inputs_differ_differs() -> None:
    keys = {
        BASIS.key("a", ["1" * 64, "2" * 64]),
        BASIS.key("b", ["1" * 64, "2" * 64]),
        BASIS.key("a", ["2" * 64, "1" * 64]),
        BASIS.key("a", ["1" * 64]),
        BASIS.key("a" + "1" * 64, ["2" * 64]),
        BASIS.key("\ud800", ["1" * 64]),
    }
    assert len(keys) == 6


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


def test_append_edits_when_somebody_keeps_the_file_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "WAIT", 0.0)

    def compose() -> tuple[Edit]:
        with pytest.raises(RunBusy, match=r"edits\.jsonl.*kept this file for 0 seconds"):
            append_edits(folder, lambda: (EDIT,))
        return (EDIT,)

    append_edits(folder, compose)
    assert edits_of(folder, "a") == (EDIT,)


def test_append_edits_when_the_run_starts_meanwhile_keeps_its_half_written_file(
    run: Callable, folder: Path
) -> None:
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
    assert [problem.where.rsplit(":", 1)[1] for problem in caught.value.problems] == [
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
    ]
