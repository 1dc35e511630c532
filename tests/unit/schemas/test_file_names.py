"""Names as file systems write them: é may be one character or two, and is the same name."""

from pathlib import Path

import pytest

from fabula.schemas.file_names import below, by_name, composed

ONE, TWO = "caf\u00e9.mp4", "cafe\u0301.mp4"


def test_names_when_two_become_one_are_told_and_the_first_is_taken() -> None:
    assert by_name([TWO, "a.mp4", ONE]) == ({ONE: TWO, "a.mp4": "a.mp4"}, [(TWO, ONE)])
    assert by_name(["a", "\uac00"]) == ({"a": "a", "\uac00": "\uac00"}, [])


@pytest.mark.parametrize(("there", "asked"), [(ONE, TWO), (TWO, ONE), (TWO, TWO)])
def test_file_when_its_name_is_written_otherwise_is_found(tmp_path: Path, there: str, asked: str) -> None:
    folder = tmp_path / composed("Zoe\u0308")
    folder.mkdir()
    (folder / there).touch()
    assert below(tmp_path, f"Zoe\u0308/{asked}") == folder / there
    assert below(tmp_path, "Zoe\u0308/other.mp4") == folder / "other.mp4"


def test_file_when_both_names_are_there_is_that_of_exactly_the_name(tmp_path: Path) -> None:
    for name in (ONE, TWO):
        (tmp_path / name).touch()
    assert [below(tmp_path, name).name for name in (ONE, TWO)] == [ONE, TWO]
    assert below(tmp_path, "\u00e9" * 300) == tmp_path / ("\u00e9" * 300)  # too long for a name
