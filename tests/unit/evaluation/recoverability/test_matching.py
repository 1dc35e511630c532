"""Matching answers: normalisation, statuses, named matchers and those whose verdicts are archived."""

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.matchers import MATCHERS
from fabula.evaluation.recoverability.matching import Key, Marker, accepted, exact, keyword


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
        ("answer", "contradicted", True),
        ("eq51", "omitted", False),
    ],
)
def test_mark_when_images_do_not_support_the_answer_follows_the_definition(replied, support, status, right):
    marker = Marker(accepted, support)
    said = replied("he is afraid", "text_image", status)
    assert marker.marks(key(), "text_image", said) == (right, True)


@pytest.mark.parametrize("status", [["recoverable"], {}, None, 3])
def test_mark_when_the_status_is_no_text_goes_by_the_answer(status):
    said = {"answer": "he is afraid", "evidence_status": status}
    assert Marker(accepted).marks(key(), "image", said) == (True, True)


def test_mark_when_the_answer_is_no_text_is_wrong():
    assert Marker(accepted).marks(key(), "image", {"answer": None, "evidence_status": "recoverable"}) == (
        False, False
    )  # fmt: skip


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


def test_matcher_when_unknown_lists_those_there_are(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    with pytest.raises(ConfigError, match=", ".join(MATCHERS)):
        made.score(Definitions(matcher="none", resamples=0))
