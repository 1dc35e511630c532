"""Cost limits and shares of limits as the command line takes them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app


def said(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 2
    return " ".join(result.output.split())


@pytest.fixture
def build(tmp_path: Path) -> tuple[str, ...]:
    source = tmp_path / "stories.jsonl"
    story = {"title": "A", "language": "en", "text": "A fox ran. It slept.", "source_collection": "c"}
    source.write_text(json.dumps({**story, "rights_status": "public_domain_or_rights_compatible"}) + "\n")
    model = ("--model", "http://127.0.0.1:1/v1#toy")
    return ("build", "katha", str(source), *model, "--out", str(tmp_path / "run"))


def test_limit_when_its_stage_is_misspelt_is_refused_with_the_stages(build: tuple[str, ...]) -> None:
    assert "draft_scenes" in said(*build, "--max-cost", "5", "--max-cost", "draft_scene=1")


def test_limit_when_it_is_no_number_is_refused(build: tuple[str, ...]) -> None:
    assert "expected USD such as 5, or STAGE=USD, found draft_scenes=much" in said(
        *build, "--max-cost", "draft_scenes=much"
    )


def test_limit_when_a_price_is_unknown_is_refused_for_the_stage_alone(build: tuple[str, ...]) -> None:
    assert "price of this model is not known" in said(*build, "--max-cost", "draft_scenes=1")


def test_share_when_it_is_none_is_refused(build: tuple[str, ...]) -> None:
    assert "--limit-share: expected a share such as 1/4" in said(*build, "--limit-share", "4")


def test_study_when_a_stage_is_limited_is_refused(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text("")
    assert "valid number" in said("experiment", "run", str(study), "--max-cost", "judge_text=1")
