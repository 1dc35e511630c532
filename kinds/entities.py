"""EntityBench: episodes with registries of entities and schedules of shots, from raw video."""

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
    from ..releases.entities.tree import RULES

    return RULES


def _release() -> "ReleaseForm":
    from ..releases.entities.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from ..builders.entities.building import DRAFTING

    return DRAFTING


def _protocol() -> "Protocol":
    from ..evaluation.entities.requests import PROTOCOL

    return PROTOCOL


def _study() -> "Study":
    from ..people.episodes import STUDY

    return STUDY


def _evaluating() -> "Evaluating":
    from ..evaluation.entities.requests import EVALUATING

    return EVALUATING


def _scoring() -> "Scoring":
    from ..evaluation.entities.scoring import SCORING

    return SCORING


MARKS = Marks(("data/scripts/*.json", "scripts/*.json"), worded=("*.json", b'"entity_schedule"'))
KIND = Kind(
    "entities", _release, _drafting, (Judging("episodes", _protocol, _study, _scoring, _evaluating),),
    ("import-entities",),
    rules=_rules, marks=MARKS,
)  # fmt: skip
