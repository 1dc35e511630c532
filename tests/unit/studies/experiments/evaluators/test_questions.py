"""Questions of other evaluators: by rules from annotations, by a model through the server, as releases."""

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fabula.engine.run_options import RunOptions
from fabula.errors import BelowThreshold, InputError
from fabula.evaluation.judging.packets import question_packets
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.matching import DIMENSIONS, Definitions
from fabula.evaluation.recoverability.score import judged_folder, scores_of
from fabula.evaluation.stats.uncertainty import Uncertainty
from fabula.releases.loading import Release, load
from fabula.schemas.judgement import HumanRow
from fabula.schemas.text import normalize_answer
from fabula.studies.experiments.evaluators.deriving import (
    derive,
    read_sidecar,
    write_by_model,
    writing_request,
)
from fabula.studies.experiments.evaluators.evaluator import (
    EVALUATORS,
    Material,
    Pool,
    elements_of,
    evaluator_of,
)
from fabula.studies.experiments.evaluators.graph import apply_graph, ordered, with_parents
from fabula.studies.experiments.measures import reliability as agreement
from fabula.studies.experiments.measures.falls import (
    Fall,
    Plant,
    accused,
    falls_of,
    localise_dimensions,
    localise_transitions,
    read_plants,
    sensitivity,
)
from fabula.studies.experiments.measures.planted import (
    false_alarms,
    judged_as,
    plant_defects,
    planted_measures,
    seen_by,
    view_of,
)
from fabula.studies.experiments.measures.views import View, view_scores
from fabula.testing import stand_in_models
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.planted_judgements import write_judged, write_planted
from fabula.testing.simulated_evaluations import write_loadable_release

CREATED = "2026-01-01T00:00:00Z"
BY_RULES = [name for name in EVALUATORS if evaluator_of(name).build is not None]
BY_MODEL = [name for name in EVALUATORS if evaluator_of(name).prompt is not None]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return drawn_release(tmp_path_factory.mktemp("evaluators") / "release")


@pytest.mark.parametrize("name", BY_RULES)
def test_rules_when_asking_offer_the_answer_once_and_state_what_blind_answers_get(release, name):
    evaluator, pool = evaluator_of(name), Pool.of(release.records)
    for record in release:
        asked = evaluator.build(Material(record, pool))  # type: ignore[misc]
        assert asked and asked == evaluator.build(Material(record, pool))  # type: ignore[misc]
        ids = [each.question.question_id for each in asked]
        assert len(set(ids)) == len(ids) and all(one.startswith(record.story_id) for one in ids)
        for each in asked:
            question = each.question
            assert question.question_type in (evaluator.dimensions or ("action_visibility",))
            assert question.gold_answer in question.accepted_answers and each.chance is not None
            assert set(each.parents) <= set(ids[: ids.index(question.question_id)])
            if each.chance in (1 / 4, 1 / 3) or (
                each.chance == 1 / 2 and "yes or no" not in question.question
            ):
                offered = question.question.split(": ", 1)[1].removesuffix(". Answer with one of these.")
                options = offered.split("; ")
                assert options.count(question.gold_answer) == 1 and len(options) == round(1 / each.chance)


def test_wrong_options_when_of_other_stories_do_not_occur_in_this_one(release: Release) -> None:
    pool = Pool.of(release.records)
    for record in release:
        own = {normalize_answer(element.text) for element in elements_of(record)}
        for kind in ("character", "object", "action"):
            foreign = pool.foreign(record, kind, 3, ("x",))
            assert not own & {normalize_answer(text) for text in foreign}
            assert not any(normalize_answer(text) in normalize_answer(record.story_text) for text in foreign)


def test_scene_questions_when_made_offer_other_scenes_of_the_story_first(release: Release) -> None:
    record = release.records[0]
    asked = evaluator_of("tifa").build(Material(record, Pool.of(release.records)))  # type: ignore[misc]
    acts = [each.question for each in asked if "happens in part 2 of 5" in each.question.question]
    (question,) = acts
    others = [scene.action for scene in record.scenes if scene.scene_index != 2]
    assert sum(f"{other}" in question.question for other in others) == 2
    assert question.target_scene == 2 and question.target_transition is None


def test_statements_when_made_depend_on_who_they_name(release: Release) -> None:
    record = release.records[0]
    asked = evaluator_of("dsg").build(Material(record, Pool.of(release.records)))  # type: ignore[misc]
    by_text = {each.question.question: each for each in asked}
    roots = [each for each in asked if not each.parents]
    assert all("Does this appear" in each.question.question for each in roots)
    # the fourth scene has two characters; its act names the first alone, its feeling depends on both
    act = next(text for text in by_text if "happen in part 4 of 5" in text)
    feeling = next(text for text in by_text if "feeling in part 4 of 5" in text)
    assert (len(by_text[act].parents), len(by_text[feeling].parents)) == (1, 2)


def test_release_when_derived_is_asked_from_like_any_and_says_how_it_was_made(release, tmp_path):
    folder = derive(release, evaluator_of("dsg"), tmp_path / "dsg")
    made, sidecar = load(folder), read_sidecar(folder)
    assert [record.story_id for record in made] == [record.story_id for record in release]
    assert made.variants == () and sidecar.makers == ("rules@1",) and sidecar.left_out == {}
    ids = {question.question_id for record in made for question in record.questions}
    assert set(sidecar.parents) <= ids and set(sidecar.chance) == ids
    packets = list(question_packets(made.records[0], "image", (), 42))
    assert len(packets) == len(made.records[0].questions)
    before = (folder / "release.json").read_bytes()
    derive(release, evaluator_of("dsg"), tmp_path / "dsg")
    assert (folder / "release.json").read_bytes() == before


@pytest.mark.parametrize("name", BY_MODEL)
def test_model_when_it_writes_questions_is_a_run_that_is_not_paid_twice(release, tmp_path, name):
    evaluator = evaluator_of(name)
    with ModelServer(stand_in_models.answer_questions) as server:
        options = RunOptions(workers=0, created_at=CREATED)
        request = writing_request(
            release.path, evaluator, tmp_path / "run", f"{server.openai_url}#writer", options
        )
        folder = write_by_model(request)
        write_by_model(request)
        assert server.count == len(release.records)
    made = derive(release, evaluator, tmp_path / "derived", written=folder)
    sidecar = read_sidecar(made)
    assert len(sidecar.makers) == 1 and f"via {evaluator.prompt}@" in sidecar.makers[0]
    counts = Counter(question.question_type for record in load(made) for question in record.questions)
    assert set(counts) <= set(evaluator.dimensions)
    assert bool(sidecar.parents) == (name == "dsg")
    moral = [q for record in load(made) for q in record.questions if q.question_type == "moral"]
    labels = {record.story_id: str(record.moral_label) for record in release}
    assert all(question.accepted_answers[-1] == labels[question.story_id] for question in moral)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("generic-story", {"about": "who"}, "one question about each"),
        ("tifa", {"scene": 9}, "scene: breaks maximum 5"),
        ("dsg", {"parents": [5]}, "earlier statements"),
    ],
)
def test_reply_when_it_cannot_be_is_told_to_the_model(release, tmp_path, name, change, told):
    asked: list[str] = []

    def wrong(request: Asked) -> Any:
        asked.append(request.text)
        reply = stand_in_models.answer_questions(request)
        (entries,) = reply.values()
        entries[1] |= change
        return reply

    with ModelServer(wrong) as server:
        request = writing_request(
            release.path, evaluator_of(name), tmp_path / "run", f"{server.openai_url}#w",
            RunOptions(workers=0, created_at=CREATED, settings=["load_stories.split=[\"validation\"]"]),
        )  # fmt: skip
        with pytest.raises(BelowThreshold):
            write_by_model(request)
    assert any(told in text for text in asked)


@pytest.mark.slow
def test_outputs_when_judged_with_an_evaluators_questions_are_scored_with_its_graph(release, tmp_path):
    derived = load(derive(release, evaluator_of("dsg"), tmp_path / "dsg"))
    outputs = draw_outputs(tmp_path / "drawn", release.records)
    # the judge answers every statement by a hash: 0.6 of those from images rightly
    judge = JudgeModel(derived.records, {"text": 1.0, "image": 0.6, "text_image": 1.0})
    with ModelServer(judge) as server:
        options = EvaluateOptions(
            judges=(f"{server.openai_url}#one",), questions_only=True, workers=0, created_at=CREATED
        )
        evaluate_katha(derived.path, outputs, tmp_path / "run", options)
    used = Definitions(resamples=0)
    graph, flat = (
        view_scores(view, used).together["image"].value
        for view in (
            view_of(evaluator_of("dsg"), tmp_path / "run", used),
            _without_graph(tmp_path / "run", used),
        )
    )
    rows = [json.loads(line) for line in (tmp_path / "run" / "judgements.jsonl").read_text().splitlines()]
    right = {row["item"]: row["parsed"]["answer"] == "yes" for row in rows if row["condition"] == "image"}
    sidecar = read_sidecar(derived.path)

    def holds(item: str) -> bool:
        return right[item] and all(holds(parent) for parent in sidecar.parents.get(item, ()))

    types = {
        question.question_id: question.question_type for record in derived for question in record.questions
    }
    expected = [
        sum(holds(item) for item in right if types[item] == name) / sum(types[item] == name for item in right)
        for name in evaluator_of("dsg").dimensions
    ]
    assert graph == pytest.approx(sum(expected) / 3)
    assert flat is not None and graph is not None and graph < flat


def _without_graph(run: Path, used: Definitions) -> Any:
    return seen_by(evaluator_of("dsg"), judged_folder(run, None, used))


# A child counts only where its parents hold: worked by hand, chains, unjudged ones, circles.

RIGHT, WRONG, UNJUDGED = 1, 0, -1


def settled(verdicts: list[int], parents: dict[int, list[int]]) -> list[int]:
    values: list[int] = with_parents(np.array(verdicts, dtype=np.int8), parents).tolist()
    return values


def test_child_when_its_parent_is_wrong_is_wrong_and_its_grandchild_too() -> None:
    graph = {2: [1], 1: [0]}
    assert settled([RIGHT, RIGHT, RIGHT], graph) == [RIGHT, RIGHT, RIGHT]
    assert settled([WRONG, RIGHT, RIGHT], graph) == [WRONG, WRONG, WRONG]
    assert settled([RIGHT, RIGHT, WRONG], graph) == [RIGHT, RIGHT, WRONG]


def test_child_when_a_parent_is_unjudged_is_unjudged_unless_it_is_wrong_anyway() -> None:
    assert settled([UNJUDGED, RIGHT], {1: [0]}) == [UNJUDGED, UNJUDGED]
    assert settled([UNJUDGED, WRONG], {1: [0]}) == [UNJUDGED, WRONG]
    assert settled([WRONG, UNJUDGED], {1: [0]}) == [WRONG, UNJUDGED]
    assert settled([UNJUDGED, WRONG, RIGHT], {2: [0, 1]}) == [UNJUDGED, WRONG, WRONG]


def test_verdicts_when_of_several_seeds_and_conditions_are_each_their_own() -> None:
    verdicts = np.array([[[1, 1], [0, 1]], [[1, 0], [-1, 1]]], dtype=np.int8)
    kept = verdicts.copy()
    assert with_parents(verdicts, {1: [0]}).tolist() == [[[1, 1], [0, 0]], [[1, 0], [-1, -1]]]
    assert (verdicts == kept).all()


def test_order_when_questions_depend_on_each_other_has_ancestors_first_or_names_the_circle() -> None:
    assert ordered({3: [2, 1], 2: [1], 1: [0]}) == [1, 2, 3]
    for circle in ({0: [1], 1: [0]}, {0: [0]}, {0: [1], 1: [2], 2: [0]}):
        with pytest.raises(InputError, match="circle"):
            ordered(circle)


def test_scores_when_a_graph_is_applied_are_worked_by_hand(tmp_path: Path) -> None:
    release = load(write_loadable_release(tmp_path / "release", sample_bundles(1)))
    by_type = {question.question_type: question.question_id for question in release.records[0].questions}
    run = write_judged(
        tmp_path / "run", release, ("m",),
        lambda method, question, condition: condition != "image" or question.question_type != "causal",
        judges=("a", "b"),
    )  # fmt: skip
    used = Definitions(resamples=0)
    judged = judged_folder(run, None, used)
    # images: causal wrong, so 5 of 6; with moral and consequence below causal only 3 of 6 count
    assert scores_of(judged, used).methods["m"].gaps["question"]["filtered"].image.value == pytest.approx(
        5 / 6
    )
    graph = {by_type["moral"]: (by_type["causal"],), by_type["consequence"]: (by_type["moral"],)}
    made = scores_of(apply_graph(judged, graph), used).methods["m"]
    assert made.gaps["question"]["filtered"].image.value == pytest.approx(3 / 6)
    assert made.gaps["question"]["filtered"].text.value == 1.0
    assert made.judges["a"]["filtered"]["image"].value == pytest.approx(3 / 6)
    with pytest.raises(InputError, match="no questions of the release"):
        apply_graph(judged, {by_type["moral"]: ("nowhere",)})


# -- Measures that the paper names without a formula: worked by hand, undefined, perfect, and against others

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
    # where no question names a transition, the rest stays
    (unlinked,) = falls_of(replace(view, transitions=False), [plant], "base").of
    assert (unlinked.questions, unlinked.dimensions.tolist()) == (5, made.dimensions.tolist())
    assert unlinked.transitions.tolist() == [0.0, 0.0, 0.0, 0.0]


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
    score = agreement.human_correlation(ours, people, PLAIN)
    assert score.value == pytest.approx(0.5)  # ranks 1 2 3 and 1 3 2: 1 - 6 * 2 / (3 * 8)
    assert score.counts == {"storyboards": 3, "stories": 3}


def test_correlation_with_people_when_nobody_answered_has_no_value_but_a_reason():
    score = agreement.human_correlation({("s", "m"): 0.5}, None, PLAIN)
    assert (score.value, score.reason) == (None, "no person has answered yet")
    few = agreement.human_correlation({("s", "m"): 0.5}, {("s", "m"): 0.5}, PLAIN)
    assert few.status == "undefined" and "3 are needed" in few.reason
    alike = agreement.human_correlation(
        {(s, "m"): 0.5 for s in "abc"}, {(s, "m"): n for n, s in enumerate("abc")}, PLAIN
    )
    assert alike.reason == "all storyboards are alike"


def test_weighted_ranks_when_compared_are_scipys_of_repeated_pairs():
    random = np.random.default_rng(1)
    pairs = random.integers(0, 5, (30, 2)).astype(np.float64)
    weights = random.integers(0, 3, (20, 30)).astype(np.float64)
    ours = agreement.weighted_spearman(pairs, weights)
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
    assert agreement.recovered_by_people(rows, questions) == {("kb25k_0001", "m"): 0.75}


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
    stays = agreement.leakage(view, bad, PLAIN)
    # 8 of 60 are defective, 1 stays; scored are it and 51 of 52 sound ones
    assert stays.leakage.value == pytest.approx(1 / 8)
    assert stays.contamination.value == pytest.approx(1 / 52)
    removed = agreement.detection(view, bad, PLAIN)
    assert removed.detection.value == pytest.approx(7 / 8)
    assert removed.false_removals.value == pytest.approx(1 / 52)
    raw = View(view.judged, view.kept, chosen="raw")
    assert agreement.leakage(raw, bad, PLAIN).leakage.value == 1.0
    assert agreement.leakage(raw, bad, PLAIN).contamination.value == pytest.approx(8 / 60)
    assert agreement.detection(raw, bad, PLAIN).detection.value == 0.0
    assert agreement.leakage(view, (), PLAIN).leakage.status == "undefined"


def test_reliability_when_worked_by_hand_is_corrected_to_full_length():
    # x 0 1 2 and y 0 2 1: n 3, sums 3 3, squares 5 5, product 4: (12 - 9) / (15 - 9) = 0.5; 1 / 1.5
    sums = np.array([3.0, 3.0, 3.0, 5.0, 5.0, 4.0])
    assert agreement.correlations(sums) == pytest.approx(0.5)
    assert agreement.corrected(np.array([0.5])) == pytest.approx(2 / 3)
    assert np.isnan(agreement.correlations(np.array([3.0, 3.0, 3.0, 3.0, 5.0, 4.0])))  # x is constant


def test_reliability_when_stories_differ_is_high_and_without_difference_near_zero(tmp_path):
    release = released(tmp_path, 60)
    random = np.random.default_rng(3)
    easy = {record.story_id: random.random() < 0.5 for record in release}
    noise = {
        question.question_id: random.random() < 0.5 for record in release for question in record.questions
    }
    real = viewed(tmp_path / "a", release, ("m",), lambda m, q, c: c != "image" or easy[q.story_id])
    assert agreement.reliability(real, "gap", Uncertainty(resamples=50)).value == pytest.approx(1.0)
    none = viewed(tmp_path / "b", release, ("m",), lambda m, q, c: c != "image" or noise[q.question_id])
    score = agreement.reliability(none, "gap", Uncertainty(resamples=200))
    assert score.low < 0 < score.high
    assert (
        agreement.reliability(none, "text", PLAIN).status == "undefined"
    )  # text is always right: all are alike
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
