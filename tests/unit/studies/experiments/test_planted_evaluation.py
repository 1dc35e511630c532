"""From planted losses to verdicts: the judge that reads drawn frames loses what was planted, nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from fabula.evaluation.archive.archive import Archive, read_archive
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.releases.loading import Release
from fabula.schemas.katha import Question
from fabula.schemas.text import normalize_answer
from fabula.studies.experiments.measures.falls import read_plants
from fabula.studies.experiments.planting import PLANTS, Planted, PlantOptions, plant
from fabula.studies.pictures.plans import plan_named
from fabula.testing.drawn_judge import GUESSES
from fabula.testing.drawn_outputs import draw_method
from fabula.testing.drawn_service import service_of
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.gold_stories import gold_bundles
from fabula.testing.model_server import ModelServer

STORIES = 4
CREATED = "2026-01-01T00:00:00Z"
LOSSES = ("swapped", "removed", "repeated", "object_erased", "emotion_flattened", "none")


@dataclass(frozen=True)
class World:
    folder: Path
    release: Release
    outputs: Path
    planted: Planted

    def judged(self, outputs: Sequence[Path], names: Sequence[str], out: str) -> Archive:
        """Have judges of these names answer about some outputs, through the real client."""
        with ModelServer(service_of(self.release.records)) as server:
            judges = [f"{server.openai_url}#{name}" for name in names]
            options = EvaluateOptions(
                judges=judges, models={judge: {"attempts": 2, "patience": 5} for judge in judges},
                questions_only=True, workers=0, created_at=CREATED,
            )  # fmt: skip
            evaluate_katha(self.release.path, list(outputs), self.folder / out, options)
        return read_archive(self.folder / out)

    def questions(self) -> list[Question]:
        return [question for record in self.release.records for question in record.questions]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("planted")
    release = judged_release(folder / "release", gold_bundles()[:STORIES])
    truth = folder / "truth.jsonl"
    plan = plan_named("transition-aware")
    outputs = draw_method(folder / "outputs", release.records, plan, truth=truth)
    planted = plant(outputs, release, folder / "planted", PlantOptions(losses=LOSSES, truth=truth))
    return World(folder, release, outputs, planted)


def expected_losses(question: Question, loss: str, hit: Sequence[int]) -> bool:
    """Whether a question is lost, by its own fields: every question of the samples has these."""
    kind, evidence = question.question_type, set(question.evidence_scenes)
    pair = set(question.target_transition or ())
    if loss == "swapped":
        return kind == "temporal_order" and set(hit) <= evidence
    if loss == "object_erased":
        return kind == "action_visibility" and question.target_scene == hit[0]
    if loss == "emotion_flattened":
        return kind == "emotional" and hit[0] in evidence
    if loss == "none":
        return False
    shown_by = {
        "action_visibility": {question.target_scene}, "causal": pair, "consequence": pair,
        "emotional": evidence, "temporal_order": evidence, "moral": set(),
    }  # fmt: skip
    return hit[0] in shown_by[kind]


def right(archive: Archive, world: World, condition: str = "image") -> dict[tuple[Any, ...], bool]:
    """(method, judge, question) -> whether it was answered with an accepted answer."""
    accepted = {
        question.question_id: {normalize_answer(text) for text in question.accepted_answers}
        for question in world.questions()
    }
    key = "final_answer" if condition == "text_image" else "answer"
    verdicts = {}
    for row in archive.judgements:
        if row.kind == "question" and row.condition == condition:
            assert row.outcome == "answered"
            name = row.judge.spec.rpartition(":")[2]
            verdicts[row.method, name, row.item] = normalize_answer(row.parsed[key]) in accepted[row.item]
    return verdicts


@pytest.mark.slow
def test_verdicts_when_losses_are_planted_are_exactly_as_computed_before(world: World) -> None:
    archive = world.judged([world.outputs, *world.planted.methods.values()], ["drawn"], "exact")
    verdicts = right(archive, world)
    base = world.outputs.name
    expected = {(base, "drawn", question.question_id): True for question in world.questions()}
    for row in world.planted.rows:
        for question in world.questions():
            if question.story_id == row["story_id"]:
                lost = expected_losses(question, str(row["loss"]), row["panels"])
                expected[row["method"], "drawn", question.question_id] = not lost
                assert (question.question_id in row["questions"]) == lost
    assert len(expected) == (1 + len(LOSSES)) * len(world.questions())
    assert verdicts == expected
    lost = {key[0].rpartition("-")[2] for key, was_right in verdicts.items() if not was_right}
    assert lost == set(LOSSES) - {"none"}
    assert all(right(archive, world, "text").values())
    assert all(right(archive, world, "text_image").values())


@pytest.mark.slow
def test_rates_when_the_judge_errs_or_guesses_lie_within_their_binomials(world: World) -> None:
    """All is visible: a judge with error e is right at each question with 1 - e, one that guesses with 1/4;
    over the three conditions that is 3 n independent draws. 99.9% intervals."""
    names = {"drawn-0.1": 0.9, "drawn-0.3": 0.7, "drawn-guessing": 1 / GUESSES}
    archive = world.judged([world.outputs], list(names), "erring")
    for name, share in names.items():
        verdicts = [
            was_right
            for condition in ("text", "image", "text_image")
            for (_, judge, _), was_right in right(archive, world, condition).items()
            if judge == name
        ]
        assert len(verdicts) == 3 * len(world.questions())
        low, high = binom.ppf([0.0005, 0.9995], len(verdicts), share)
        assert low <= sum(verdicts) <= high, name


def test_plants_when_read_by_the_measures_are_what_was_written(world: World) -> None:
    plants = read_plants(world.folder / "planted" / PLANTS)
    assert [each.loss for each in plants] == [row["loss"] for row in world.planted.rows]
    assert [list(each.dimensions) for each in plants] == [row["dimensions"] for row in world.planted.rows]
    assert {each.loss for each in plants if len(each.transitions) == 1} >= {"swapped"}
    assert [each.is_control for each in plants].count(True) == STORIES
