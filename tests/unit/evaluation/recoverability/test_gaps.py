"""Recoverability and STG: worked by hand, perfect, worst, undefined, and whatever order and split."""

import random

import numpy as np
import pytest

from fabula.evaluation.recoverability.matching import Definitions, items_of
from fabula.evaluation.recoverability.method import methods_of
from fabula.evaluation.recoverability.pooling import boards
from fabula.evaluation.recoverability.replies import KINDS, generations
from fabula.evaluation.recoverability.score import estimated, score_folder
from fabula.schemas.katha import StoryRecord, Variant
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth, expected, simulated_manifest, simulated_replies


def test_gap_when_worked_by_hand_is_the_mean_of_the_dimensions_gaps(bench):
    made = bench(2)
    causal = {q for q, one in made.questions.items() if one.question_type == "causal"}
    lost = sorted(causal)[:1]
    made.ask(lambda q, condition, judge: not (condition == "image" and q in lost))
    scores = made.score().methods["m"].gaps["question"]["filtered"]
    # two stories, one question per dimension each: causal is lost for one of two, 1/2; mean over 6: 1/12
    assert scores.dimensions["causal"]["gap"].value == 0.5
    assert scores.dimensions["causal"]["image"].numerator == 1
    assert scores.dimensions["causal"]["image"].denominator == 2
    assert scores.gap.value == pytest.approx(1 / 12)
    assert scores.image.value == pytest.approx(11 / 12)
    assert scores.latent_gap.value == pytest.approx(1 / 8)  # 0.5 over four dimensions
    assert scores.gap.counts == {"questions": 12, "stories": 2, "dimensions": 6}


def test_gap_when_images_tell_everything_is_zero(bench):
    made = bench(2)
    made.ask(lambda *_: True)
    method = made.score().methods["m"]
    assert {method.gaps[level][name].gap.value for level in method.gaps for name in method.gaps[level]} == {
        0.0
    }
    assert method.ambiguity.value == 0.0


def test_gap_when_no_question_is_valid_is_undefined_and_raw_is_not(bench):
    made = bench(2)
    made.ask(lambda q, condition, judge: condition == "text")
    method = made.score().methods["m"]
    filtered = method.gaps["question"]["filtered"].gap
    assert (filtered.value, filtered.status) == (None, "undefined")
    assert method.gaps["question"]["raw"].gap.value == 1.0
    assert method.ambiguity.value == 1.0
    assert method.questions == {
        "total": 12,
        "valid": 0,
        "ambiguous": 12,
        "invalid_generation": 0,
        "unjudged": 0,
    }


def test_gap_when_negative_is_flagged_with_its_stories(bench):
    made = bench(2)
    story = made.release.records[0].story_id
    made.ask(lambda q, condition, judge: not (condition == "text" and made.questions[q].story_id == story))
    negative = made.score().methods["m"].negative
    assert "question.filtered.overall" in negative["scores"]
    assert negative["stories"] == [story]


def test_scores_when_lines_come_in_any_order_are_the_same(bench):
    made = bench(6)
    made.ask(lambda q, condition, judge: sum(map(ord, q + condition + judge)) % 3 > 0, ("a", "b", "c"))
    first = made.score(Definitions(resamples=50)).as_json()
    path = made.run / "judgements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    path.write_bytes(b"".join(lines))
    assert score_folder(made.run, None, Definitions(resamples=50)).as_json() == first


def test_text_rate_when_questions_are_filtered_stands_on_the_methods_own_valid_questions(bench):
    made = bench(2)
    ambiguous = next(q for q, one in made.questions.items() if one.question_type == "moral")
    made.ask(lambda q, condition, judge: q != ambiguous or condition == "text")
    scores = made.score().methods["m"].gaps["question"]["filtered"]
    assert scores.text.counts["questions"] == 11
    assert scores.gap.value == 0.0


def test_overall_when_a_dimension_has_no_valid_question_leaves_it_out_and_says_so(bench):
    made = bench(2)
    moral = {q for q, one in made.questions.items() if one.question_type == "moral"}
    made.ask(lambda q, condition, judge: q not in moral or condition == "text")
    scores = made.score().methods["m"].gaps["question"]["filtered"]
    assert scores.gap.counts["dimensions"] == 5
    assert scores.dimensions["moral"]["gap"].status == "undefined"


def test_common_set_when_methods_differ_holds_questions_valid_for_all(bench):
    made = bench(2)
    bad = sorted(made.questions)[0]
    made.ask(lambda *_: True, method="one")
    made.ask(lambda q, condition, judge: q != bad, method="two", conditions=("image", "text_image"))
    methods = made.score().methods
    assert methods["one"].gaps["question"]["filtered"].gap.counts["questions"] == 12
    assert methods["one"].gaps["question"]["common"].gap.counts["questions"] == 11
    assert methods["two"].gaps["question"]["common"].gap.counts["questions"] == 11


def test_seeds_when_a_story_has_several_are_means_over_them(bench):
    made = bench(1)
    made.ask(lambda *_: True, conditions=("text",))
    for seed, tells in ((1, True), (2, False), (3, False)):
        made.ask(
            lambda q, condition, judge, tells=tells: tells or condition != "image",
            conditions=("image", "text_image"), seed=seed,
        )  # fmt: skip
    scores = made.score().methods["m"].gaps
    # images tell everything in one of three seeds: 1/3, so that STG is 2/3 at either level
    assert scores["question"]["filtered"].gap.value == pytest.approx(2 / 3)
    assert scores["story"]["filtered"].gap.value == pytest.approx(2 / 3)
    assert scores["question"]["filtered"].gap.counts == {"questions": 18, "stories": 1, "dimensions": 6}


def test_invalid_generation_when_counted_is_lost_in_raw_and_left_out_of_filtered(bench):
    made = bench(2)
    broken = made.release.records[0].story_id
    made.ask(lambda q, c, j: None if made.questions[q].story_id == broken and c != "text" else True)
    subject = {"m": {"seeds": [None], "invalid": [{"story_id": broken, "seed": None, "codes": ["missing"]}]}}
    method = made.score(None, **subject).methods["m"]
    assert method.gaps["question"]["raw"].gap.value == pytest.approx(0.5)
    assert method.gaps["question"]["filtered"].gap.value == 0.0
    assert method.questions["invalid_generation"] == 6
    assert method.generations["invalid_rate"] == 0.5
    assert method.ambiguity.value == 0.0


def test_method_when_all_its_generations_are_invalid_is_still_counted(bench):
    made = bench(1)
    story = made.release.records[0].story_id
    made.ask(lambda *_: True)
    subject = {"m": {"seeds": [None]}, "n": {"seeds": [None], "invalid": [{"story_id": story, "seed": None}]}}
    method = made.score(None, **subject).methods["n"]
    assert method.generations["generations_invalid"] == 1
    assert method.questions["invalid_generation"] == 6
    assert method.gaps["question"]["raw"].gap.value == 1.0
    assert method.gaps["question"]["filtered"].gap.status == "undefined"


def test_story_level_when_stories_have_different_sizes_weighs_stories_alike(bench):
    made = bench(2)
    first, second = (record.story_id for record in made.release.records)
    keep = {q for q, one in made.questions.items() if one.story_id == first or one.question_type == "causal"}
    made.ask(
        lambda q, c, j: None if q not in keep else not (c == "image" and made.questions[q].story_id == second)
    )
    gaps = made.score().methods["m"].gaps["story"]["filtered"]
    assert gaps.dimensions["causal"]["gap"].value == 0.5
    assert gaps.dimensions["moral"]["gap"].value == 0.0


def test_a_judge_when_it_saw_nothing_of_a_method_has_no_score_of_it_though_generations_are_invalid(bench):
    made = bench(2)
    first = made.release.records[0].story_id
    made.ask(lambda *_: True, ("a", "b"), ("text",))
    made.ask(lambda *_: True, ("a", "b"), ("image", "text_image"), method="one")
    made.ask(
        lambda q, *_: True if made.questions[q].story_id != first else None,
        ("a",), ("image", "text_image"), method="two",
    )  # fmt: skip
    scores = made.score(one={}, two={"invalid": [{"story_id": first, "seed": None}]})
    # of two stories one has no images: 6 of 12 questions count as not recovered, by those who were shown any
    assert scores.methods["two"].judges["a"]["raw"]["gap"].value == 0.5
    assert scores.methods["one"].judges["b"]["raw"]["gap"].value == 0
    assert {score.status for score in scores.methods["two"].judges["b"]["raw"].values()} == {"undefined"}
    assert "two has no judgement by b, and so no score by it" in scores.notes
    assert not [note for note in scores.notes if note.startswith("one has no judgement")]


# Known truth: SIMULATED judgements are drawn from stated truths, and scoring must recover them.
#
# This tests the statistics, not any model or judge.

DRAWS, STORIES = 200, 120
DEFINITIONS = Definitions(resamples=500)


def items():
    bundles = sample_bundles(STORIES)
    variants = [Variant.model_validate(one) for bundle in bundles for one in bundle["variants"]]
    return items_of([StoryRecord.model_validate(bundle["record"]) for bundle in bundles], variants)


def values_of(things, replies):
    made = generations(simulated_manifest("x", replies), replies, things)
    found = {kind: boards(replies, things, kind, DEFINITIONS) for kind in KINDS}
    methods = methods_of(found, made, things, replies.judges)
    return estimated(methods, things, DEFINITIONS)[1]


@pytest.fixture(scope="module")
def draws():
    """Values of 200 simulated evaluations of 120 stories, and the truth that they were drawn from."""
    things, truth = items(), Truth()
    return expected(truth), [
        values_of(things, simulated_replies(things, [("m", truth)], seed))["m"] for seed in range(DRAWS)
    ]


def test_intervals_when_the_truth_is_known_hold_it_at_the_stated_rate(draws):
    truth, found = draws
    for name, value in truth.items():
        held = sum(one.low[name] <= value <= one.high[name] for one in found)
        # binomial(200, 0.95): 190 are expected; below 178 or above 199 are 2e-4 and 4e-5 likely
        assert 178 <= held <= 199, f"{name}: {held} of {DRAWS}"


def test_values_when_the_truth_is_known_are_not_biased(draws):
    truth, found = draws
    for name, value in truth.items():
        values = np.array([one.values[name] for one in found])
        error = values.std(ddof=1) / np.sqrt(DRAWS)
        assert abs(values.mean() - value) < 4 * error + 1e-12, name


@pytest.mark.slow
def test_methods_when_one_loses_less_are_told_apart_and_ranked(tmp_path):
    images = ((0.9,) * 6, (0.6,) * 6, (0.3,) * 6)
    truths = [(f"m{place}", Truth(image=image)) for place, image in enumerate(images)]
    made = write_simulated(tmp_path, 360, truths)
    scores = score_folder(made.run, made.release, DEFINITIONS)
    gaps = [scores.methods[name].gaps["question"]["common"].gap.value for name, _ in truths]
    assert gaps == sorted(gaps)
    first = scores.comparisons[0]
    assert (first.first, first.second) == ("m0", "m1")
    assert first.difference == pytest.approx(gaps[0] - gaps[1])
    assert first.high < 0
    assert first.p_bootstrap_corrected == pytest.approx(min(1.0, 3 * first.p_bootstrap))
    assert first.p_wilcoxon_corrected < 0.01
    assert first.rank_biserial < 0
    assert first.cohen_d < 0
    assert scores.robustness["half_data"]["mean"] > 0.9
    assert scores.robustness["filtering"]["raw_common"]["value"] == pytest.approx(1.0)
