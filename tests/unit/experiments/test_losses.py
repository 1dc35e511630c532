"""Planted losses as values: what each hits, what may be chosen, and what it does to pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from fabula.experiments.losses import (
    Boxes,
    CannotPlant,
    Panel,
    loss_named,
    scenes_needed,
)
from fabula.experiments.painting import encoded, paint_over
from fabula.schemas.katha import Question
from fabula.testing.gold_stories import gold_records

ANT = gold_records()[0]
STRIP = tuple(
    Panel(scene, encoded(Image.new("RGB", (16, 16), (20 * scene, 0, 0))), "png") for scene in range(1, 6)
)


def question(number: int) -> Question:
    return ANT.questions[number - 1]


def scenes(strip: tuple[Panel, ...]) -> list[int]:
    return [panel.scene for panel in strip]


def test_scenes_needed_when_asked_by_dimension_are_these() -> None:
    """The ant and the dove: target scene 2; transition 1-2; evidence 2, 3; 3-4; 4-5; evidence 2, 3; moral."""
    assert [scenes_needed(ANT, each) for each in ANT.questions] == [
        (2,), (1, 2), (2, 3), (3, 4), (4, 5), (2, 3), (),
    ]  # fmt: skip


def changed(number: int, **fields: object) -> Question:
    empty = {"target_scene": None, "target_transition": None, "evidence_scenes": ()}
    return question(number).model_copy(update=empty | fields)


def test_scenes_needed_when_fields_are_empty_fall_back_as_said() -> None:
    causal, emotional, order, action = 2, 3, 6, 1
    assert scenes_needed(ANT, changed(causal, target_scene=3)) == (2, 3)
    assert scenes_needed(ANT, changed(causal, target_scene=1)) == (1, 2)
    assert scenes_needed(ANT, changed(causal, evidence_scenes=(2, 4))) == (3, 4)
    assert scenes_needed(ANT, changed(causal)) == ()
    assert scenes_needed(ANT, changed(emotional, target_scene=4)) == (4,)
    assert scenes_needed(ANT, changed(order, evidence_scenes=(3,), target_transition=(3, 4))) == (3, 4)
    assert scenes_needed(ANT, changed(order, evidence_scenes=(5, 2, 3))) == (2, 3, 5)
    assert scenes_needed(ANT, changed(action, evidence_scenes=(2, 4))) == (4,)
    calm = ANT.model_copy(
        update={"scenes": tuple(scene.model_copy(update={"emotion": None}) for scene in ANT.scenes)}
    )
    assert scenes_needed(calm, changed(emotional, target_scene=4)) == (3, 4)


def test_questions_and_transitions_when_a_frame_is_removed_are_those_on_both_sides() -> None:
    removed = loss_named("removed")
    assert [each.question_id[-3:] for each in removed.questions(ANT, (3,))] == ["q03", "q04", "q06"]
    assert removed.transitions(ANT, (3,)) == ((2, 3), (3, 4))
    assert removed.transitions(ANT, (5,)) == ((4, 5),)
    assert loss_named("swapped").transitions(ANT, (2, 3)) == ((2, 3),)
    assert loss_named("object_erased").transitions(ANT, (2,)) == ()


def test_frames_when_swapped_removed_or_repeated_are_in_this_order() -> None:
    nothing = Boxes()
    assert scenes(loss_named("swapped").change(STRIP, (2, 3), nothing)) == [1, 3, 2, 4, 5]
    assert scenes(loss_named("removed").change(STRIP, (3,), nothing)) == [1, 2, 4, 5]
    assert scenes(loss_named("repeated").change(STRIP, (3,), nothing)) == [1, 2, 2, 4, 5]
    with pytest.raises(CannotPlant, match="fewer than two"):
        loss_named("removed").change(STRIP[:2], (1,), nothing)
    with pytest.raises(CannotPlant, match="no picture shows scene 9"):
        loss_named("removed").change(STRIP, (9,), nothing)


def pixels(panel: Panel) -> np.ndarray:
    with Image.open(io.BytesIO(panel.data)) as image:
        return np.asarray(image.convert("RGB"))


def test_box_when_erased_has_the_colour_around_it() -> None:
    image = Image.new("RGB", (20, 20), (10, 200, 30))
    image.paste((255, 0, 0), (5, 5, 10, 10))
    paint_over(image, [(5, 5, 10, 10)])
    assert (np.asarray(image) == (10, 200, 30)).all()
    paint_over(image, [(-5, -5, 25, 25)])  # all of it: nothing is around
    assert (np.asarray(image) == 128).all()


def test_object_when_erased_changes_its_picture_and_no_other() -> None:
    image = Image.new("RGB", (16, 16), (9, 9, 9))
    image.paste((255, 0, 0), (4, 4, 8, 8))
    strip = (STRIP[0], Panel(2, encoded(image), "png"), *STRIP[2:])
    after = loss_named("object_erased").change(strip, (2,), Boxes(decisive=((4, 4, 8, 8),)))
    assert (pixels(after[1]) == 9).all()
    assert [panel.data for panel in after if panel.scene != 2] == [
        panel.data for panel in strip if panel.scene != 2
    ]
    with pytest.raises(CannotPlant, match="nothing that is known to show its act"):
        loss_named("object_erased").change(strip, (2,), Boxes())


def test_control_when_stored_anew_differs_in_four_pixels_by_eight_levels() -> None:
    after = loss_named("none").change(STRIP, (), Boxes())
    for panel, before in zip(after, STRIP, strict=True):
        assert panel.data != before.data
        difference = np.abs(pixels(panel).astype(int) - pixels(before).astype(int))
        assert (difference.max(axis=2) > 0).sum() == 4
        assert difference.max() == 8
