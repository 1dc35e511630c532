"""Ranks as ranges, pages, and published rows."""

import json
import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import HfApi

import fabula
from fabula.errors import ConfigError, TargetError
from fabula.evaluation.archive.archive import read_archive, read_manifest, write_archive
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.kinds.benchmarks.row import published_table, published_tables
from fabula.kinds.evaluations import judging_of
from fabula.leaderboard.checking import check, retract
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.site import DATA, build
from fabula.leaderboard.standing import rank_ranges, standings, surely_better
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, Fault, write_outputs
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

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


def test_ranks_when_a_pair_is_or_is_not_told_apart_are_ranges_of_both_or_its_own(world, monkeypatch):
    world.submit("model-a")
    world.submit("model-c")
    checked = check(world.folder)
    for better, ranks in ((0, {"model-a": "1–2", "model-c": "1–2"}), (1, {"model-a": "1", "model-c": "2"})):
        monkeypatch.setattr("fabula.leaderboard.standing.surely_better", lambda *_, found=better: found)
        shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]) / "fabula/pairs", ignore_errors=True)
        (standing,) = standings(checked, world.folder)
        assert {name: str(rank) for name, rank in standing.ranks.items()} == ranks


@pytest.mark.slow
def test_pairs_when_built_again_are_taken_from_what_was_compared(world, monkeypatch):
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


# -- Boards of pictures and of episodes, of evaluations that were really made

REPLAYS = Path(fabula.__file__).parent / "tests" / "golden" / "replays"


def ranks(folder: Path, runs: dict[str, Path], *, release: Path, rank_by: str) -> dict[str, tuple[int, int]]:
    """Begin a board like the first evaluation, submit all, and build it: method -> range of ranks."""
    like = next(iter(runs.values()))
    init(folder, BoardOptions(like=like, release=release, rank_by=rank_by, resamples=40, least_coverage=0.5))
    for number, (name, run) in enumerate(runs.items(), 1):
        submit(run, folder, SubmitOptions(name=name, date=f"2026-01-0{number}"))
    report = check(folder)
    assert {row.name: row.issues for row in report.rows} == dict.fromkeys(sorted(runs), ())
    build(folder, folder / "site")
    for name in runs:
        assert (folder / "site" / "methods" / f"{name}.html").is_file()
    made = json.loads((folder / "site" / DATA).read_bytes())["ranks"]
    return {name: (rank["low"], rank["high"]) for name, rank in made.items()}


def alone(run: Path, method: str, folder: Path) -> Path:
    """Write what an evaluation has of one method; return the folder."""
    archive, files = read_archive(run), judging_of(run).protocol().archive.files
    folder.mkdir()
    for name in files:
        if (run / name).is_file():
            shutil.copyfile(run / name, folder / name)
    about = archive.manifest.subject["methods"][method]
    manifest = archive.manifest.model_copy(update={"subject": {"methods": {method: about}}})
    write_archive(folder, manifest, [each for each in archive.judgements if each.method in (None, method)])
    return folder


@pytest.mark.slow
def test_board_of_pictures_when_built_ranks_methods_and_counts_what_is_valid(tmp_path: Path) -> None:
    if not REPLAYS.is_dir():
        pytest.skip("the suite runs against an installed wheel, which has no tests")
    with tarfile.open(REPLAYS / "evaluate-images.tar.xz") as packed:
        packed.extractall(tmp_path / "old", filter="data")
    runs = {name: alone(tmp_path / "old/run", name, tmp_path / name) for name in ("model-a", "model-b")}
    made = ranks(tmp_path / "board", runs, release=tmp_path / "old/judged", rank_by="csd_self")
    assert set(made) == set(runs)
    assert {low for low, _ in made.values()} <= {1, 2}


@pytest.mark.slow
def test_board_of_episodes_when_built_has_a_row_for_each_method(tmp_path, monkeypatch):
    pytest.importorskip("av")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    episodes = (written_episode(), written_episode("ep_b", SECOND))
    faults: dict[str, dict[str, Fault]] = {
        "ep_a/2:2": {"Ana": "changed"}, "ep_a/2:3": {"the red cup": "faded"},
    }  # fmt: skip
    write_episodes(tmp_path / "set", episodes)
    write_outputs(tmp_path / "good", episodes, frames=8)
    write_outputs(tmp_path / "poor", episodes, faults, frames=8)
    (tmp_path / "poor/ep_a/002_001.mkv").unlink()
    runs = {name: tmp_path / f"run-{name}" for name in ("good", "poor")}
    with ModelServer(episode_judge.answer) as server:
        price = {"base_url": server.openai_url, "concurrency": 1, "prices": {"input": 1.0, "output": 2.0}}
        for name, run in runs.items():
            options = EpisodeOptions(
                judges=["openai:one"], models={"openai:one": price}, settings=SETTINGS, device="cpu",
                workers=0, pillars="2,3", created_at="2026-01-01T00:00:00Z",
            )  # fmt: skip
            EVALUATING.evaluate(tmp_path / "set", [tmp_path / name], run, options)
    made = ranks(tmp_path / "board", runs, release=tmp_path / "set", rank_by="intra_face_fidelity")
    assert made == {"good": (1, 2), "poor": (1, 2)}, "two episodes tell nobody apart"
    (row,) = (row for row in check(tmp_path / "board").rows if row.name == "good")
    assert row.scores["intra_face_fidelity"].value == pytest.approx(episode_judge.GOOD / 10)


# -- The pages of a leaderboard as a static Space, put on a loopback Hub by the real client


@pytest.mark.slow
def test_site_when_uploaded_is_a_static_space_with_all_its_files(world, monkeypatch):
    world.submit("model-a")
    site = world.folder / "site"
    build(world.folder, site)
    head = yaml.safe_load((site / "README.md").read_text("utf-8").split("---")[1])
    assert head["sdk"] == "static"
    assert (site / head["app_file"]).is_file()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with HubServer() as hub:
        api = HfApi(hub.url, token=TOKEN)
        api.create_repo("user/board", repo_type="space", space_sdk="static")
        api.upload_folder(repo_id="user/board", repo_type="space", folder_path=site)
        there = hub.files("spaces/user/board")
    files = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        name: content for name, content in there.items() if name != ".gitattributes"
    }
