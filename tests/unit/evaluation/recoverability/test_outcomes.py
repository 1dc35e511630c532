"""Outcome triples, coverage, groups, the evidence control and contrastive gaps."""

from itertools import product

import pytest


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


def test_robustness_when_there_are_too_few_methods_says_why(bench):
    made = bench(4)
    made.ask(lambda *_: True, ("a", "b"))
    robustness = made.score().robustness
    assert robustness["half_data"]["mean"] is None
    assert robustness["filtering"]["raw_filtered"]["reason"] == "1 method; at least 3 are needed"
    assert [one["judges"] for one in robustness["judges"]] == [["a", "b"]]
