"""edits.jsonl is appended as a whole and read with every bad line named."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine import edits
from fabula.engine.edits import NAME, append_edits, edits_of, read_edits
from fabula.errors import InputError, RunBusy, RunError
from fabula.schemas.values import Edit

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


def test_run_when_there_is_only_an_edit_lock_begins(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / edits.LOCK).touch()
    assert run(folder=tmp_path / "new").totals["made"] == 4


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


def test_read_edits_when_missing_or_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_edits(tmp_path / NAME)
    (tmp_path / NAME).write_bytes(b"\n")
    assert read_edits(tmp_path / NAME) == ()
