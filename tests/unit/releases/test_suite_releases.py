"""Suites as releases: packed from a finished run, read back, verified, and every change found."""

import json
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.errors import InputError
from fabula.kinds.verbs import pack, verify
from fabula.releases.events.form import SuiteRelease, load_suite, suite_bytes, write_suite
from fabula.releases.loading import load as load_stories
from fabula.releases.options import PackOptions
from fabula.schemas.events import LONGEST_NAME, video_name
from fabula.testing.made_runs import suite_run

SEEDS: list[dict[str, Any]] = [
    {"prompt": "A dog rolls over, begs for a treat, and then catches it.", "author": "ana"},
    {"prompt": "A man opens a door, and then walks out.", "origin": "retrieval"},
    {"prompt": "Une fille | ouvre une boîte, and then dort.", "event_list": ["Elle ouvre", "Elle dort"],
     "participants": ["human"], "creative": True},
    {"prompt": "A dog sleeps."},
]  # fmt: skip
OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "fr"))
NOTES = (
    "prompts rejected or failed: 1; release.json names them",
    "no prompt has a difficulty: it comes from judged videos (fabula build events --results)",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return suite_run(tmp_path_factory.mktemp("events"), SEEDS)


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return pack(run, tmp_path / "release", OPTIONS).folder


def test_suite_when_packed_twice_has_the_same_bytes_and_is_sound(run, packed, tmp_path):
    second = pack(run, tmp_path / "second", OPTIONS)
    files = sorted(path.relative_to(packed) for path in packed.rglob("*") if path.is_file())
    assert all((packed / name).read_bytes() == (second.folder / name).read_bytes() for name in files)
    assert second.counts == {"prompts": 3, "events": 7}
    assert second.notes == NOTES
    assert [entry.code for entry in second.left_out] == ["event_count"]
    report = verify(packed)
    assert report.ok, [str(issue) for issue in report.issues]
    assert report.checked["rows read back twice"] == 3 + 7
    assert (packed / "all_prompts.json").read_bytes() == (run / "all_prompts.json").read_bytes()
    document = json.loads((packed / "release.json").read_text())
    assert (document["kind"], document["about"]["title"]) == ("events", "Fabula event suite")


def test_suite_when_packed_without_a_language_says_how_to_name_it(run: Path, tmp_path: Path) -> None:
    options = PackOptions("0.1.0", license="CC-BY-4.0")
    unstated = "the language of the prompts is not stated; --language names it"
    assert pack(run, tmp_path / "release", options).notes == (*NOTES, unstated)


def test_suite_when_loaded_has_typed_records_and_the_official_form(packed: Path) -> None:
    release = fabula.load(packed)
    assert isinstance(release, SuiteRelease)
    assert (release.version, len(release)) == ("0.1.0", 3)
    assert release.suite.as_json() == load_suite(packed).as_json()
    assert release.records[0].producers["prompt"] == "hand:ana"
    with pytest.raises(InputError, match="a release of kind 'katha'"):
        load_stories(packed)


@pytest.mark.parametrize("damage", ["empty", "truncated", "gone", "other_kind"])
def test_suite_when_its_records_are_damaged_says_so(packed: Path, damage: str) -> None:
    path = packed / ("release.json" if damage == "other_kind" else "prompts.jsonl")
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        other = content.replace(b'"events"', b'"films"')
        path.write_bytes({"empty": b"", "truncated": content[:-40]}.get(damage, other))
    assert not verify(packed, quick=True).ok
    if damage != "empty":  # which loads as a suite without prompts: that it should have some is for verify
        with pytest.raises(InputError):
            fabula.load(packed)


# Prompt suites: what is read is written byte by byte, and every problem of a file is named.

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


def test_a_file_when_it_is_no_suite_is_refused_with_the_reason(tmp_path, refusals, snapshot):
    def read(content: bytes) -> None:
        (tmp_path / "a.json").write_bytes(content)
        load_suite(tmp_path / "a.json")

    wrong = [b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"A.mp4": {}, "A.mp4": {}}']
    assert refusals(read, wrong) == snapshot


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
