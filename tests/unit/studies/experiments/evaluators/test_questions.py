"""Questions of other evaluators: by rules from annotations, by a model through the server, as releases."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.engine.run_options import RunOptions
from fabula.errors import BelowThreshold, InputError
from fabula.evaluation.judging.packets import question_packets
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import judged_folder, scores_of
from fabula.releases.loading import Release, load
from fabula.schemas.text import normalize_answer
from fabula.studies.experiments.evaluators.deriving import (
    derive,
    read_sidecar,
    write_by_model,
    writing_request,
)
from fabula.studies.experiments.evaluators.evaluator import Material, Pool, elements_of
from fabula.studies.experiments.evaluators.graph import apply_graph, ordered, with_parents
from fabula.studies.experiments.evaluators.registry import EVALUATORS, evaluator_of
from fabula.studies.experiments.measures.planted import seen_by, view_of
from fabula.studies.experiments.measures.views import view_scores
from fabula.testing import stand_in_models
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.planted_judgements import write_judged
from fabula.testing.simulated_evaluations import write_loadable_release

CREATED = "2026-01-01T00:00:00Z"
BY_RULES = [name for name in EVALUATORS if evaluator_of(name).build is not None]
BY_MODEL = [name for name in EVALUATORS if evaluator_of(name).prompt is not None]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return drawn_release(tmp_path_factory.mktemp("evaluators") / "release")


@pytest.mark.parametrize("name", BY_RULES)
def test_rules_when_asking_offer_the_answer_once_and_state_what_blind_answers_get(
    release: Release, name: str
) -> None:
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


def test_release_when_derived_is_asked_from_like_any_and_says_how_it_was_made(
    release: Release, tmp_path: Path
) -> None:
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
def test_model_when_it_writes_questions_is_a_run_that_is_not_paid_twice(
    release: Release, tmp_path: Path, name: str
) -> None:
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
    assert len(sidecar.makers) == 1 and f"via {evaluator.prompt}@1" in sidecar.makers[0]
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
        ("tifa", {"scene": 9}, "scene must be 1 to 5"),
        ("dsg", {"parents": [5]}, "earlier statements"),
    ],
)
def test_reply_when_it_cannot_be_is_told_to_the_model(
    release: Release, tmp_path: Path, name: str, change: dict[str, Any], told: str
) -> None:
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
def test_outputs_when_judged_with_an_evaluators_questions_are_scored_with_its_graph(
    release: Release, tmp_path: Path
) -> None:
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
