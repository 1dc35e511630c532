"""Measures that the paper names without a formula: worked by hand, undefined, perfect, and against others."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.items import DIMENSIONS
from fabula.evaluation.stats.uncertainty import Uncertainty
from fabula.releases.loading import load
from fabula.schemas.judgement import HumanRow
from fabula.studies.experiments.measures.defects import plant_defects
from fabula.studies.experiments.measures.detection import detection
from fabula.studies.experiments.measures.falls import Fall, Plant, accused, falls_of, read_plants
from fabula.studies.experiments.measures.human_correlation import (
    human_correlation,
    recovered_by_people,
    weighted_spearman,
)
from fabula.studies.experiments.measures.leakage import leakage
from fabula.studies.experiments.measures.localisation import localise_dimensions, localise_transitions
from fabula.studies.experiments.measures.planted import false_alarms, judged_as, planted_measures
from fabula.studies.experiments.measures.reliability import corrected, correlations, reliability
from fabula.studies.experiments.measures.sensitivity import sensitivity
from fabula.studies.experiments.measures.views import View, view_scores
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.planted_judgements import write_judged, write_planted
from fabula.testing.simulated_evaluations import write_loadable_release

PLAIN = Uncertainty(resamples=0)
FEW = Definitions(resamples=0)


def released(folder, stories):
    return load(write_loadable_release(folder / "release", sample_bundles(stories)))


def viewed(folder, release, methods, says, definitions=FEW):
    run = write_judged(folder / "run", release, methods, says)
    return View.whole(judged_as(run, definitions))


def fall(
    dimensions, total=0.0, *, loss="swapped", hit=(), transition=None, transitions=(0.0,) * 4, story="a"
):
    plant = Plant(story_id=story, loss=loss, method="x", dimensions=hit, transition=transition)
    values = np.array([dimensions.get(name, 0.0) for name in DIMENSIONS])
    return Fall(plant, 6, values, np.array(transitions), total)


def test_accusation_when_several_fall_equally_is_shared():
    assert accused(np.array([0.0, 0.5, 0.5, -1.0])).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert accused(np.zeros(4)).tolist() == [0.25] * 4
    assert accused(np.array([-0.5, -1.0])).tolist() == [1.0, 0.0]


def test_localisation_when_worked_by_hand_shares_ties_and_knows_chance():
    falls = [
        fall({"causal": 1.0, "emotional": 1.0}, hit=("causal",)),  # two accused, one was hit: 1/2
        fall({}, hit=("moral", "causal")),  # nothing falls: all six accused, two were hit: 2/6, not detected
        fall({"moral": 0.5}, hit=("moral",)),  # 1
        fall({"moral": 0.5}, hit=()),  # hits no dimension: left out
        fall({"moral": 0.5}, loss="none", hit=("moral",)),  # a control: left out
    ]
    made = localise_dimensions(falls, PLAIN)
    assert made.value.value == pytest.approx((1 / 2 + 2 / 6 + 1) / 3)
    assert made.chance.value == pytest.approx((1 / 6 + 2 / 6 + 1 / 6) / 3)
    assert made.detected.value == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert made.value.counts == {"stories": 1, "plants": 3}


def test_transitions_when_worked_by_hand_are_those_of_the_story():
    falls = [
        fall({}, transition=2, transitions=(0.0, 1.0, 0.0, 0.0)),  # right
        fall({}, transition=(1, 2), transitions=(0.0, 1.0, 0.0, 0.0)),  # wrong
        fall({}, transition=None, transitions=(0.0, 1.0, 0.0, 0.0)),  # hits none: left out
    ]
    made = localise_transitions(falls, PLAIN)
    assert (made.value.value, made.chance.value) == (0.5, 0.25)
    both = fall({}, transition=None, transitions=(0.0, 1.0, 1.0, 1.0))
    plant = both.plant.model_copy(update={"transitions": ((1, 2), (2, 3))})
    several = localise_transitions([replace(both, plant=plant)], PLAIN)
    # three are accused, one of them among the two of four that were hit
    assert (several.value.value, several.chance.value) == (pytest.approx(1 / 3), 0.5)


def test_sensitivity_and_false_alarms_when_worked_by_hand_count_totals_that_fall():
    planted = [fall({}, total) for total in (0.2, 0.0, -0.1, 0.5)]
    controls = [fall({}, total, loss="none") for total in (0.0, 0.0, 0.1)]
    controls.append(fall({"moral": 1.0, "causal": -1.0}, -0.1, loss="none"))
    assert sensitivity([*planted, *controls], PLAIN).value == 0.5  # 2 of 4
    alarms = false_alarms([*planted, *controls], PLAIN)
    assert alarms.total.value == 0.25  # 1 of 4
    assert alarms.accusations.value == 0.25  # moral falls in the last; the third has no parts that fall


def test_falls_when_worked_by_hand_are_differences_of_rates(tmp_path):
    release = released(tmp_path, 1)

    def says(method, question, condition):
        if condition == "text_image" and question.question_type == "moral":
            return False  # nobody can answer it: it shows no loss
        if condition == "image" and question.question_type in ("moral", "causal"):
            return method == "base"
        return not (condition == "image" and question.question_type == "emotional" and method == "base")

    view = viewed(tmp_path, release, ("base", "swapped"), says)
    plant = Plant(
        story_id="kb25k_0001", loss="swapped", method="swapped", dimensions=("causal",), transition=2
    )
    (made,) = falls_of(view, [plant], "base").of
    by_name = dict(zip(DIMENSIONS, made.dimensions.tolist(), strict=True))
    # causal falls by 1, emotional rises by 1, moral is no valid question of the unchanged storyboard
    assert by_name == {name: {"causal": 1.0, "emotional": -1.0}.get(name, 0.0) for name in DIMENSIONS}
    assert made.questions == 5 and made.total == 0.0  # (1 - 1 + 0 + 0 + 0) / 5
    # causal and emotional both ask about the transition from scene 2 to 3: their falls cancel out
    assert made.transitions.tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["nobody", "swapped"])
def test_falls_when_a_storyboard_was_not_judged_say_so(tmp_path, method):
    release = released(tmp_path, 1)
    view = viewed(tmp_path, release, ("base", "swapped"), lambda *_: True)
    plant = Plant(story_id="kb25k_0009", loss="swapped", method=method, dimensions=("causal",))
    made = falls_of(view, [plant], "base")
    assert made.of == () and made.left_out == {"its storyboards were not judged": 1}


def test_view_when_worked_by_hand_averages_dimensions_or_questions(tmp_path):
    release = released(tmp_path, 2)
    causal = [
        question for record in release for question in record.questions if question.question_type == "causal"
    ]

    def says(method, question, condition):
        return condition != "image" or question != causal[0]

    whole = viewed(tmp_path, release, ("m",), says)
    # images: causal 1 of 2, five dimensions 2 of 2: (1/2 + 5) / 6; all alike: 11 of 12
    assert view_scores(whole, FEW).together["image"].value == pytest.approx(11 / 12)
    only = View(whole.judged, whole.kept, ("causal", "moral"))
    assert view_scores(only, FEW).together["image"].value == pytest.approx(3 / 4)
    pooled = View(whole.judged, whole.kept & (whole.judged.items.dimension != 5), ())
    assert view_scores(pooled, FEW).together["image"].value == pytest.approx(9 / 10)
    assert view_scores(pooled, FEW).together["pair_accuracy"].status == "undefined"
    nothing = View(whole.judged, np.zeros_like(whole.kept))
    assert view_scores(nothing, FEW).together["gap"].status == "undefined"


def test_correlation_with_people_when_worked_by_hand_is_that_of_ranks():
    ours = {("s1", "m"): 0.2, ("s2", "m"): 0.5, ("s3", "m"): 0.9, ("s4", "m"): 0.1}
    people = {("s1", "m"): 0.1, ("s2", "m"): 0.8, ("s3", "m"): 0.6}
    score = human_correlation(ours, people, PLAIN)
    assert score.value == pytest.approx(0.5)  # ranks 1 2 3 and 1 3 2: 1 - 6 * 2 / (3 * 8)
    assert score.counts == {"storyboards": 3, "stories": 3}


def test_correlation_with_people_when_nobody_answered_has_no_value_but_a_reason():
    score = human_correlation({("s", "m"): 0.5}, None, PLAIN)
    assert (score.value, score.reason) == (None, "no person has answered yet")
    few = human_correlation({("s", "m"): 0.5}, {("s", "m"): 0.5}, PLAIN)
    assert few.status == "undefined" and "3 are needed" in few.reason
    alike = human_correlation(
        {(s, "m"): 0.5 for s in "abc"}, {(s, "m"): n for n, s in enumerate("abc")}, PLAIN
    )
    assert alike.reason == "all storyboards are alike"


def test_weighted_ranks_when_compared_are_scipys_of_repeated_pairs():
    random = np.random.default_rng(1)
    pairs = random.integers(0, 5, (30, 2)).astype(np.float64)
    weights = random.integers(0, 3, (20, 30)).astype(np.float64)
    ours = weighted_spearman(pairs, weights)
    for value, often in zip(ours, weights, strict=True):
        repeated = np.repeat(pairs, often.astype(int), axis=0)
        assert value == pytest.approx(stats.spearmanr(repeated[:, 0], repeated[:, 1]).statistic)


def test_people_when_several_answer_count_as_shares_per_question(tmp_path):
    release = released(tmp_path, 1)
    questions = {question.question_id: question for record in release for question in record.questions}
    first, second = sorted(questions)[:2]

    def line(rater, item, right, **more):
        answer = questions[item].gold_answer if right else "no"
        return HumanRow(
            kind="answer", rater=rater, item=item, condition="image", method="m", answer=answer, **more
        )

    rows = [
        line("p", first, True), line("q", first, False), line("p", second, True),
        line("q", second, True, repeat=1),
    ]  # fmt: skip
    # the first question 1/2, the second 1 (a repeated control does not count): mean 3/4
    assert recovered_by_people(rows, questions) == {("kb25k_0001", "m"): 0.75}


def test_defects_when_planted_take_answers_of_another_story_and_are_always_the_same(tmp_path):
    release = released(tmp_path, 10)
    made, bad = plant_defects(release, 0.2)
    again, same = plant_defects(release, 0.2)
    assert bad == same and made.records == again.records
    # two of ten of each of four dimensions; the samples have one emotional and one temporal answer for all
    assert len(bad) == 8
    original = {question.question_id: question for record in release for question in record.questions}
    changed = {question.question_id: question for record in made for question in record.questions}
    for name, question in changed.items():
        assert question.question == original[name].question
        overlap = set(question.accepted_answers) & set(original[name].accepted_answers)
        assert bool(overlap) == (name not in bad)
    assert plant_defects(release, 0.2, seed=7)[1] != bad


def test_leakage_and_detection_when_worked_by_hand_count_defects(tmp_path):
    release = released(tmp_path, 10)
    bad = plant_defects(release, 0.2)[1]
    kept, lost = sorted(bad)[0], sorted({q.question_id for r in release for q in r.questions} - bad)[0]
    donors = {
        question.question_id: question.gold_answer
        for record in plant_defects(release, 0.2)[0] for question in record.questions
    }  # fmt: skip
    run = write_judged(tmp_path / "run", release, ("m",), lambda m, q, c: q.question_id != lost)
    lines = [json.loads(line) for line in (run / "judgements.jsonl").read_text().splitlines()]
    for line in lines:  # the judge happens to say what a defective question accepts
        if line["item"] == kept and line["condition"] == "text_image":
            line["parsed"]["final_answer"] = donors[kept]
    (run / "judgements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = View.whole(judged_as(run, FEW, lambda path: plant_defects(load(path), 0.2)[0]))
    stays = leakage(view, bad, PLAIN)
    # 8 of 60 are defective, 1 stays; scored are it and 51 of 52 sound ones
    assert stays.leakage.value == pytest.approx(1 / 8)
    assert stays.contamination.value == pytest.approx(1 / 52)
    removed = detection(view, bad, PLAIN)
    assert removed.detection.value == pytest.approx(7 / 8)
    assert removed.false_removals.value == pytest.approx(1 / 52)
    raw = View(view.judged, view.kept, chosen="raw")
    assert leakage(raw, bad, PLAIN).leakage.value == 1.0
    assert leakage(raw, bad, PLAIN).contamination.value == pytest.approx(8 / 60)
    assert detection(raw, bad, PLAIN).detection.value == 0.0
    assert leakage(view, (), PLAIN).leakage.status == "undefined"


def test_reliability_when_worked_by_hand_is_corrected_to_full_length():
    # x 0 1 2 and y 0 2 1: n 3, sums 3 3, squares 5 5, product 4: (12 - 9) / (15 - 9) = 0.5; 1 / 1.5
    sums = np.array([3.0, 3.0, 3.0, 5.0, 5.0, 4.0])
    assert correlations(sums) == pytest.approx(0.5)
    assert corrected(np.array([0.5])) == pytest.approx(2 / 3)
    assert np.isnan(correlations(np.array([3.0, 3.0, 3.0, 3.0, 5.0, 4.0])))  # x is constant


def test_reliability_when_stories_differ_is_high_and_without_difference_near_zero(tmp_path):
    release = released(tmp_path, 60)
    random = np.random.default_rng(3)
    easy = {record.story_id: random.random() < 0.5 for record in release}
    noise = {
        question.question_id: random.random() < 0.5 for record in release for question in record.questions
    }
    real = viewed(tmp_path / "a", release, ("m",), lambda m, q, c: c != "image" or easy[q.story_id])
    assert reliability(real, "gap", Uncertainty(resamples=50)).value == pytest.approx(1.0)
    none = viewed(tmp_path / "b", release, ("m",), lambda m, q, c: c != "image" or noise[q.question_id])
    score = reliability(none, "gap", Uncertainty(resamples=200))
    assert score.low < 0 < score.high
    assert reliability(none, "text", PLAIN).status == "undefined"  # text is always right: all are alike
    assert none.judged.items.stories == score.counts["storyboards"] == 60


# SIMULATED judges with stated errors localise planted losses as computed beforehand; guessers get chance.

STORIES = 150
DEFINITIONS = Definitions(resamples=400)
LOSSES = {"swapped": ("temporal_order", "causal"), "emotion_flattened": ("emotional",)}


def outcomes(error: float, hit: bool) -> dict[int, float]:
    """Chance of each fall of a dimension with one question: right before, right after unless it was hit."""
    before, after = 1 - error, error if hit else 1 - error
    return {
        1: before * (1 - after), -1: (1 - before) * after,
        0: before * after + (1 - before) * (1 - after),
    }  # fmt: skip


def expected(hits: int, error: float, *, detected: bool = False) -> float:
    """Localisation by enumerating all 3 ** 6 patterns of falls; the first dimensions were hit."""
    chances = [outcomes(error, place < hits) for place in range(len(DIMENSIONS))]
    total = 0.0
    for pattern in product((-1, 0, 1), repeat=len(DIMENSIONS)):
        weight = 1.0
        for fall, chance in zip(pattern, chances, strict=True):
            weight *= chance[fall]
        top = [place for place, fall in enumerate(pattern) if fall == max(pattern)]
        counts = max(pattern) > 0 or not detected
        total += weight * counts * sum(place < hits for place in top) / len(top)
    return total


def expected_sensitivity(hits: int, error: float) -> float:
    """Chance that the falls of all dimensions add to more than 0."""
    sums = {0: 1.0}
    for place in range(len(DIMENSIONS)):
        step: dict[int, float] = {}
        for so_far, fall in product(sums, (-1, 0, 1)):
            step[so_far + fall] = (
                step.get(so_far + fall, 0) + sums[so_far] * outcomes(error, place < hits)[fall]
            )
        sums = step
    return sum(chance for total, chance in sums.items() if total > 0)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Error rate -> the row of the full protocol, and of the protocol without dimensions."""

    def make(error):
        made = write_planted(tmp_path_factory.mktemp("planted"), STORIES, LOSSES, error)
        folders = {"katha": made.run, "katha-without-dimensions": made.run}
        return planted_measures(folders, read_plants(made.plants), DEFINITIONS, base="base")

    return {error: make(error) for error in (0.0, 0.1, 0.3, 0.5)}


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.5])
def test_localisation_when_judges_err_is_as_computed_beforehand(rows, error):
    full, _ = rows[error]
    assert (full.stories, full.plants, full.controls, full.left_out) == (STORIES, 2 * STORIES, STORIES, {})
    for loss, dimensions in LOSSES.items():
        score, wanted = full.losses[loss]["localisation"], expected(len(dimensions), error)
        deviation = max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9)  # at most, as ties are shares
        assert abs(score.value - wanted) < 4 * deviation, loss
        assert full.losses[loss]["localisation_chance"].value == pytest.approx(len(dimensions) / 6)
        sensed, wanted = full.losses[loss]["sensitivity"], expected_sensitivity(len(dimensions), error)
        assert abs(sensed.value - wanted) < 4 * max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9), loss
    found, wanted = (
        full.scores["detected"],
        (expected(2, error, detected=True) + expected(1, error, detected=True)) / 2,
    )
    assert abs(found.value - wanted) < 4 * (0.25 / STORIES) ** 0.5
    alarms, wanted = full.scores["false_alarms"], expected_sensitivity(0, error)
    assert abs(alarms.value - wanted) < 4 * max((wanted * (1 - wanted) / STORIES) ** 0.5, 1e-9)


def test_localisation_when_a_judge_guesses_is_chance_within_its_interval(rows):
    full, _ = rows[0.5]
    score, chance = full.scores["localisation"], full.scores["localisation_chance"].value
    assert chance == pytest.approx((2 / 6 + 1 / 6) / 2)
    assert score.low < chance < score.high
    # and a judge that errs less lies above it
    assert rows[0.3][0].scores["localisation"].low > chance


def test_false_alarms_when_unchanged_outputs_were_judged_once_have_no_value(tmp_path):
    made = write_planted(tmp_path, 3, LOSSES, 0.0)
    (row,) = planted_measures({"katha": made.run}, read_plants(made.plants), DEFINITIONS)
    assert row.scores["false_alarms"].status == "undefined"
    assert "judged twice" in row.scores["false_alarms"].reason
    assert row.left_out == {"there is no unchanged storyboard beside it": 3}
    assert row.scores["localisation"].value == 1.0
    assert (row.scores["localisation"].low, row.scores["localisation"].high) == (None, None)  # three stories
