"""Votes and judges: majority, ties, silence, weights; labels by the most frequent one."""

from itertools import product

import numpy as np
import pytest

from fabula.errors import ConfigError
from fabula.evaluation.recoverability import columns
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.recoverability import values_of


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


# Outcome triples, coverage, groups, the evidence control and contrastive gaps.


def test_triples_when_every_combination_occurs_are_counted_each(bench):
    made = bench(2)
    combinations = list(product((True, False), repeat=3))
    place = {q: number % 8 for number, q in enumerate(sorted(made.questions))}
    order = ("text", "image", "text_image")
    made.ask(lambda q, condition, judge: combinations[place[q]][order.index(condition)])
    triples = made.score().methods["m"].triples
    assert [(one.text, one.image, one.text_image) for one in triples] == combinations
    # twelve questions over eight combinations: the first four occur twice
    assert [one.count for one in triples] == [2, 2, 2, 2, 1, 1, 1, 1]
    assert [one.included for one in triples] == [one.text_image for one in triples]
    assert sum(one.in_table_30 for one in triples) == 5


def test_groups_when_scored_hold_their_own_stories(bench):
    made = bench(4)
    types = {record.story_id: record.narrative_type for record in made.release.records}
    lost = made.release.records[0].narrative_type
    made.ask(lambda q, c, j: not (c == "image" and types[made.questions[q].story_id] == lost))
    groups = made.score().methods["m"].groups
    assert groups["narrative_type"][lost].gaps["filtered"].gap.value == 1.0
    others = [one for name, one in groups["narrative_type"].items() if name != lost]
    assert {one.gaps["filtered"].gap.value for one in others} == {0.0}
    assert sum(one.stories for one in groups["split"].values()) == 4
    assert set(groups) == {"source_family", "narrative_type", "split"}


def test_evidence_control_when_images_contradict_shows_what_the_filter_does(bench, replied):
    made = bench(1)
    bad = sorted(made.questions)[0]

    def says(q, condition, judge):
        if q == bad and condition == "text_image":
            return replied(made.questions[q].gold_answer, condition, "contradicted")
        return condition != "image"

    made.ask(says)
    rows = made.score().methods["m"].evidence
    assert [row["valid_share"] for row in rows] == pytest.approx([1, 1, 1, 5 / 6])
    assert rows[0]["gap"] is None
    assert rows[3]["gap"] == 1.0


def test_contrastive_gap_when_images_show_the_contrast_falls_short_of_the_sources(bench):
    made = bench(2)
    made.ask(lambda *_: True)
    for record in made.release.records:
        for condition in ("text", "image"):
            said = {"answer": record.moral_label, "confidence": "high"}
            made.line("moral_label", record.story_id, record.story_id, condition, said)
    labelled = [
        one for one in made.release.variants if one.contrastive_moral not in (None, one.original_moral)
    ]
    pairs = made.score().methods["m"].pairs
    if labelled:
        # every story's own label is found from text and from images, so that no contrastive one is
        assert (pairs["text"].value, pairs["image"].value, pairs["gap"].value) == (1.0, 0.0, 1.0)
    else:
        assert pairs["gap"].status == "undefined"


def test_scores_when_shown_as_json_hold_no_number_for_what_is_undefined(bench):
    made = bench(1)
    made.ask(lambda q, condition, judge: condition == "text")
    document = made.score().as_json()
    score = document["methods"]["m"]["gaps"]["question"]["filtered"]["gap"]
    assert (score["value"], score["status"]) == (None, "undefined")
    assert score["reason"] == "no question was counted"


# Scores of storyboards as values: their formulas by hand, ranges, and what the named values are of.


def test_moral_target_when_worked_by_hand_has_rates_and_gap() -> None:
    # of 12 stories 6 are found from text and 3 from images; of 10 with both, 8
    values = values_of(columns.MORAL, np.array([6.0, 3.0, 12.0, 8.0, 10.0]))
    assert values.tolist() == [0.5, 0.25, 0.25, 0.8]


def test_pairs_when_worked_by_hand_have_accuracy_confusion_and_gap() -> None:
    # of 4 pairs the source is chosen for 3, the variant for none; of 5 labels 4 from text, 1 from images
    # of 4 variants that were drawn 1 is chosen; of the 2 pairs with both outputs, none has both right
    values = values_of(columns.PAIRS, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 1.0, 4.0, 0.0, 2.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, 0.25, 0.0])
    # where no variant was drawn, the others are what they were
    values = values_of(columns.PAIRS, np.array([3.0, 0.0, 4.0, 4.0, 1.0, 5.0, 0.0, 0.0, 0.0, 0.0]))
    assert values == pytest.approx([0.75, 0.25, 0.0, 0.8, 0.2, 0.6, np.nan, np.nan], nan_ok=True)


def test_rates_when_nothing_is_counted_have_no_value() -> None:
    assert np.isnan(values_of(columns.MORAL, np.zeros(5))).all()
    assert np.isnan(values_of(columns.PAIRS, np.zeros((3, 10)))).all()
