"""People's answers to the questions of a release, as tables of who was right about what."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..evaluation.recoverability.matching import Key, accepted
from ..schemas.human import HumanRow
from ..schemas.katha import Question
from ..schemas.text import normalize_answer
from .resample import Floats

Unit = tuple[object, ...]
CONDITIONS = ("text", "image", "text_image")


@dataclass(frozen=True)
class Answered:
    """Who was right about what under one condition.

    Attributes:
        right: shape (people, questions), how many answers of the person were accepted (several with seeds).
        given: the same shape, how many there are.
    """

    right: Floats
    given: Floats

    def of(self, places: NDArray[np.int64]) -> "Answered":
        """Return the same for some of the questions."""
        return Answered(self.right[:, places], self.given[:, places])


@cache
def _key(gold: str, answers: tuple[str, ...]) -> Key:
    return Key("", gold, frozenset(map(normalize_answer, (gold, *answers))) - {""}, frozenset())


def is_right(row: HumanRow, question: Question) -> bool:
    """Return whether an answer is accepted after normalisation (KathaTrace, Eq. 56).

    Unclear is not, unless it is among the accepted answers.
    """
    return accepted(_key(question.gold_answer, question.accepted_answers), row.answer or "")


def shown(condition: str, method: str) -> str | None:
    """Return the method that lines under a condition name: none under text."""
    return None if condition == "text" else method


def asked(rows: Sequence[HumanRow], condition: str, method: str) -> list[HumanRow]:
    """Return the answers about a method under a condition, without repeated controls."""
    wanted = shown(condition, method)
    return [
        row
        for row in rows
        if row.kind == "answer" and row.condition == condition and row.method == wanted and not row.repeat
    ]


def tabulated(
    rows: Iterable[HumanRow],
    questions: Mapping[str, Question],
    people: Sequence[str],
    units: Sequence[Unit],
    key: Callable[[HumanRow], Unit] = lambda row: (row.item,),
) -> Answered:
    """Return answers as tables of people and units; those about other units are left out.

    Args:
        rows: lines of kind ``answer``.
        questions: question id -> question.
        people: who may have answered, in the order of the tables.
        units: what was asked, in the order of the tables.
        key: the unit that a line is about; the question alone, if not given.
    """
    who = {name: place for place, name in enumerate(people)}
    what = {unit: place for place, unit in enumerate(units)}
    right, given = np.zeros((len(people), len(units))), np.zeros((len(people), len(units)))
    for row in rows:
        unit = what.get(key(row))
        if unit is not None:
            given[who[row.rater], unit] += 1
            right[who[row.rater], unit] += is_right(row, questions[str(row.item)])
    return Answered(right, given)


def majority(votes: Sequence[bool]) -> bool | None:
    """Return what more than half say; None at a tie or without votes."""
    lead = 2 * sum(votes) - len(votes)
    return None if lead == 0 else lead > 0


def majorities(
    rows: Sequence[HumanRow], questions: Mapping[str, Question], condition: str, method: str
) -> dict[str, bool | None]:
    """Return question id -> whether the majority of people was right, None at a tie."""
    votes: dict[str, list[bool]] = {}
    for row in asked(rows, condition, method):
        votes.setdefault(str(row.item), []).append(is_right(row, questions[str(row.item)]))
    return {item: majority(found) for item, found in votes.items()}
