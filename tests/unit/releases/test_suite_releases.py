"""Suites as releases: packed from a finished run, read back, verified, and every change found."""

import json
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.builders.events.building import SuiteOptions, build_suite
from fabula.errors import InputError
from fabula.kinds.verbs import pack, verify
from fabula.releases.events.form import SuiteRelease
from fabula.releases.events.suites import load_suite
from fabula.releases.loading import load as load_stories
from fabula.releases.options import PackOptions

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
    folder = tmp_path_factory.mktemp("events")
    seeds = folder / "seeds.jsonl"
    seeds.write_text("".join(json.dumps(seed) + "\n" for seed in SEEDS), "utf-8")
    build_suite([seeds], folder / "run", SuiteOptions(workers=0, created_at="2026-01-01T00:00:00Z"))
    return folder / "run"


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return pack(run, tmp_path / "release", OPTIONS).folder


def test_suite_when_packed_twice_has_the_same_bytes_and_is_sound(
    run: Path, packed: Path, tmp_path: Path
) -> None:
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
