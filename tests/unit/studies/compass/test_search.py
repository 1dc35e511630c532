"""The search of tuning on made-up likenesses, the budget, and arms."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.models.vision.types import Encoder, TextEncoder
from fabula.schemas.values import Score
from fabula.studies.compass.arms import ARMS, annotation_text, frame_scene, planned_frame
from fabula.studies.compass.boards import Board, Frame
from fabula.studies.compass.budget import budget, tuning_budget
from fabula.studies.compass.encoders import DrawnMarksEncoder, PixelEncoder, cosine
from fabula.studies.compass.judging import split_questions
from fabula.studies.compass.measuring import Measured
from fabula.studies.compass.requests import Grid, grid_of, search
from fabula.studies.compass.scoring import Weights
from fabula.studies.pictures.plans import PLANS
from fabula.testing.compass_stories import compass_release, draw_candidates


def known(value: float | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason="not known")
    return Score(value=value, status="ok")


def candidate(seed: int, r: float, like: float, near: float) -> Measured:
    """Two frames, one transition."""
    board = Board("s", seed, (Frame(Path("1"), "a", 1), Frame(Path("2"), "b", 2)))
    return Measured(board, known(r), np.array([[like], [0.0]]), np.array([near]), ((0, 1),), (True,))


GRID = Grid(
    (
        Weights(recoverability=0.8, coverage=0.1, copies=0.1),
        Weights(recoverability=0.1, coverage=0.8, copies=0.1),
        Weights(recoverability=0.1, coverage=0.1, copies=0.8),
    ),
    (0.3,), (0.9, 0.999),
)  # fmt: skip


@pytest.mark.parametrize(
    ("aims", "place"), [((0.9, 0.1, 0.2), 0), ((0.1, 0.9, 0.2), 1), ((0.1, 0.2, 0.9), 2)]
)
def test_search_when_one_term_picks_what_is_best_chooses_its_weights(
    aims: tuple[float, ...], place: int
) -> None:
    # The first is the most recoverable, the second alone is covered, the third alone has no copies:
    # by the weights 0.8 / 0.1 / 0.1 the scores are 0.8 - 0.1, 0.1 - 0.1, 0; and so on.
    story = [candidate(42, 1.0, 0.0, 1.0), candidate(123, 0.0, 0.9, 1.0), candidate(2026, 0.0, 0.0, 0.5)]
    found = search([story], [[known(aim) for aim in aims]], GRID)
    assert found.chosen == (place,)
    assert found.setting.weights == GRID.weights[place]
    assert (found.objective, found.tried) == (0.9, 3 * 1 * 2)


def test_search_when_settings_are_equal_takes_equal_weights_and_the_highest_gamma() -> None:
    weights = (*GRID.weights, Weights(recoverability=0.4, coverage=0.3, copies=0.3))
    story = [candidate(42, 1.0, 0.9, 0.1)]
    found = search([story], [[known(0.5)]], Grid(weights, (0.1, 0.2, 0.3), (0.9, 0.999)))
    assert found.setting.weights == weights[3]
    assert (found.setting.gamma, found.setting.delta) == (0.999, 0.2)
    assert found.setting.repair_threshold == 0


def test_search_when_stories_have_different_numbers_of_candidates_and_unknown_aims_leaves_those_out() -> None:
    two = [candidate(42, 0.0, 0.0, 1.0), candidate(123, 1.0, 0.9, 0.1)]
    one = [candidate(42, 0.0, 0.0, 1.0)]
    found = search([two, one, two], [[known(0.0), known(1.0)], [known(0.5)], [known(None), known(1.0)]], GRID)
    # (1.0 + 0.5) / 2: the third story has a candidate whose aim nobody knows.
    assert (found.objective, found.chosen) == (0.75, (1, 0, 1))
    with pytest.raises(InputError, match="there is no objective"):
        search([one], [[known(None)]], GRID)


def test_grid_when_made_takes_thresholds_from_the_candidates_and_weights_above_zero() -> None:
    stories = [[candidate(42, 0.0, number / 10, number / 10)] for number in range(11)]
    grid = grid_of(stories)
    # Quantiles that are values themselves: of 0.0 to 1.0 in tenths.
    assert grid.deltas == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert grid.gammas == (0.7, 0.9, 0.999)  # 0.75 and 0.99 fall between: the lower one; 0.9, 0.95 -> 0.9
    assert len(grid.weights) == 36  # so many ways to write 10 as a sum of three numbers from 1
    assert all(w.recoverability + w.coverage + w.copies == pytest.approx(1) for w in grid.weights)
    assert min(w.copies for w in grid.weights) == 0.1


def test_budget_when_counted_by_hand_is_the_most_that_there_can_be(tmp_path: Path) -> None:
    release = compass_release(tmp_path, 0, 2)
    halves = split_questions(release.records)
    # 2 stories, 16 questions each, 8 of them select, all of those are about a transition; 3 seeds, 2 judges.
    asked = budget(release.records, halves, ARMS, 3, 2, "own")
    full = asked.arms["full"]
    assert (full.candidates, full.weakest, full.bridges) == (2 * 8 * 3 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    assert full.pictures == 2 * 5 * 3 + 2 * 3
    assert asked.arms["base"].calls == asked.arms["coverage+copies"].calls == 0
    assert asked.arms["base"].reporting == 2 * (2 * 8) * 3 * 2
    bridge = asked.arms["bridge-only"]
    assert (bridge.candidates, bridge.weakest, bridge.bridges) == (2 * 8 * 2, 2 * 8 * 2, 2 * 8 * 3 * 2)
    # Two starts are repaired; candidates are judged once.
    together = asked.together
    assert (together.candidates, together.weakest, together.bridges) == (96, 64, 192)
    assert asked.text == 2 * 8 * 2
    assert budget(release.records, halves, ARMS, 3, 2, "whole").arms["full"].weakest == 0
    tuning = tuning_budget(release.records, halves, 3, 2, "own").arms["tuning"]
    assert tuning.candidates == 2 * 16 * 3 * 2
    assert tuning.bridges == full.bridges + 2 * 8 * 2
    assert any("calls to select and repair" in line for line in asked.lines())


# Encoders without weights, cosines, and texts of annotations.


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> Image.Image:
    return Image.new("RGB", size, colour)


def test_pixels_when_pictures_are_equal_or_scaled_give_one_and_opposite_ones_less() -> None:
    rows = PixelEncoder().encode([plain((0, 0, 0)), plain((0, 0, 0), (128, 96)), plain((255, 255, 255))])
    assert rows.shape == (3, 769)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert cosine(rows[0], rows[1]) == 1
    # 768 numbers of -0.5 against +0.5 and one of 0.5: (-768 + 1) / 769
    assert cosine(rows[0], rows[2]) == round(-767 / 769, 6)
    grey = PixelEncoder().encode([plain((128, 128, 128)), plain((128, 128, 128))])
    assert cosine(grey[0], grey[1]) == 1


def test_drawn_marks_when_read_are_those_of_texts_and_unknown_elsewhere(tmp_path: Path) -> None:
    record = compass_release(tmp_path / "release", 1, 1).records[0]
    boards = draw_candidates(tmp_path / "boards", [record], lambda *_: False, [42])
    encoder = DrawnMarksEncoder()
    assert isinstance(encoder, Encoder) and isinstance(encoder, TextEncoder)
    with Image.open(boards / record.story_id / "seed_42" / "02.png") as picture:
        rows = encoder.encode([picture.convert("RGB"), plain((9, 9, 9))])
    texts = encoder.encode_texts([annotation_text(transition) for transition in record.transitions])
    # The frame has 4 marks: hero, action, cause, outcome; the annotation has 3: action, cause, outcome.
    # Two are the same: 2 / sqrt(4 x 3).
    assert cosine(rows[0], texts.rows[0]) == pytest.approx(2 / np.sqrt(12), abs=1e-6)
    assert cosine(rows[0], texts.rows[2]) == 0
    assert np.isnan(rows[1]).all()
    assert texts.cut == (0, 0, 0, 0)


def test_annotation_text_when_fields_are_null_leaves_them_out_and_keeps_their_order(tmp_path: Path) -> None:
    transition = compass_release(tmp_path, 1, 1).records[0].transitions[0]
    filled = transition.model_copy(
        update={"action": "the fox  leaps", "causality": None, "emotion": "joy", "consequence": "it is\nwet"}
    )
    assert annotation_text(filled) == "the fox leaps\njoy\nit is wet"
    empty = dict.fromkeys(("action", "causality", "emotion", "consequence"))
    assert annotation_text(filled.model_copy(update=empty)) == ""


def test_frames_when_planned_show_what_their_way_allows_and_no_question(tmp_path: Path) -> None:
    record = compass_release(tmp_path, 1, 1).records[0]
    transition = record.transitions[1]
    prompts = {
        shows: planned_frame(record, 2, shows).prompt for shows in ("transition", "captions", "setting")
    }  # type: ignore[arg-type]
    cause = str(transition.causality)
    captions = [record.scenes[1].scene_text, record.scenes[2].scene_text]
    assert cause in prompts["transition"] and captions[0] not in prompts["transition"]
    assert all(caption in prompts["captions"] for caption in captions)
    assert str(transition.action) not in prompts["captions"]
    assert not any(text in prompts["setting"] for text in (cause, *captions, str(transition.action)))
    assert "Nothing happens" in prompts["setting"]
    hero = record.scenes[1].characters[0]
    assert all(hero in prompt for prompt in prompts.values())
    assert not any(
        question.question in prompt for question in record.questions for prompt in prompts.values()
    )
    kinds = {shows: {mark.kind for mark in frame_scene(record, 2, shows).marks} for shows in prompts}  # type: ignore[arg-type]
    assert kinds["setting"] == {"character"}
    assert {"cause", "consequence", "change"} <= kinds["transition"]
    assert "cause" not in kinds["captions"] and "must_show" in kinds["captions"]
    assert "inserted-frame" not in {plan.name for plan in PLANS}


def test_frames_when_planned_never_tell_what_questions_ask_for_nor_the_moral(tmp_path: Path) -> None:
    record = compass_release(tmp_path, 1, 1).records[0]
    hidden = {"recoverability_target": "whoever asks for this", "moral_target": "a hidden moral"}
    transitions = tuple(transition.model_copy(update=hidden) for transition in record.transitions)
    record = record.model_copy(update={"transitions": transitions})
    for shows in ("transition", "captions", "setting"):
        panel = planned_frame(record, 1, shows)  # type: ignore[arg-type]
        marks = " ".join(mark.text for mark in panel.drawn.marks)
        assert not any(text in panel.prompt or text in marks for text in hidden.values())
        assert not any(text in annotation_text(record.transitions[0]) for text in hidden.values())
