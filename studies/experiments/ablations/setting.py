"""A setting: what of the protocol is left out, and how; data and pure functions, no fork of the protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ....schemas.canonical import plain_fields
from ....schemas.katha import Question, StoryRecord
from ....schemas.values import Score
from ..measures.views import View

How = Literal["nothing", "questions", "averaging", "answers", "filter", "pairs", "evaluator"]
"""By what a setting leaves something out: fewer questions, another mean, fewer accepted answers, no filter,
no contrastive pairs, or the questions of another evaluator."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting."""

    name: str  # in files
    title: str  # in tables
    removes: str  # what is left out, in a sentence
    how: How  # by what
    evaluator: str = "katha"  # whose evaluation is read
    # makes the setting's view of the evaluator's; None to leave it
    cut: Callable[[View], View] | None = field(default=None, repr=False)
    # makes of a record what answers are compared with; None to leave it
    record: Callable[[StoryRecord], StoryRecord] | None = field(default=None, repr=False)

    def of(self, view: View) -> View:
        """Return an evaluator's view as the setting has it."""
        return view if self.cut is None else self.cut(view)


@dataclass(frozen=True)
class Measured:
    """What was measured in a setting."""

    name: str  # of the setting
    title: str  # in tables
    removes: str  # what is left out
    how: How  # by what
    scores: Mapping[str, Score]  # name of a value -> the value; over several methods their mean
    # method -> text, image, gap and pair_accuracy
    methods: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader must know of it

    def as_json(self) -> dict[str, object]:
        """Return it as plain JSON."""
        return plain_fields(self)


def keeping(wanted: Callable[[Question], bool]) -> Callable[[View], View]:
    """Return the cut that keeps some questions only."""

    def cut(view: View) -> View:
        kept = {
            question.question_id
            for record in view.judged.items.records
            for question in record.questions
            if wanted(question)
        }
        chosen = np.array([key.question_id in kept for key in view.judged.items.keys], dtype=bool)
        return replace(view, kept=view.kept & chosen)

    return cut


def averaging(*dimensions: str) -> Callable[[View], View]:
    """Return the cut that averages over some dimensions only; over none: all questions count alike."""
    return lambda view: replace(view, dimensions=dimensions)


def unfiltered(view: View) -> View:
    """Return a view in which questions that nobody can answer stay in the score."""
    return replace(view, chosen="raw")


def uncontrasted(view: View) -> View:
    """Return a view without contrastive pairs."""
    return replace(view, contrasts=False)


def both(first: Callable[[View], View], second: Callable[[View], View]) -> Callable[[View], View]:
    """Return the cut that makes two cuts, one after the other."""
    return lambda view: second(first(view))


def canonical_only(record: StoryRecord) -> StoryRecord:
    """Return a record whose questions accept their canonical answer alone."""
    questions = tuple(
        question.model_copy(update={"accepted_answers": (question.gold_answer,)})
        for question in record.questions
    )
    return record.model_copy(update={"questions": questions})
