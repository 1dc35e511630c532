"""Evaluations that were asked as a published protocol asks are scored by its code's definitions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.evaluation.entities.judging.official import PUBLISHED as OF_EPISODES
from fabula.evaluation.entities.scoring import SCORING as EPISODES
from fabula.evaluation.entities.scoring import definitions_of as episode_definitions
from fabula.evaluation.protocol import Chosen
from fabula.evaluation.shots.official import PUBLISHED as OF_IMAGES
from fabula.evaluation.shots.scores import ImageScores
from fabula.evaluation.shots.scoring import SCORING as IMAGES
from fabula.kinds.evaluations import compare, definitions_said, score

NAME = "vistorybench@514cc31"


def named(folder: Path, preset: str | None) -> Path:
    """Write into an evaluation under which protocol its judges were asked."""
    path = folder / "evaluation.json"
    document = json.loads(path.read_text())
    document["protocol"]["preset"] = None if preset is None else {"name": preset, "departures": []}
    path.write_text(json.dumps(document))
    return folder


def scored(folder: Path, *define: str) -> ImageScores:
    made = score(folder, {"define": define, "resamples": 0})
    assert isinstance(made, ImageScores)
    return made


def test_scores_when_asked_as_published_are_the_codes_and_what_is_given_wins(
    evaluate: Callable[..., object], model_x: Path, copies: Path, tmp_path: Path
) -> None:
    evaluate(model_x, copies, metrics="cids,occm")
    folder, code = tmp_path / "run", ("cids", "copy-paste", "occm", "csd", "alignment")
    ours = scored(folder)
    chosen = scored(folder, *(f"{name}=code" for name in code))
    assert not list(definitions_said(folder)) and set(ours.definitions.all().values()) & {"paper"}
    named(folder, NAME)
    official = scored(folder)
    assert official.as_json() == chosen.as_json() != ours.as_json()
    (line,) = definitions_said(folder)
    assert line.startswith(f"definitions of the protocol {NAME}: --define cids=code")
    mine = scored(folder, "occm=paper", "least=0.1").definitions
    assert (mine.all()["occm"], mine.all()["cids"], mine.least) == ("paper", "code", 0.1)
    assert "cids=code" in "\n".join(compare(folder, folder, {"resamples": 0}).lines())
    assert not list(definitions_said(named(folder, "vistorybench@other")))


@pytest.mark.parametrize(("scoring", "published"), [(IMAGES, OF_IMAGES), (EPISODES, OF_EPISODES)])
def test_protocols_when_they_have_definitions_are_those_that_can_be_asked(
    scoring: object, published: object
) -> None:
    assert set(scoring.published) == set(published.presets)  # type: ignore[attr-defined]


def test_episodes_when_asked_as_published_are_aggregated_as_the_code_does() -> None:
    (options,) = EPISODES.published.values()
    assert episode_definitions(Chosen(options)).coverage == "code"
