"""What evaluations of storyboards start from: a drawn release, its storyboards, and a judge at a server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release")


@pytest.fixture
def boards(tmp_path: Path, release: Release) -> Path:
    return draw_outputs(tmp_path / "drawn", release.records)


@pytest.fixture
def judge(release: Release) -> JudgeModel:
    return JudgeModel(release.records)


@pytest.fixture
def server(judge: JudgeModel) -> Iterator[ModelServer]:
    with ModelServer(judge) as running:
        yield running
