"""How the votes on one thing stand: what reviewers agree on, and whether somebody has to decide. Pure.

Question: do the votes on a unit of a record decide it, or does it go to an adjudicator?
Formula: everybody says the same, with the same corrections: it is decided. More than half do, at least two: a
    majority, which decides where the protocol has consensus. Whoever chose what counts has to have asked for
    the same corrections, else they conflict.
Source: KathaTrace, section A.11 and Table 19.
Departures: Table 19 lets two of three decide, and A.11 sends disagreement to adjudication; the protocol says
    which (its ``consensus``; without it 2 : 1 is decided by an adjudicator). Where an answer asks for a
    correction and nobody gave one, somebody decides, too: the paper does not say.
Example: three say ``corrected``, two of them with the same new label: the corrections conflict, whatever the
    protocol. Two say ``correct`` and one ``corrected``: a majority. One of three says ``ambiguous``: somebody
    decides.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...schemas.canonical import Json, canonical_text
from .corrections import listed_edits, tidy
from .task import UNCLEAR, Question

State = Literal["unanimous", "majority", "conflict", "ambiguous", "unusable"]
LEAST_MAJORITY = 2
"""So many reviewers at least are a majority."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one reviewer said."""

    reviewer: str  # pseudonym
    answer: Json  # the answer that was chosen
    # path -> new value of the corrections that go with it
    edits: Mapping[str, Json] = field(default_factory=dict)
    note: str = ""  # what was written beside it

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "reviewer": self.reviewer, "answer": self.answer, "edits": listed_edits(self.edits),
            "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """How votes stand."""

    # ``unanimous``; ``majority``; ``conflict``, where there is none, or corrections differ; ``ambiguous`` or
    # ``unusable``, where a reviewer says so
    state: State
    answer: Json  # what most reviewers said; None where there is no majority
    edits: Mapping[str, Json]  # path -> new value of the corrections that they agree on
    # why somebody has to decide, one word each (:data:`REASONS`); none where the votes do
    why: tuple[str, ...]


REASONS = {
    "unusable": "a reviewer says that it cannot be used as it is",
    "ambiguous": "a reviewer says that it is ambiguous",
    "no_majority": "no answer has a majority",
    "corrections": "the corrections differ",
    "uncorrected": "nobody says how it is to be corrected",
    "majority": "the reviewers do not all agree",
}
"""Why somebody has to decide -> the same in words, the gravest first."""
_STATES: Mapping[str, State] = {
    "unusable": "unusable", "ambiguous": "ambiguous", "no_majority": "conflict", "corrections": "conflict",
    "majority": "majority",
}  # fmt: skip


def verdict_of(
    question: Question, said: Sequence[Said], *, consensus: bool, correcting: Collection[str | int] = ()
) -> Verdict:
    """Return how the votes on one thing stand.

    ``said``: what each reviewer said; at least one.
    """
    texts = [
        f"'{each.answer}" if isinstance(each.answer, str) else canonical_text(each.answer) for each in said
    ]
    (text, votes), *_ = Counter(texts).most_common(1)
    agreed = votes == len(said)
    leading = [each for each, own in zip(said, texts, strict=True) if own == text]
    has_majority = agreed or (votes >= LEAST_MAJORITY and 2 * votes > len(said))
    same_edits = len({_edits_text(each) for each in leading}) == 1
    agreeing = leading[0].edits if has_majority and same_edits else {}
    edits = {path: tidy(new) for path, new in agreeing.items()}
    answers = [each.answer for each in said]
    reasons = {
        "unusable": any(answer in question.unusable for answer in answers),
        "ambiguous": any(answer in (*question.ambiguous, UNCLEAR) for answer in answers),
        "no_majority": not has_majority,
        "corrections": has_majority and not same_edits,
        "uncorrected": has_majority and same_edits and not edits and leading[0].answer in correcting,
        "majority": has_majority and not agreed,
    }
    holding = [reason for reason in REASONS if reasons[reason]]
    states = (_STATES[reason] for reason in holding if reason in _STATES)
    state: State = next(states, "unanimous")
    why = tuple(reason for reason in holding if not (reason == "majority" and consensus))
    return Verdict(state, leading[0].answer if has_majority else None, edits, why)


def _edits_text(said: Said) -> str:
    return canonical_text({path: tidy(new) for path, new in said.edits.items()}) if said.edits else ""
