"""What an evaluator is, as one value, and what its questions look like before they are a release."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ...schemas.canonical import Json
from ...schemas.katha import Question, StoryRecord
from ..study import MASTER_SEED
from .elements import Pool

By = Literal["rules", "model", "release"]
"""Who makes the questions: rules, a model, or nobody, as they are the release's own."""
Anchored = Literal["no", "partial", "yes"]


@dataclass(frozen=True)
class Asked:
    """A question of an evaluator.

    Attributes:
        question: as releases hold it.
        parents: ids of the questions that must be answered rightly for this one to count.
        chance: share of blind answers that are right, where the answer is one of some; None where it is open.
    """

    question: Question
    parents: tuple[str, ...] = ()
    chance: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "question": self.question.as_json(), "parents": list(self.parents), "chance": self.chance,
        }  # fmt: skip

    @classmethod
    def of_json(cls, row: Json) -> "Asked":
        """Return what :meth:`as_json` wrote."""
        return cls(Question.model_validate(row["question"]), tuple(row["parents"]), row["chance"])


@dataclass(frozen=True)
class Material:
    """What rules make questions of.

    Attributes:
        record: the story.
        pool: what other stories have, for wrong options.
        seed: of the order of options.
    """

    record: StoryRecord
    pool: Pool = field(repr=False)
    seed: int = MASTER_SEED


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """A way of telling how much of a story its pictures keep.

    Attributes:
        name: as it is written in studies.
        title: its name in tables.
        construction: how its questions are made, in a sentence.
        card: what else a reader must know of it; a sentence or more.
        by: who makes its questions where nothing else is asked for.
        anchored: whether its questions are about transitions, as Table 54 says it.
        dimensions: the dimensions that its questions are evidence of; with none, all questions count alike
            and the evaluator names no dimension.
        transitions: whether its questions say which transition they are about.
        contrasts: whether contrastive pairs are part of it.
        build: makes the questions by rules; None where there are no such rules.
        prompt: id of the prompt by which a model writes them; None where no model does.
        read: makes questions of a model's reply; raises BadReply.
    """

    name: str
    title: str
    construction: str
    card: str
    by: By
    anchored: Anchored
    dimensions: tuple[str, ...]
    transitions: bool = False
    contrasts: bool = False
    build: Callable[[Material], list[Asked]] | None = field(default=None, repr=False)
    prompt: str | None = None
    read: Callable[[Json, StoryRecord], list[Asked]] | None = field(default=None, repr=False)

    @property
    def reuses(self) -> bool:
        """Whether it is read off the judgements of the full protocol, so that nothing is judged again."""
        return self.by == "release"

    @property
    def localises(self) -> bool:
        """Whether it can say which of several dimensions was lost."""
        return len(self.dimensions) > 1
