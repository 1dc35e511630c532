"""Ranks as ranges, pages, and published rows."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, TargetError
from fabula.evaluation.archive.archive import read_manifest
from fabula.kinds.benchmarks.published import published_table, published_tables
from fabula.leaderboard.checking import check, retract
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.site import DATA, build
from fabula.leaderboard.standing import rank_ranges, standings, surely_better

RESAMPLES = 60


def test_ranks_when_pairs_cannot_be_told_apart_are_ranges() -> None:
    # a beats c and d; b beats d; nobody else can be told apart.
    ranks = rank_ranges(["a", "b", "c", "d"], [("a", "c"), ("a", "d"), ("b", "d")])
    assert {name: (rank.low, rank.high) for name, rank in ranks.items()} == {
        "a": (1, 2), "b": (1, 3), "c": (2, 4), "d": (3, 4),
    }  # fmt: skip
    assert str(ranks["a"]) == "1–2"
    assert rank_ranges(["alone"], [])["alone"].high == 1


def test_ranks_when_all_pairs_are_sure_are_places() -> None:
    ranks = rank_ranges(["a", "b", "c"], [("a", "b"), ("a", "c"), ("b", "c")])
    assert [str(ranks[name]) for name in "abc"] == ["1", "2", "3"]


@pytest.mark.slow
def test_standings_when_two_are_alike_and_one_is_worse_share_the_first_ranks(world: Any) -> None:
    for name in ("model-a", "model-b", "model-c"):
        world.submit(name)
    retracted = world.submit("model-a", world.runs["model-a"], out=world.folder / "submissions" / "zz.zip")
    assert retracted.exists()
    retract(world.folder, "zz", "A copy by mistake.", "2026-02-01")
    (standing,) = standings(check(world.folder), world.folder)
    assert {name: (rank.low, rank.high) for name, rank in standing.ranks.items()} == {
        "model-a": (1, 2), "model-b": (1, 2), "model-c": (3, 3),
    }  # fmt: skip
    assert [row.name for row in standing.unranked] == ["zz"]
    site = world.folder / "site"
    built = build(world.folder, site)
    # An index, a page for each of the four submissions, and the whole reports of the ranked ones.
    assert built.pages == len(list(site.rglob("*.html"))) - 3 == 5
    index = (site / "index.html").read_text("utf-8")
    assert 'href="methods/model-c.html"' in index
    assert "retracted on 2026-02-01: A copy by mistake." in index
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', index)
    assert len(index) < 1_000_000
    linked = {site / "index.html"}
    for page in site.rglob("*.html"):  # every link of the site leads to a file of it
        for target in re.findall(r'href="([^"#:]+)"', page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page.name, target)
            linked.add((page.parent / target).resolve())
    assert set(site.rglob("*.html")) <= linked
    assert "sdk: static" in (site / "README.md").read_text("utf-8")
    assert json.loads((site / DATA).read_bytes())["ranks"]["model-c"]["low"] == 3
    (world.folder / "other").mkdir()
    (world.folder / "other" / "mine.txt").write_text("x", "utf-8")
    with pytest.raises(TargetError, match="is no site"):
        build(world.folder, world.folder / "other")


@pytest.mark.slow
def test_pairs_when_built_again_are_taken_from_what_was_compared(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, ...]] = []

    def comparing(*given: Any) -> int:
        made.append(tuple(read_manifest(folder).subject["methods"].popitem()[0] for folder in given[:2]))
        return surely_better(*given)

    monkeypatch.setattr("fabula.leaderboard.standing.surely_better", comparing)

    def ranks() -> dict[str, str]:
        made.clear()
        (standing,) = standings(check(world.folder), world.folder)
        return {name: str(rank) for name, rank in standing.ranks.items()}

    world.submit("model-a")
    world.submit("model-c")
    assert (ranks(), made) == ({"model-a": "1", "model-c": "2"}, [("model-a", "model-c")])
    assert (ranks(), made) == ({"model-a": "1", "model-c": "2"}, [])
    world.submit("model-b")
    first = ranks()
    assert first == {"model-a": "1–2", "model-b": "1–2", "model-c": "3"}
    assert sorted(map(sorted, made)) == [["model-a", "model-b"], ["model-b", "model-c"]]
    other = BoardOptions(like=world.runs["model-a"], release=world.release, resamples=RESAMPLES + 1)
    shutil.move(world.folder / "leaderboard.json", world.folder / "before.json")
    init(world.folder, other)
    assert (ranks(), len(made)) == (first, 3), "another board is compared anew"
    for file in (Path(os.environ["XDG_CACHE_HOME"]) / "fabula/pairs").iterdir():
        file.write_bytes(b"2")
    assert (ranks(), len(made)) == (first, 3), "what nobody can have written is compared anew"


def test_published_when_listed_each_says_its_table() -> None:
    tables = published_tables()
    assert {table.paper for table in tables.values()} == {
        "ViStoryBench", "StoryEval", "KathaBench", "EntityBench",
    }  # fmt: skip
    for table in tables.values():
        made = table.table()
        assert "not run by us" in made.note
        assert re.search(r"Table|Section", table.source), table.key
        assert {len(cells) for cells in table.rows.values()} == {len(table.measures)}
    stg = published_table("kathabench").table().rows[0].scores["gap"]
    assert (stg.value, stg.low, stg.high) == (0.348, 0.331, 0.365)
    with pytest.raises(ConfigError, match="choose one of"):
        published_table("nothing")
