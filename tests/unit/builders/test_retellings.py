"""Retellings in a build: near copies, title twins and turned orders stay in one split, added later or not."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.choosing.assign_splits import Groups, fill_splits
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.testing.made_stories import make_story, near_copy
from fabula.validators.katha.validation import validate

BUILD = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0)
EXTEND = ExtendOptions(created_at="2026-02-01T00:00:00Z", workers=0)
SHARES = {100: 0.05, 110: 0.12, 120: 0.2}


def row(story_id: str, number: int, **changes: str) -> dict[str, str]:
    return {**make_story(number), "id": story_id, **changes}


def retold(number: int, share: float) -> list[list[dict[str, str]]]:
    """Four pairs: a near copy, one with its sentences turned, title twins, twins by number."""
    first = [
        row(f"{kind}{number}a", number + place) for place, kind in enumerate(("near", "turn", "name", "numb"))
    ]
    near, turned = (make_story(number + place)["text"] for place in (0, 1))
    other = row("", number + 500)["text"], row("", number + 501)["text"]
    second = [
        {**first[0], "text": near_copy(near, share, number), "title": f"Near {number}"},
        {**first[1], "text": near_copy(turned, share, number, turned=True), "title": f"Turned {number}"},
        {**first[2], "text": other[0], "title": f"The Story of {number} Wolves and a Hen"},
        {**first[3], "text": other[1], "title": f"{number}", "source_reference": f"Perry, no. {number}"},
    ]  # fmt: skip
    first[2]["title"], first[3]["source_reference"] = f"A Hen and {number} Wolves", f"Perry {number}"
    return [[one, {**two, "id": f"{one['id'][:-1]}b"}] for one, two in zip(first, second, strict=True)]


PAIRS = [pair for number, share in SHARES.items() for pair in retold(number, share)]
ALONE = [row(f"lone{n:02d}", n) for n in range(40)]


def write(path: Path, rows: Iterable[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return path


def splits(run: Path) -> dict[str, str]:
    lines = (run / "assignments.jsonl").read_text("utf-8").splitlines()
    return {one["id"]: one["split"] for one in map(json.loads, lines)}


def groups(run: Path) -> dict[str, dict]:
    lines = (run / "retellings.jsonl").read_text("utf-8").splitlines()
    return {one["id"]: one for one in map(json.loads, lines)}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A run of the first stories of all pairs, and of those that stand alone."""
    folder = tmp_path_factory.mktemp("retold")
    build_katha(write(folder / "a.jsonl", [*ALONE, *(pair[0] for pair in PAIRS)]), folder / "run", BUILD)
    return folder / "run"


@pytest.mark.slow
def test_build_when_stories_are_retold_keeps_each_group_in_one_split_and_shows_why(tmp_path) -> None:
    source = write(tmp_path / "all.jsonl", [*ALONE, *(one for pair in PAIRS for one in pair)])
    build_katha(source, tmp_path / "run", BUILD)
    found, assigned = groups(tmp_path / "run"), splits(tmp_path / "run")
    assert sorted(one["stories"] for one in found.values()) == sorted(
        [one["id"] for one in pair] for pair in PAIRS
    )
    assert all(len({assigned[story] for story in one["stories"]}) == 1 for one in found.values())
    by = {name[:4]: {link["by"] for link in one["links"]} for name, one in found.items()}
    assert by == {"near": {"text"}, "turn": {"text"}, "name": {"title"}, "numb": {"number"}}
    assert len(set(assigned.values())) == 4
    assert {issue.code for issue in validate(tmp_path / "run").issues} <= {
        "incomplete",
        "split-size",
        "split-strata",
    }


@pytest.mark.slow
def test_extend_when_stories_are_retold_puts_them_where_the_group_is(built, tmp_path) -> None:
    before = splits(built)
    report = extend_katha(built, write(tmp_path / "b.jsonl", [pair[1] for pair in PAIRS]), EXTEND)
    after = splits(built)
    assert len(report.added) == len(PAIRS)
    assert {key: after[key] for key in before} == before
    assert all(after[one["id"]] == after[two["id"]] for one, two in PAIRS)
    apart = {}
    for story, split in before.items():
        apart.setdefault(split, story)
    (one, _), (two, _) = sorted(before.items(), key=lambda pair: pair[1])[:: len(before) - 1]
    texts = {story["id"]: story["text"] for story in [*ALONE, *(pair[0] for pair in PAIRS)]}
    bridge = row("bridge", 700, text=f"{texts[one]} {texts[two]}")
    report = extend_katha(built, write(tmp_path / "c.jsonl", [bridge]), EXTEND)
    (stopped,) = report.stopped
    assert (stopped.id, stopped.code) == ("bridge", "joins_splits")
    assert one in stopped.reason and two in stopped.reason
    assert splits(built) == after


def linked(*pairs: str) -> list[dict]:
    return [{"stories": sorted(pair), "by": "text", "evidence": "so"} for pair in pairs]


def test_groups_when_a_story_would_join_two_splits_it_gets_none() -> None:
    found = Groups.of("abcd", linked("ac", "bc", "cd"), {"a": "train", "b": "validation"})
    assert set(found.joins) == {"c"} and len(found.joins["c"]) == 2
    assert fill_splits(
        dict.fromkeys("abd", "*"), {"a": "train", "b": "validation"}, found.units()
    ).keys() == set("abd")


def test_groups_when_linked_stories_have_two_splits_already_leave_them_there() -> None:
    before = {"a": "train", "b": "validation"}
    found = Groups.of("abc", linked("ab"), before)
    assert fill_splits(dict.fromkeys("abc", "*"), before, found.units()).items() >= before.items()


def test_groups_when_large_fill_no_split_beyond_its_share() -> None:
    ids = [f"s{n:03d}" for n in range(200)]
    links = linked(*((ids[n], ids[n + 1]) for n in range(199) if n % 10 != 9 and n < 100))
    found = Groups.of(ids, links, {})
    assigned = fill_splits(dict.fromkeys(ids, "*"), {}, found.units())
    sizes = [
        list(assigned.values()).count(split)
        for split in ("train", "validation", "public_test", "hidden_test")
    ]
    assert sizes == [140, 30, 20, 10]
    assert all(len({assigned[story] for story in ids[n : n + 10]}) == 1 for n in range(0, 100, 10))
