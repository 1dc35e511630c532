"""edits.jsonl is appended as a whole and read with every bad line named."""

import json
from pathlib import Path

import pytest

from fabula.engine.edits import NAME, append_edit, read_edits
from fabula.errors import InputError, RunError
from fabula.schemas.values import Edit

EDIT = Edit(id="a", path="$.scenes[0].action", old=None, new="it runs", who="ana", why="seen")


@pytest.fixture
def folder(run: object, tmp_path: Path) -> Path:
    run()  # type: ignore[operator]
    return tmp_path / "run"


def test_append_edit_when_called_twice_keeps_both_in_order(folder: Path) -> None:
    append_edit(folder, EDIT)
    append_edit(folder, EDIT.model_copy(update={"who": "bo"}))
    assert [edit.who for edit in read_edits(folder / NAME)] == ["ana", "bo"]
    assert (folder / NAME).read_bytes().endswith(b"}\n")


def test_append_edit_when_file_is_torn_is_refused_and_left_alone(folder: Path) -> None:
    append_edit(folder, EDIT)
    torn = (folder / NAME).read_bytes()[:-10]
    (folder / NAME).write_bytes(torn)
    with pytest.raises(InputError, match=r"edits\.jsonl:1"):
        append_edit(folder, EDIT)
    assert (folder / NAME).read_bytes() == torn


def test_append_edit_when_folder_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        append_edit(tmp_path, EDIT)


def test_append_edit_when_path_is_wrong_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="JSON path"):
        append_edit(folder, EDIT.model_copy(update={"path": "scenes.0"}))
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
