"""Token F1: hand-worked values, its threshold, and another implementation of the same formula."""

import random

import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.matchers import matcher_of
from fabula.evaluation.recoverability.matching import Key
from fabula.evaluation.recoverability.token_f1 import token_f1

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


def test_f1_when_no_answer_is_accepted_is_none() -> None:
    assert token_f1(LION, ()) == 0.0


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


def test_scores_when_matched_by_f1_say_so(bench) -> None:
    made = bench(1)
    made.ask(lambda *_: True)
    scores = made.score(Definitions(matcher="token-f1=0.9", resamples=0))
    assert scores.methods["m"].gaps["question"]["raw"].image.value == 1.0
    assert "matcher=token-f1=0.9" in "\n".join(scores.lines())
