"""Prompt suites: what is read is written byte by byte, and every problem of a file is named."""

from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.releases.events.suites import load_suite, suite_bytes, write_suite
from fabula.schemas.events import LONGEST_NAME, video_name

ENTRY = {
    "prompt": "A parrot orders at a café, and then pays.",
    "event_list": ["A parrot orders at a café", "And then the parrot pays"],
    "class": ["animal", "creative", "2_events"],
}


def write(path: Path, document: object) -> Path:
    path.write_bytes(suite_bytes(document) + b"\n")
    return path


def test_a_suite_when_read_and_written_has_the_same_bytes(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", {"A_parrot.mp4": {**ENTRY, "source": None}, "B.mp4": ENTRY})
    write_suite(tmp_path / "b.json", load_suite(first))
    assert (tmp_path / "b.json").read_bytes() == first.read_bytes()
    assert b"caf\\u00e9" in first.read_bytes()


def test_a_suite_when_several_entries_are_wrong_lists_them_all(tmp_path: Path) -> None:
    wrong = {
        "../out.mp4": ENTRY,
        "A.mp4": {**ENTRY, "event_list": []},
        "B.mp4": {"prompt": "x"},
        "C.mp4": 3,
    }
    with pytest.raises(InputError) as caught:
        load_suite(write(tmp_path / "a.json", wrong))
    text = str(caught.value)
    assert all(part in text for part in ("'../out.mp4'", "event_list", "class", "C.mp4"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "readable JSON"),
        (b"[]", "a JSON list"),
        (b"{}", "at least one prompt"),
        (b"\xff\xfe", "readable JSON"),
        (b"[" * 100_000, "readable JSON"),
        (b'{"A.mp4": {}, "A.mp4": {}}', "it twice"),
    ],
)
def test_a_file_when_it_is_no_suite_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        load_suite(path)


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("A dog rolls over, and then catches it mid-air.", "A_dog_rolls_over_and_then_catches_it_midair.mp4"),
        ("A café's cat_naps.", "A_cafés_catnaps.mp4"),
        ("../../etc/passwd", "etcpasswd.mp4"),
        ("...", ".mp4"),
    ],
)
def test_the_name_of_a_video_when_the_prompt_has_marks_drops_them(prompt: str, name: str) -> None:
    assert video_name(prompt) == name


def test_the_name_of_a_video_when_the_prompt_is_long_ends_with_a_whole_word() -> None:
    name = video_name(" ".join(["word"] * 100))
    assert len(name) <= LONGEST_NAME
    assert name.endswith("_word.mp4")
    assert len(video_name("字" * 500).encode()) <= 240
