"""fabula evaluate katha: the budget first, then the judges; exit codes for limits and missing things."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.calls import answered
from fabula.engine.journal import NAME as JOURNAL
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, read_archive
from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.endurance import rounds
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release")


@pytest.fixture
def boards(tmp_path: Path, release: Release) -> Path:
    return draw_outputs(tmp_path / "drawn", release.records)


@pytest.fixture
def server(release: Release) -> Iterator[ModelServer]:
    with ModelServer(JudgeModel(release.records)) as running:
        yield running


@pytest.fixture
def evaluate(fabula_command, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run the command in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def run(*options: object) -> Any:
        return fabula_command("evaluate", "katha", "--release", release.path, "--workers", 0, *options)

    return run


def test_dry_run_when_there_are_outputs_tells_tokens_and_cost_and_asks_nobody(
    evaluate, boards: Path, server: ModelServer
) -> None:
    judge = f"{server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nprices = {{input = 1.0, output = 2.0}}\n')
    done = evaluate("--outputs", boards, "--judge", judge, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["budget"]["total"] == told["plan"]["calls"] == 115
    assert told["plan"]["cost"] > 0
    assert server.count == 0


def test_evaluation_when_run_tells_the_budget_first_and_can_be_repeated_shown_and_retried(
    evaluate, fabula_command, boards: Path, server: ModelServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    options = ("--outputs", boards, "--judge", f"{server.openai_url}#one", "--out", run)
    done = evaluate(*options)
    assert done.returncode == 0, done.stderr
    assert "115 calls of 1 judge: 35 text, 35 image, 35 text+image, 10 contrast" in done.stderr
    assert (
        "drawn: 5 of 5 storyboards valid, 35 questions scanned for leaks, 0 storyboards held back"
        in done.stdout
    )
    assert f"next: fabula score {run}" in done.stdout
    assert len(read_archive(run).judgements) == 115
    before = (run / JUDGEMENTS).read_bytes(), (run / EVALUATION).read_bytes()
    assert evaluate(*options, "--json").returncode == 0
    assert fabula_command("run", "retry", run, "--workers", 0).returncode == 0
    assert server.count == 115
    assert ((run / JUDGEMENTS).read_bytes(), (run / EVALUATION).read_bytes()) == before
    status = fabula_command("run", "status", run)
    assert status.returncode == 0 and "judge_images" in status.stdout
    shown = fabula_command("run", "show", run, "drawn/kb25k_0001")
    assert shown.returncode == 0 and "judge_contrasts" in shown.stdout
    about = ("--run", run, "--story", "drawn/kb25k_0001")
    rendered = fabula_command("prompts", "render", "judge/question_image", *about)
    assert rendered.returncode == 0, rendered.stderr
    assert "Image 5" in rendered.stdout and "[image/jpeg]" in rendered.stdout


def test_export_when_an_evaluation_is_copied_can_be_scored_with_its_release(
    evaluate, fabula_command, boards: Path, server: ModelServer, release: Release, tmp_path: Path
) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    done = evaluate("--outputs", boards, "--judge", f"{server.openai_url}#one", "--out", run)
    assert done.returncode == 0, done.stderr
    exported = fabula_command("export", "archive", run, "--out", copy, "--json")
    assert json.loads(exported.stdout)["judgements"] == 115
    assert str(tmp_path) not in (copy / EVALUATION).read_text()
    assert (copy / JUDGEMENTS).read_bytes() == (run / JUDGEMENTS).read_bytes()
    scored = fabula_command("score", copy, "--release", release.path, "--json", "--resamples", 10)
    assert scored.returncode == 0, scored.stderr
    assert fabula_command("export", "archive", run, "--out", copy).returncode == 2


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("least", range(40, 40 + rounds(10)))
def test_evaluation_when_killed_goes_on_and_loses_only_what_was_under_way(
    evaluate, starter: Any, boards: Path, server: ModelServer, release: Release, tmp_path: Path, least: int
) -> None:
    judge = f"{server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nconcurrency = 4\n')
    server.latency = 0.05
    options = ("--outputs", boards, "--judge", judge, "--out", tmp_path / "run")
    command = ("evaluate", "katha", "--release", release.path, *options, "--workers", "0")
    with Path(os.devnull).open("wb") as nowhere:
        process = starter.start(command, stdout=nowhere, stderr=nowhere)
    while server.count < least and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait()
    time.sleep(0.5)  # what was on its way has arrived
    before, kept = server.count, len(list(answered(tmp_path / "run" / JOURNAL)))
    assert least <= before < 115 and 0 < kept <= before
    server.latency = 0.0
    assert evaluate(*options).returncode == 0
    assert len(read_archive(tmp_path / "run").judgements) == 115
    assert server.count == before + 115 - kept  # only what was not on disk is asked again
    asked = Counter(exchange.asked.key for exchange in server.log)
    assert len(asked) == 115 and set(asked.values()) <= {1, 2}
