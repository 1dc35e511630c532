"""KathaBench: stories with scenes, transitions, questions and variants."""

from pathlib import Path
from typing import TYPE_CHECKING

from .kind import Judging, Kind, Marks

if TYPE_CHECKING:
    from ..builders.drafting import Drafting
    from ..engine.running import RunKind
    from ..evaluation.protocol import Protocol, Scoring
    from ..evaluation.running import Evaluating
    from ..people.study import Study
    from ..releases.form import ReleaseForm
    from ..releases.loading import Release
    from ..validators.rules import RuleSet


def _rules() -> "RuleSet":
    from ..validators.katha.validation import RULES

    return RULES


def _release() -> "ReleaseForm":
    from ..releases.katha.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from ..builders.katha.building import DRAFTING

    return DRAFTING


def _protocol() -> "Protocol":
    from ..evaluation.katha.requests import PROTOCOL

    return PROTOCOL


def _evaluating() -> "Evaluating":
    from ..evaluation.katha.requests import EVALUATING

    return EVALUATING


def _scoring() -> "Scoring":
    from ..evaluation.katha.scoring import SCORING

    return SCORING


def _study() -> "Study":
    from ..people.katha import STUDY

    return STUDY


def _stories(folder: Path) -> "Release":
    from ..releases.loading import load

    return load(folder)


def _audit() -> "RunKind":
    from ..audits.auditing import RUN

    return RUN


KIND = Kind(
    "katha", _release, _drafting, (Judging("katha", _protocol, _study, _scoring, _evaluating),), rules=_rules,
    marks=Marks(rest=True), stories=_stories, audit=_audit,
)  # fmt: skip
