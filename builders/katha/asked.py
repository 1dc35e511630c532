"""A question in the making, and the answers that it accepts."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...schemas.text import contains_phrase, normalize_answer
from ..text.reading import LONGEST_CLAUSE, StoryView
from ..text.statements import Statement
from ..text.words import content_words

_FORMS = 5
"""Accepted answers that the rules give to one question at most."""


def accepted_answers(gold: str, question: str, *, extra: Iterable[str] = ()) -> tuple[str, ...] | None:
    """Return the accepted answers, the canonical one first, or None where it may not be asked for.

    Every answer has a content word, none is contained in the question, and no two are equal after
    normalisation. An answer that is too long to be compared is not asked for.
    """
    if len(gold.split()) > LONGEST_CLAUSE:
        return None
    asked = normalize_answer(question)
    kept: dict[str, str] = {}
    for form in (gold, *extra):
        normal = normalize_answer(form)
        if len(normal) > 1 and content_words(form) and not contains_phrase(asked, normal):
            kept.setdefault(normal, form)
    return tuple(kept.values())[:_FORMS] if normalize_answer(gold) in kept else None


def answer_forms(view: StoryView, statement: Statement) -> list[str]:
    """Return shorter ways to say a clause: with a pronoun, and what is said of the subject alone."""
    forms = [f"{view.referents.pronoun(statement.reading.subject)} {statement.plain_predicate}"]
    if len(statement.plain_predicate.split()) > 1:
        forms.append(statement.plain_predicate)
    return [form for form in forms if not form.startswith(" ")]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the making; scenes are indices from 0."""

    kind: str
    question: str
    gold: str
    accepted: tuple[str, ...]
    scenes: tuple[int, ...]
    evidence: str
    transition: tuple[int, int] | None = None
    scene: int | None = None


def scene_target(first: int, second: int) -> tuple[tuple[int, int] | None, int | None]:
    """Return the target transition for two adjacent scenes, else the target scene."""
    return ((first, second), None) if second - first == 1 else (None, second)
