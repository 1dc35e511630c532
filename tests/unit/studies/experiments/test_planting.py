"""Planting losses into folders of outputs: what is written, what is not, and killed calls."""

import io
import json
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.models.generators.drawn.canvas import NEUTRAL
from fabula.models.generators.drawn.codes import code_of
from fabula.models.generators.drawn.reading import read_marks
from fabula.releases.loading import Release
from fabula.schemas.katha import Question
from fabula.studies.experiments import planting
from fabula.studies.experiments.losses import (
    LOSSES,
    Boxes,
    CannotPlant,
    Panel,
    encoded,
    loss_named,
    paint_over,
    scenes_needed,
)
from fabula.studies.experiments.planting import PLANTS, UNPLANTED, PlantOptions, boxes_of_truth, plant
from fabula.studies.pictures.plans import plan_named
from fabula.testing.drawn_outputs import draw_method
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.gold_stories import gold_bundles, gold_records

STORIES = 3


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Path, Path]:
    """A release, the outputs of a method, and what they show."""
    folder = tmp_path_factory.mktemp("base")
    release = judged_release(folder / "release", gold_bundles()[:STORIES])
    truth = folder / "truth.jsonl"
    outputs = draw_method(
        folder / "outputs", release.records, plan_named("transition-aware"), seeds=(42, 123), truth=truth
    )
    return release, outputs, truth


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_planting_when_finished_leaves_valid_methods_and_says_what_was_done(
    base: tuple[Release, Path, Path], tmp_path: Path
) -> None:
    release, outputs, truth = base
    planted = plant(outputs, release, tmp_path / "planted", PlantOptions(truth=truth))
    assert set(planted.methods) == {loss.name for loss in LOSSES}
    assert rows(tmp_path / "planted" / PLANTS) == list(planted.rows)
    assert rows(tmp_path / "planted" / UNPLANTED) == []
    assert Counter(row["loss"] for row in planted.rows) == {loss.name: 2 * STORIES for loss in LOSSES}
    for name, folder in planted.methods.items():
        report = check_outputs(folder, release.records, known=release)
        assert report.method == folder.name == f"transition-aware+faithful-{name}"
        assert report.invalid == ()
        assert {issue.code for issue in report.issues} <= {"same-picture"}
        assert report.seeds == (42, 123)
        assert {len(board.files) for board in report.outputs} == {4 if name == "removed" else 5}
    for row in planted.rows:
        assert row["base"] == "transition-aware+faithful"
        twin = next(
            other
            for other in planted.rows
            if (other["story_id"], other["loss"]) == (row["story_id"], row["loss"]) and other != row
        )
        assert {**row, "seed": None} == {**twin, "seed": None}  # the same is hit for every generation seed
    assert all(row["dimensions"] for row in planted.rows if row["loss"] != "none")


def test_pictures_when_something_is_erased_or_flattened_show_all_but_that(
    base: tuple[Release, Path, Path], tmp_path: Path
) -> None:
    release, outputs, truth = base
    options = PlantOptions(losses=["object_erased", "emotion_flattened"], truth=truth)
    planted = plant(outputs, release, tmp_path / "planted", options)
    for row in planted.rows:
        record = release.by_id[row["story_id"]]
        (scene,) = row["panels"]
        place = Path(row["story_id"], f"seed_{row['seed']}", f"{scene:02}.png")
        before, after = (
            Counter((mark.kind, mark.code) for mark in read_marks((folder / place).read_bytes()))
            for folder in (outputs, planted.methods[row["loss"]])
        )
        if row["loss"] == "object_erased":
            gone = before - after
            assert ("action", code_of(str(record.scenes[scene - 1].action))) in gone
            assert {kind for kind, _ in gone} <= {"action", "object"}
            assert not after - before
        else:
            assert {kind for kind, _ in before - after} == {"emotion"}
            feelings = sum(count for (kind, _), count in before.items() if kind == "emotion")
            assert after - before == Counter({("emotion", code_of(NEUTRAL)): feelings})


def test_planting_when_it_cannot_be_done_says_why_and_writes_no_folder(
    base: tuple[Release, Path, Path], tmp_path: Path
) -> None:
    release, outputs, _ = base
    planted = plant(outputs, release, tmp_path / "planted", PlantOptions(losses=["object_erased", "swapped"]))
    assert set(planted.methods) == {"swapped"}
    assert not (tmp_path / "planted" / "transition-aware+faithful-object_erased").exists()
    assert len(planted.unplanted) == 2 * STORIES
    assert "nothing that is known to show its act" in str(planted.unplanted[0]["reason"])
    assert "object_erased: 0 storyboards, not in 6" in planted.told()


def test_planting_when_a_storyboard_is_invalid_or_its_scenes_unknown_says_so(
    base: tuple[Release, Path, Path], tmp_path: Path
) -> None:
    release, outputs, _ = base
    copy = tmp_path / "method"
    shutil.copytree(outputs, copy)
    (copy / "kb25k_0001" / "seed_42" / "03.png").unlink()
    (copy / "kb25k_0002" / "seed_42" / "06.png").write_bytes(
        (copy / "kb25k_0002" / "seed_42" / "05.png").read_bytes()
    )
    (copy / "kb25k_0002" / "seed_123" / "06.png").write_bytes(
        (copy / "kb25k_0002" / "seed_123" / "05.png").read_bytes()
    )
    (copy / "outputs.json").write_text('{"panels": {"kb25k_0002": 6}}')
    planted = plant(copy, release, tmp_path / "planted", PlantOptions(losses=["swapped"]))
    reasons = {(row["story_id"], row["seed"]): str(row["reason"]) for row in planted.unplanted}
    assert "missing-panel" in reasons["kb25k_0001", 42]
    assert "not known which scene" in reasons["kb25k_0002", 42]
    assert ("kb25k_0001", 123) not in reasons


def test_planting_when_boxes_are_given_for_other_pictures_uses_them(
    base: tuple[Release, Path, Path], tmp_path: Path
) -> None:
    release, outputs, _ = base
    boxes = tmp_path / "boxes.jsonl"
    line = {"story_id": "kb25k_0001", "seed": 42, "panel": 2, "kind": "decisive", "box": [0, 0, 64, 64]}
    boxes.write_text(json.dumps(line) + "\n")
    options = PlantOptions(losses=["object_erased"], boxes=boxes)
    planted = plant(outputs, release, tmp_path / "planted", options)
    assert [(row["story_id"], row["seed"], row["panels"]) for row in planted.rows] == [
        ("kb25k_0001", 42, [2])
    ]
    wrong = {
        "kind": {"kind": "lamp"},
        "left < right": {"box": [64, 0, 0, 64]},
        "shares": {"box": [0, 0, 1, 1]},
    }
    for said, change in wrong.items():
        boxes.write_text(json.dumps({**line, **change}) + "\n")
        with pytest.raises(InputError, match=said):
            plant(outputs, release, tmp_path / "other", options)


def test_boxes_when_read_off_truth_hold_the_act_and_things_that_answers_name(
    base: tuple[Release, Path, Path],
) -> None:
    """The answer to what the dove does in scene 2 names the leaf, and the water; the act is one mark."""
    release, _, truth = base
    row = next(row for row in rows(truth) if (row["story_id"], row["panel"]) == ("kb25k_0001", 2))
    boxes = boxes_of_truth(row["truth"], release.by_id["kb25k_0001"], 2)
    named = [mark["text"] for mark in row["truth"]["drawn"] if tuple(mark["box"]) in boxes.decisive]
    assert named == ["leaf", "water", release.by_id["kb25k_0001"].scenes[1].action]
    assert len(boxes.feelings) == 3  # of the scene, and of the transitions before and after
    assert len(boxes.heads) == 2


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("after", [0, 1, 7, 40, 41, 100])
def test_planting_when_killed_anywhere_and_called_again_gives_the_same_bytes(
    base: tuple[Release, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    release, outputs, truth = base
    options = PlantOptions(losses=["swapped", "removed"], truth=truth)
    plant(outputs, release, tmp_path / "whole", options)
    real, written = planting.write_atomic, 0

    def write(path: Path, chunks: Any) -> None:
        nonlocal written
        if written == after:
            raise Killed
        written += 1
        real(path, chunks)

    with monkeypatch.context() as patch:
        patch.setattr(planting, "write_atomic", write)
        with suppress(Killed):
            plant(outputs, release, tmp_path / "killed", options)
    plant(outputs, release, tmp_path / "killed", options)
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
    assert (
        plant(outputs, release, tmp_path / "killed", options).rows
        == plant(outputs, release, tmp_path / "whole", options).rows
    )


# Planted losses as values: what each hits, what may be chosen, and what it does to pictures.

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
