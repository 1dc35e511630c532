"""fabula memory build: a bank from the command line, forecast, made, gone on with, or refused."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.releases.loading import Release
from fabula.studies.memory.bank import read_bank
from fabula.testing.compass_stories import MarksJudge, compass_release, draw_candidates, loses_share
from fabula.testing.memory_model import MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import write_episodes

SMALL = ("--set", "draw_references.portrait=[256,320]", "--set", "draw_references.square=[256,256]")


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "set")


def test_build_when_only_forecast_counts_calls_and_makes_nothing(
    fabula_command: Any, episodes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = fabula_command(
        "memory", "build", episodes, "--image", "image:drawn:faithful", "--viewer", "openai:gpt-4.1",
        "--dry-run", "--json", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    budget = json.loads(done.stdout)["budget"]
    # Of each type two in episode a, one in b: 3 and 3 portraits of five candidates, 3 panoramas.
    assert (budget["characters"], budget["locations"], budget["objects"], budget["alone"]) == (3, 3, 3, 3)
    assert (budget["pictures"], budget["most_pictures"]) == (33, 99) and budget["looks"] == 12
    assert not out.exists()


def test_build_when_run_tells_what_came_of_it_and_the_same_command_goes_on(
    fabula_command: Any, episodes: Path, tmp_path: Path
) -> None:
    out, model = tmp_path / "run", MemoryModel({"the old ladder": "The Garden"})
    with ModelServer(model) as server:
        url = server.openai_url
        command = (
            "memory", "build", episodes, "--image", f"image:{url}#painter", "--agent", f"{url}#agent",
            "--candidates", 2, "--episode", "ep_a", "--workers", 0, "--out", out, *SMALL,
        )  # fmt: skip
        done = fabula_command(*command)
        assert done.returncode == 0, done.stderr
        assert "5 verified, 1 part_of" in done.stdout and "bank.html" in done.stdout
        asked = sum(model.asked.values())
        again = fabula_command(*command)
        assert again.returncode == 0 and sum(model.asked.values()) == asked
    bank = read_bank(out)
    assert [episode.record.episode_id for episode in bank.episodes] == ["ep_a"]


def test_build_when_no_model_is_named_says_what_to_do(
    fabula_command: Any, episodes: Path, tmp_path: Path
) -> None:
    done = fabula_command("memory", "build", episodes, "--out", tmp_path / "run")
    assert done.returncode != 0 and "--image" in done.stderr and "Traceback" not in done.stderr
    words = fabula_command(
        "memory", "build", episodes, "--text-only", "--workers", 0, "--out", tmp_path / "w"
    )
    assert words.returncode == 0 and "9 text_only" in words.stdout


# fabula baseline compass: forecasts, frames that somebody makes, a frozen file and what it refuses.


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return compass_release(tmp_path_factory.mktemp("compass") / "release", 2, 2)


@pytest.fixture(scope="module")
def server(release: Release) -> Iterator[ModelServer]:
    with ModelServer(MarksJudge(release.records)) as running:
        yield running


@pytest.fixture(scope="module")
def boards(release: Release) -> Path:
    return draw_candidates(release.path.parent / "model-x", release.records, loses_share(0.5))


@pytest.fixture
def compass(
    fabula_command: Callable[..., Any], release: Release, boards: Path, server: ModelServer
) -> Callable[..., Any]:
    def run(verb: str, *options: object) -> Any:
        return fabula_command(
            "baseline", "compass", verb, "--release", release.path, "--outputs", boards, "--judge",
            f"{server.openai_url}#one", "--coverage", "drawn-marks", "--copies", "pixels", "--workers", 0,
            "--created-at", "2026-01-01T00:00:00Z", *options,
        )  # fmt: skip

    return run


def test_compass_when_only_forecast_tells_calls_and_pictures_and_asks_nobody(
    compass: Callable[..., Any], server: ModelServer, tmp_path: Path
) -> None:
    before = len(server.log)
    done = compass("tune", "--dry-run", "--json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    # 2 stories, 16 questions, 3 seeds
    assert json.loads(done.stdout)["arms"]["tuning"]["candidates"] == 2 * 16 * 3
    done = compass("apply", "--dry-run", "--frozen", tmp_path / "none.json", "--arm", "full", "--arm", "base")
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout and "base" in done.stdout and "bridge-only" not in done.stdout
    assert len(server.log) == before
    assert not (tmp_path / "out").exists()
