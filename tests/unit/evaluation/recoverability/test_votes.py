"""Votes and judges: majority, ties, silence, weights; labels by the most frequent one."""

import json

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import read_weights


def raw_image(scores, judge=None):
    method = scores.methods["m"]
    if judge is not None:
        return method.judges[judge]["raw"]["image"].value
    return method.gaps["question"]["raw"].image.value


COUNTED = Definitions(nonresponse="incorrect", resamples=0)


@pytest.mark.parametrize(
    ("said", "expected", "counted_wrong"),
    [
        ((True, True, False), 1.0, 1.0),
        ((True, False), 0.0, 0.0),  # a tie is incorrect
        ((True, "refused"), 1.0, 0.0),  # who does not answer has no vote, unless that is to count as wrong
        ((True, True, "blocked"), 1.0, 1.0),
        (("refused", "failed"), None, 0.0),
    ],
)
def test_judges_when_joined_need_more_than_half_of_those_who_answer(bench, said, expected, counted_wrong):
    made = bench(1)
    judges = tuple("abc"[: len(said)])
    made.ask(lambda q, condition, judge: said[judges.index(judge)] if condition == "image" else True, judges)
    assert raw_image(made.score()) == expected
    assert raw_image(made.score(COUNTED)) == counted_wrong


def test_question_when_every_judge_is_silent_and_excluded_is_unjudged(bench):
    made = bench(1)
    made.ask(lambda q, c, judge: "failed" if c == "image" else True)
    method = made.score().methods["m"]
    assert method.questions["unjudged"] == 6
    assert method.gaps["question"]["raw"].gap.status == "undefined"


def test_coverage_when_a_judge_fails_on_everything_says_so(bench):
    made = bench(2)
    made.ask(lambda q, c, judge: "failed" if judge == "c" else True, ("a", "b", "c"))
    scores = made.score()
    assert raw_image(scores) == 1.0
    assert raw_image(scores, "c") is None, "a failure is no score"
    assert raw_image(made.score(COUNTED), "c") == 0.0
    rows = [one for one in scores.coverage if one.judge == "c"]
    assert {(one.condition, one.asked, one.outcomes["failed"]) for one in rows} == {
        ("text", 12, 12), ("image", 12, 12), ("text_image", 12, 12)
    }  # fmt: skip
    assert any("c answered nothing: 36 failed of 36" in line for line in scores.lines())


def test_votes_of_a_judge_when_several_are_joined_before_judges(bench):
    made = bench(1)
    made.ask(lambda *_: True, ("a", "b"), conditions=("text", "text_image"))
    for vote, tells in enumerate((True, True, False)):
        made.ask(lambda q, c, judge, tells=tells: tells, ("a",), conditions=("image",), vote=vote)
    made.ask(lambda *_: True, ("b",), conditions=("image",))
    assert raw_image(made.score()) == 1.0


def test_weights_when_given_decide_and_must_name_every_judge(bench, tmp_path):
    made = bench(1)
    made.ask(lambda q, c, judge: judge == "a" or c != "image", ("a", "b", "c"))
    weighted = Definitions(weights={"a": 3.0, "b": 1.0, "c": 1.0}, resamples=0)
    assert raw_image(made.score(weighted)) == 1.0
    assert raw_image(made.score()) == 0.0
    with pytest.raises(ConfigError, match="no weight for b, c"):
        made.score(Definitions(weights={"a": 1.0}, resamples=0))


def test_weights_when_fitted_on_another_split_are_refused(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"split": "public_test", "weights": {"a": 1}}))
    with pytest.raises(InputError, match="validation split only"):
        read_weights(path)


def test_labels_when_three_judges_disagree_go_to_the_most_frequent(bench):
    made = bench(1)
    record = made.release.records[0]
    others = [label for label in ("wisdom", "courage", "patience") if label != record.moral_label]
    made.ask(lambda *_: True)
    for condition in ("text", "image"):
        # two of four say the right label, two say two others: the most frequent is right, though no majority
        for judge, label in zip("abcd", (record.moral_label, record.moral_label, *others), strict=False):
            made.line(
                "moral_label", record.story_id, record.story_id, condition,
                {"answer": label, "confidence": "low"}, judge=judge,
            )  # fmt: skip
    moral = made.score().methods["m"].moral_target
    assert (moral["text"].value, moral["image"].value, moral["gap"].value) == (1.0, 1.0, 0.0)
    assert moral["chance"].value == pytest.approx(1 / 12)
    assert moral["majority"].value == 1.0


def test_label_when_tied_or_unclear_is_not_found(bench):
    made = bench(2)
    first, second = made.release.records
    made.ask(lambda *_: True)
    other = "wisdom" if first.moral_label != "wisdom" else "courage"
    for condition in ("text", "image"):
        for judge, label in (("a", first.moral_label), ("b", other)):
            made.line(
                "moral_label", first.story_id, first.story_id, condition, {"answer": label}, judge=judge
            )
        made.line("moral_label", second.story_id, second.story_id, condition, {"answer": "unclear"})
    moral = made.score().methods["m"].moral_target
    assert moral["image"].value == 0.0
    assert moral["majority"].value == 0.5


def test_pairs_when_judged_give_accuracy_and_confusion(bench):
    made = bench(2)
    made.ask(lambda *_: True)
    said = ("source", "source", "contrastive", "unclear")
    for variant, answer in zip(made.release.variants, said, strict=True):
        made.line(
            "contrast", variant.base_story_id, variant.pair_id, "image", {"answer": answer, "first": "source"}
        )
    pairs = made.score().methods["m"].pairs
    # the source is chosen for 2 of 4 pairs, its contrast for 1
    assert pairs["accuracy"].value == 0.5
    assert pairs["confusion"].value == 0.5
    assert pairs["contrastive_chosen"].value == 0.25
