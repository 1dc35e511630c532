"""How votes on one thing stand, worked by hand: every row of the adjudication rules (Table 19)."""

import pytest

from fabula.people.review.task import Option, Question
from fabula.people.review.verdicts import Said, verdict_of
from fabula.schemas.canonical import Json

LABEL = Question(
    name="moral_label", type="choice", title={"en": "?"}, ambiguous=("ambiguous",), adjudicated=True,
    options=tuple(Option(value=word, text={"en": word}) for word in ("correct", "corrected", "ambiguous")),
)  # fmt: skip
SCENES = Question(
    name="scene_sequence",
    type="choice",
    title={"en": "?"},
    unusable=("unusable",),
    adjudicated=True,
    options=tuple(Option(value=word, text={"en": word}) for word in ("valid", "flawed", "unusable")),
)
PATH = "$.moral_label"


def said(*answers: Json) -> list[Said]:
    """Return votes: an answer, or an answer with the label that it puts in place."""
    votes = []
    for number, answer in enumerate(answers, 1):
        word, label = answer if isinstance(answer, tuple) else (answer, None)
        votes.append(Said(f"r{number}", word, {} if label is None else {PATH: label}))
    return votes


# answers of three, whether a majority decides -> state, answer, corrections, why somebody decides
TABLE = [
    (("correct", "correct", "correct"), False, "unanimous", "correct", {}, ()),
    (("correct", "correct", "correct"), True, "unanimous", "correct", {}, ()),
    # two or more agree
    (("correct", "correct", ("corrected", "kindness")), True, "majority", "correct", {}, ()),
    (("correct", "correct", ("corrected", "kindness")), False, "majority", "correct", {}, ("majority",)),
    # a label is wrong, and they agree what is right
    ((("corrected", "kindness"),) * 3, False, "unanimous", "corrected", {PATH: "kindness"}, ()),
    ((("corrected", " kindness\n"), ("corrected", "kindness"), "correct"), True, "majority", "corrected",
     {PATH: "kindness"}, ()),
    # conflicting corrections go to somebody, whatever the protocol
    ((("corrected", "kindness"), ("corrected", "kindness"), ("corrected", "wisdom")), True, "conflict",
     "corrected", {}, ("corrections",)),
    ((("corrected", "kindness"), ("corrected", "wisdom"), "correct"), True, "conflict", "corrected", {},
     ("corrections",)),
    # explicit ambiguity of any reviewer
    (("correct", "correct", "ambiguous"), True, "ambiguous", "correct", {}, ("ambiguous",)),
    (("ambiguous", "ambiguous", "ambiguous"), False, "ambiguous", "ambiguous", {}, ("ambiguous",)),
    # nobody agrees
    (("correct", ("corrected", "kindness"), "ambiguous"), True, "ambiguous", None, {},
     ("ambiguous", "no_majority")),
    # it is to be corrected, and nobody says how
    (("corrected", "corrected", "correct"), True, "majority", "corrected", {}, ("uncorrected",)),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "consensus", "state", "answer", "edits", "why"), TABLE)
def test_label_when_three_have_voted_stands_as_the_rules_say(
    answers: tuple[Json, ...],
    consensus: bool,
    state: str,
    answer: str | None,
    edits: Json,
    why: tuple[str, ...],
) -> None:
    verdict = verdict_of(LABEL, said(*answers), consensus=consensus, correcting=("corrected",))
    assert (verdict.state, verdict.answer, dict(verdict.edits), verdict.why) == (state, answer, edits, why)


@pytest.mark.parametrize(
    ("answers", "state", "answer", "why"),
    [
        (("unusable", "valid", "valid"), "unusable", "valid", ("unusable",)),
        (("unusable", "unusable", "unusable"), "unusable", "unusable", ("unusable",)),
        (("valid", "flawed", "unusable"), "unusable", None, ("unusable", "no_majority")),
        (("flawed", "flawed", "flawed"), "unanimous", "flawed", ("uncorrected",)),
    ],
)
def test_scenes_when_somebody_cannot_use_them_go_to_an_adjudicator(
    answers: tuple[str, ...], state: str, answer: str | None, why: tuple[str, ...]
) -> None:
    verdict = verdict_of(SCENES, said(*answers), consensus=True, correcting=("flawed",))
    assert (verdict.state, verdict.answer, verdict.why) == (state, answer, why)


@pytest.mark.parametrize(
    ("answers", "answer", "why"),
    [
        (("correct",), "correct", ()),
        (("correct", "corrected"), None, ("no_majority",)),  # 1 : 1 is no majority
        (("correct", "correct", "corrected", "corrected"), None, ("no_majority",)),
        (("correct", "correct", "correct", "corrected"), "correct", ()),
        (("correct", "correct", "corrected", "ambiguous", "ambiguous"), None, ("ambiguous", "no_majority")),
    ],
)
def test_majority_when_not_three_have_voted_is_more_than_half(
    answers: tuple[str, ...], answer: str | None, why: tuple[str, ...]
) -> None:
    verdict = verdict_of(LABEL, said(*answers), consensus=True)
    assert (verdict.answer, verdict.why) == (answer, why)


def test_verdict_when_votes_come_in_another_order_is_the_same() -> None:
    votes = said(("corrected", "kindness"), "correct", ("corrected", "kindness"))
    first, second = (verdict_of(LABEL, order, consensus=True) for order in (votes, votes[::-1]))
    assert first == second
    assert first.edits == {PATH: "kindness"}


def test_unclear_when_a_question_of_any_task_has_it_is_ambiguous() -> None:
    assert verdict_of(SCENES, said("valid", "valid", "unclear"), consensus=True).why == ("ambiguous",)
