"""KathaBench: stories with scenes, transitions, questions and variants."""

from pathlib import Path
from typing import TYPE_CHECKING

from .kind import Judging, Kind, Marks, part

if TYPE_CHECKING:
    from ..releases.loading import Release


def _stories(folder: Path) -> "Release":
    from ..releases.loading import load

    return load(folder)


STORYBOARDS = Judging(
    "katha",
    part("evaluation.katha.requests:PROTOCOL"),
    part("people.katha:STUDY"),
    part("evaluation.katha.scoring:SCORING"),
    part("evaluation.katha.requests:EVALUATING"),
)
KIND = Kind(
    "katha",
    part("releases.katha.form:FORM"),
    part("builders.katha.building:DRAFTING"),
    (STORYBOARDS,),
    rules=part("validators.katha.validation:RULES"),
    marks=Marks(rest=True),
    stories=_stories,
    audit=part("people.audits.auditing:RUN"),
)
