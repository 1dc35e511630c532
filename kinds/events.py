"""StoryEval: suites of event prompts."""

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
    from ..releases.events.form import RULES

    return RULES


def _release() -> "ReleaseForm":
    from ..releases.events.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from ..builders.events.building import DRAFTING

    return DRAFTING


def _protocol() -> "Protocol":
    from ..evaluation.events.requests import PROTOCOL

    return PROTOCOL


def _evaluating() -> "Evaluating":
    from ..evaluation.events.requests import EVALUATING

    return EVALUATING


def _scoring() -> "Scoring":
    from ..evaluation.events.scoring import SCORING

    return SCORING


def _study() -> "Study":
    from ..people.events import STUDY

    return STUDY


MARKS = Marks(("prompts.jsonl",), suffix=".json")
KIND = Kind(
    "events",
    _release,
    _drafting,
    (Judging("events", _protocol, _study, _scoring, _evaluating),),
    rules=_rules,
    marks=MARKS,
)
