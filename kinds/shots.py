"""ViStoryBench: bilingual shot scripts with characters and their reference images."""

from typing import TYPE_CHECKING

from .kind import Judging, Kind, Marks

if TYPE_CHECKING:
    from ..builders.drafting import Drafting
    from ..evaluation.protocol import Protocol, Scoring
    from ..evaluation.running import Evaluating
    from ..people.study import Study
    from ..releases.form import ReleaseForm
    from ..validators.rules import RuleSet


def _rules() -> "RuleSet":
    from ..releases.shots.imports import RULES

    return RULES


def _release() -> "ReleaseForm":
    from ..releases.shots.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from ..builders.shots.building import DRAFTING

    return DRAFTING


def _protocol() -> "Protocol":
    from ..evaluation.shots.requests import PROTOCOL

    return PROTOCOL


def _evaluating() -> "Evaluating":
    from ..evaluation.shots.requests import EVALUATING

    return EVALUATING


def _scoring() -> "Scoring":
    from ..evaluation.shots.scoring import SCORING

    return SCORING


def _study() -> "Study":
    from ..people.shots import STUDY

    return STUDY


MARKS = Marks(("ViStory/*/story.json", "*/story.json"))
KIND = Kind(
    "shots", _release, _drafting, (Judging("images", _protocol, _study, _scoring, _evaluating),),
    ("import-shots",), rules=_rules, marks=MARKS,
)  # fmt: skip
