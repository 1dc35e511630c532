"""fabula baseline compass: forecasts, frames that somebody makes, a frozen file and what it refuses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.baselines.compass.frames import WANTED
from fabula.releases.loading import Release
from fabula.testing.compass_stories import MarksJudge, compass_release, draw_candidates, loses_share
from fabula.testing.model_server import ModelServer


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


def test_compass_when_tuned_and_applied_writes_arms_and_refuses_its_own_stories(
    compass: Callable[..., Any], tmp_path: Path
) -> None:
    renderer = ("--renderer", "image:drawn:faithful")
    done = compass("tune", *renderer, "--out", tmp_path / "tuned")
    assert done.returncode == 0, done.stderr
    assert "frozen: " in done.stdout and "calls to select and repair" in done.stderr
    frozen = tmp_path / "tuned" / "frozen.json"
    done = compass("apply", "--frozen", frozen, *renderer, "--out", tmp_path / "own", "--split", "validation")
    assert done.returncode == 1
    assert "tuned on 2 stories that it is to be applied to" in done.stderr
    done = compass("tune", *renderer, "--out", tmp_path / "tests", "--split", "public_test")
    assert done.returncode == 2
    assert "must not be tuned on" in done.stderr
    arms = ("--arm", "base", "--arm", "full", "--arm", "rerank-only")
    done = compass("apply", "--frozen", frozen, *renderer, *arms, "--json", "--out", tmp_path / "applied")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document["outputs"]) == {"base", "full", "rerank-only"}
    assert (tmp_path / "applied" / "outputs" / "full" / "outputs.json").is_file()
    frozen.write_text(frozen.read_text().replace('"gamma"', '"gamma" '))
    assert (
        compass("apply", "--frozen", frozen, *renderer, *arms, "--out", tmp_path / "applied").returncode == 0
    )
    changed = json.loads(frozen.read_text())
    changed["setting"]["delta"] += 0.1
    frozen.write_text(json.dumps(changed))
    done = compass("apply", "--frozen", frozen, *renderer, "--out", tmp_path / "applied")
    assert done.returncode == 1
    assert "changed after it was frozen" in done.stderr


def test_compass_when_frames_are_missing_lists_them_and_goes_on_when_they_are_there(
    compass: Callable[..., Any], boards: Path, tmp_path: Path
) -> None:
    frames = tmp_path / "frames"
    done = compass("tune", "--frames", frames, "--out", tmp_path / "tuned")
    assert done.returncode == 3
    assert f"frames are not there; {WANTED} lists them" in done.stderr
    wanted = [json.loads(line) for line in (frames / WANTED).read_text().splitlines()]
    assert all(row["prompt"] and row["file"].endswith(f"seed_{row['seed']}.png") for row in wanted)
    picture = next(boards.rglob("05.png")).read_bytes()
    for row in wanted:
        (frames / row["file"]).parent.mkdir(parents=True, exist_ok=True)
        (frames / row["file"]).write_bytes(picture)
    done = compass("tune", "--frames", frames, "--out", tmp_path / "tuned", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["search"]["stories"] == 2
    for options in ((), ("--frames", frames, "--renderer", "image:drawn:faithful")):
        done = compass("tune", *options, "--out", tmp_path / "tuned")
        assert done.returncode == 2
        assert "--frames, --renderer" in done.stderr
