"""Matching answers: normalisation, statuses, named matchers and those whose verdicts are archived."""

import random

import pytest

from fabula.errors import InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.matching import Key, Marker, accepted, exact, keyword, matcher_of
from fabula.evaluation.recoverability.token_f1 import token_f1


def key(gold="He is afraid.", *others):
    answers = frozenset({"he is afraid", *others})
    return Key("q", gold, answers, frozenset({"afraid"}))


def test_accepted_when_case_punctuation_and_space_differ_matches():
    assert accepted(key(), "  he is\tAFRAID!!")
    assert not accepted(key(), "he is very afraid")


def test_exact_when_case_differs_does_not_match():
    assert exact(key(), " He is afraid. ")
    assert not exact(key(), "he is afraid")


def test_keyword_when_half_of_the_longer_words_are_there_matches():
    one = Key("q", "The mouse frees the lion", frozenset(), frozenset({"the", "mouse", "frees", "lion"}))
    assert keyword(one, "the lion is free")  # the, lion: 2 of 4
    assert not keyword(one, "a lion")


@pytest.mark.parametrize("status", ["unclear", "omitted", "contradicted"])
def test_mark_when_the_status_is_uncertain_is_wrong(replied, status):
    marker = Marker(accepted)
    assert marker.marks(key(), "image", replied("he is afraid", "image", status)) == (False, True)


def test_mark_when_uncertainty_is_an_accepted_answer_is_right(replied):
    marker = Marker(accepted)
    said = replied("whatever", "image", "unclear")
    assert marker.marks(key("x", "unclear"), "image", said)[0]


@pytest.mark.parametrize(
    ("support", "status", "right"),
    [
        ("contradicted", "supported", True),
        ("contradicted", "omitted", True),
        ("contradicted", "contradicted", False),
        ("contradicted", "ambiguous", False),
        ("eq51", "omitted", False),
    ],
)
def test_mark_when_images_do_not_support_the_answer_follows_the_definition(replied, support, status, right):
    marker = Marker(accepted, support)
    said = replied("he is afraid", "text_image", status)
    assert marker.marks(key(), "text_image", said) == (right, True)


def test_matcher_when_archived_decides_from_its_own_verdicts(bench):
    made = bench(1)
    made.ask(lambda *_: False)
    for question_id, question in made.questions.items():
        verdict = {"matcher": "model", "of": "image", "answer": "nobody knows", "matched": True}
        made.line("match", question.story_id, question_id, "image", verdict, judge="matcher")
    scores = made.score(Definitions(matcher="model", resamples=0))
    assert scores.methods["m"].gaps["question"]["raw"].image.value == 1.0
    assert scores.definitions.as_json()["matcher"] == "model"


def test_matcher_when_a_verdict_is_missing_is_an_error(bench):
    made = bench(1)
    made.ask(lambda *_: False)
    question = next(iter(made.questions.values()))
    said = {"matcher": "model", "of": "image", "answer": "nobody knows", "matched": True}
    made.line("match", question.story_id, question.question_id, "image", said, judge="matcher")
    with pytest.raises(InputError, match="no verdict of the matcher 'model'"):
        made.score(Definitions(matcher="model", resamples=0))


# Token F1: hand-worked values, its threshold, and another implementation of the same formula.

LION = "the mouse frees the lion"
KEY = Key("q", "The mouse frees the lion.", frozenset({LION, "it is freed"}), frozenset())


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (LION, 1.0),
        ("the lion is free", 4 / 9),  # the, lion of 4 and 5 words
        ("lion the mouse the frees", 1.0),  # in another order
        ("the the the", 4 / 8),  # two of three, two of five
        ("mouse", 2 / 6),
        ("it is", 4 / 5),  # nearer to the other accepted answer
        ("nobody knows", 0.0),
        ("", 0.0),
    ],
)
def test_f1_when_worked_by_hand_is_that_of_the_nearest_accepted_answer(answer: str, value: float) -> None:
    assert token_f1(answer, KEY.accepted) == pytest.approx(value)


@pytest.mark.parametrize(
    ("matcher", "answer", "right"),
    [
        ("token-f1", "The LION, is free!", False),  # 0.44
        ("token-f1=0.4", "The LION, is free!", True),
        ("token-f1", "the the the", True),  # 0.5, the threshold itself
        ("token-f1=1", "lion the mouse the frees", True),
        ("token-f1=1", "the mouse frees a lion", False),
        ("token-f1=0", "mouse", True),
        ("token-f1=0", "nobody knows", False),  # no word shared is never right
        ("token-f1", "...", False),
    ],
)
def test_answer_when_f1_reaches_the_threshold_is_right(matcher: str, answer: str, right: bool) -> None:
    assert matcher_of(matcher, {})(KEY, answer) is right


def other_f1(answer: str, accepted: str) -> float:
    """F1 from precision and recall, words crossed off one by one."""
    left, shared = accepted.split(), 0
    for word in answer.split():
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(answer.split()), shared / len(accepted.split())
    return 2 * precision * recall / (precision + recall)


def test_f1_of_drawn_texts_is_that_of_precision_and_recall_and_alike_both_ways() -> None:
    drawn = random.Random(3)
    for _ in range(300):
        one, two = (" ".join(drawn.choices("abcde", k=drawn.randint(0, 8))) for _ in range(2))
        assert token_f1(one, [two]) == pytest.approx(other_f1(one, two), abs=1e-12)
        assert token_f1(one, [two]) == token_f1(two, [one])
