"""Planting losses into folders of outputs: what is written, what is not, and killed calls."""

import io
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.stats import binom

from fabula.errors import BudgetStop, ConfigError, InputError, MissingRequirement
from fabula.evaluation.archive.archive import Archive, read_archive
from fabula.evaluation.katha.load_items import variant_stories
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import judged_folder
from fabula.models.generators.drawn.images import read_marks
from fabula.models.generators.drawn.scene import NEUTRAL, code_of
from fabula.releases.loading import Release
from fabula.schemas.katha import Question
from fabula.schemas.text import normalize_answer
from fabula.studies.compass.arms import STILL_FRAME
from fabula.studies.experiments import losses, planting
from fabula.studies.experiments.measures.falls import read_plants
from fabula.studies.experiments.planting import (
    PLANTS,
    UNPLANTED,
    Planted,
    PlantOptions,
    boxes_of_truth,
    plant,
)
from fabula.studies.experiments.running import run_study
from fabula.studies.experiments.study import (
    Desk,
    ExperimentOptions,
    Renderer,
    Study,
    orders_of,
    study_status,
)
from fabula.studies.experiments.tables.ablations import contrasts, story_audit
from fabula.studies.experiments.tables.compass import bridge_controls, differences
from fabula.studies.experiments.tables.compass_results import CompassResults
from fabula.studies.experiments.tables.evaluators import components, controls, ladder
from fabula.studies.experiments.tables.failures import accuracy, failures_of
from fabula.studies.experiments.tables.leaderboard import leaderboard
from fabula.studies.experiments.tables.pipelines import pipelines
from fabula.studies.experiments.tables.results import read_results
from fabula.studies.pictures import plan_named
from fabula.testing.drawn_judge import GUESSES
from fabula.testing.drawn_outputs import draw_method
from fabula.testing.drawn_service import service_of
from fabula.testing.drawn_storyboards import draw_outputs, judged_release
from fabula.testing.gold_stories import gold_bundles, gold_records
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles, with_variant_questions
from fabula.testing.model_server import ModelServer

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
def test_planting_when_finished_leaves_valid_methods_and_says_what_was_done(base, tmp_path):
    release, outputs, truth = base
    planted = plant(outputs, release, tmp_path / "planted", PlantOptions(truth=truth))
    assert set(planted.methods) == {loss.name for loss in losses.LOSSES}
    assert rows(tmp_path / "planted" / PLANTS) == list(planted.rows)
    assert rows(tmp_path / "planted" / UNPLANTED) == []
    assert Counter(row["loss"] for row in planted.rows) == {loss.name: 2 * STORIES for loss in losses.LOSSES}
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


def test_pictures_when_something_is_erased_or_flattened_show_all_but_that(base, tmp_path):
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


def test_planting_when_it_cannot_be_done_says_why_and_writes_no_folder(base, tmp_path):
    release, outputs, _ = base
    planted = plant(outputs, release, tmp_path / "planted", PlantOptions(losses=["object_erased", "swapped"]))
    assert set(planted.methods) == {"swapped"}
    assert not (tmp_path / "planted" / "transition-aware+faithful-object_erased").exists()
    assert len(planted.unplanted) == 2 * STORIES
    assert "nothing that is known to show its act" in str(planted.unplanted[0]["reason"])
    assert "object_erased: 0 storyboards, not in 6" in planted.told()


def test_planting_when_a_storyboard_is_invalid_or_its_scenes_unknown_says_so(base, tmp_path):
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
    assert "missing" in reasons["kb25k_0001", 42]
    assert "not known which scene" in reasons["kb25k_0002", 42]
    assert ("kb25k_0001", 123) not in reasons


def test_planting_when_boxes_are_given_for_other_pictures_uses_them(base, tmp_path):
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


def test_boxes_when_read_off_truth_hold_the_act_and_things_that_answers_name(base):
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
    for picture in sorted((tmp_path / "killed").rglob("*.png"))[:1]:
        picture.write_bytes(b"half")
    plant(outputs, release, tmp_path / "killed", options)
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
    assert (
        plant(outputs, release, tmp_path / "killed", options).rows
        == plant(outputs, release, tmp_path / "whole", options).rows
    )


# Planted losses as values: what each hits, what may be chosen, and what it does to pictures.

ANT = gold_records()[0]
STRIP = tuple(
    losses.Panel(scene, losses.encoded(Image.new("RGB", (16, 16), (20 * scene, 0, 0))), "png")
    for scene in range(1, 6)
)


def question(number: int) -> Question:
    return ANT.questions[number - 1]


def scenes(strip: tuple[losses.Panel, ...]) -> list[int]:
    return [panel.scene for panel in strip]


def test_scenes_needed_when_asked_by_dimension_are_these() -> None:
    """The ant and the dove: target scene 2; transition 1-2; evidence 2, 3; 3-4; 4-5; evidence 2, 3; moral."""
    assert [losses.scenes_needed(ANT, each) for each in ANT.questions] == [
        (2,), (1, 2), (2, 3), (3, 4), (4, 5), (2, 3), (),
    ]  # fmt: skip


def changed(number: int, **fields: object) -> Question:
    empty = {"target_scene": None, "target_transition": None, "evidence_scenes": ()}
    return question(number).model_copy(update=empty | fields)


def test_scenes_needed_when_fields_are_empty_fall_back_as_said() -> None:
    causal, emotional, order, action = 2, 3, 6, 1
    assert losses.scenes_needed(ANT, changed(causal, target_scene=3)) == (2, 3)
    assert losses.scenes_needed(ANT, changed(causal, target_scene=1)) == (1, 2)
    assert losses.scenes_needed(ANT, changed(causal, evidence_scenes=(2, 4))) == (3, 4)
    assert losses.scenes_needed(ANT, changed(causal)) == ()
    assert losses.scenes_needed(ANT, changed(emotional, target_scene=4)) == (4,)
    assert losses.scenes_needed(ANT, changed(order, evidence_scenes=(3,), target_transition=(3, 4))) == (3, 4)
    assert losses.scenes_needed(ANT, changed(order, evidence_scenes=(5, 2, 3))) == (2, 3, 5)
    assert losses.scenes_needed(ANT, changed(action, evidence_scenes=(2, 4))) == (4,)
    calm = ANT.model_copy(
        update={"scenes": tuple(scene.model_copy(update={"emotion": None}) for scene in ANT.scenes)}
    )
    assert losses.scenes_needed(calm, changed(emotional, target_scene=4)) == (3, 4)


def test_questions_and_transitions_when_a_frame_is_removed_are_those_on_both_sides() -> None:
    removed = losses.loss_named("removed")
    assert [each.question_id[-3:] for each in removed.questions(ANT, (3,))] == ["q03", "q04", "q06"]
    assert removed.transitions(ANT, (3,)) == ((2, 3), (3, 4))
    assert removed.transitions(ANT, (5,)) == ((4, 5),)
    assert losses.loss_named("swapped").transitions(ANT, (2, 3)) == ((2, 3),)
    assert losses.loss_named("object_erased").transitions(ANT, (2,)) == ()


def test_frames_when_swapped_removed_or_repeated_are_in_this_order() -> None:
    nothing = (losses.Boxes(), losses.Boxes())
    assert scenes(losses.loss_named("swapped").change(STRIP, (2, 3), nothing)) == [1, 3, 2, 4, 5]
    assert scenes(losses.loss_named("removed").change(STRIP, (3,), nothing)) == [1, 2, 4, 5]
    assert scenes(losses.loss_named("repeated").change(STRIP, (3,), nothing)) == [1, 2, 2, 4, 5]
    with pytest.raises(losses.CannotPlant, match="fewer than two"):
        losses.loss_named("removed").change(STRIP[:2], (1,), nothing)
    with pytest.raises(losses.CannotPlant, match="no picture shows scene 9"):
        losses.loss_named("removed").change(STRIP, (9,), nothing)


def pixels(panel: losses.Panel) -> np.ndarray:
    with Image.open(io.BytesIO(panel.data)) as image:
        return np.asarray(image.convert("RGB"))


def test_box_when_erased_has_the_colour_around_it() -> None:
    image = Image.new("RGB", (20, 20), (10, 200, 30))
    image.paste((255, 0, 0), (5, 5, 10, 10))
    losses.paint_over(image, [(5, 5, 10, 10)])
    assert (np.asarray(image) == (10, 200, 30)).all()
    losses.paint_over(image, [(-5, -5, 25, 25)])  # all of it: nothing is around
    assert (np.asarray(image) == 128).all()


def test_object_when_erased_changes_its_picture_and_no_other() -> None:
    image = Image.new("RGB", (16, 16), (9, 9, 9))
    image.paste((255, 0, 0), (4, 4, 8, 8))
    strip = (STRIP[0], losses.Panel(2, losses.encoded(image), "png"), *STRIP[2:])
    after = losses.loss_named("object_erased").change(strip, (2,), [losses.Boxes(decisive=((4, 4, 8, 8),))])
    assert (pixels(after[1]) == 9).all()
    assert [panel.data for panel in after if panel.scene != 2] == [
        panel.data for panel in strip if panel.scene != 2
    ]
    with pytest.raises(losses.CannotPlant, match="nothing that is known to show its act"):
        losses.loss_named("object_erased").change(strip, (2,), [losses.Boxes()])


def test_transition_when_erased_loses_its_links_in_both_pictures_and_nothing_else() -> None:
    image = Image.new("RGB", (16, 16), (9, 9, 9))
    image.paste((255, 0, 0), (4, 4, 8, 8))
    strip = (STRIP[0], *(losses.Panel(scene, losses.encoded(image), "png") for scene in (2, 3)), *STRIP[3:])
    loss, link = losses.loss_named("transition_erased"), losses.Boxes(links=((4, 4, 8, 8),))
    after = loss.change(strip, (2, 3), (link, link))
    assert [bool((pixels(panel) == 9).all()) for panel in after[1:3]] == [True, True]
    assert after[:1] + after[3:] == strip[:1] + strip[3:]
    with pytest.raises(losses.CannotPlant, match="how scene 3 follows scene 2"):
        loss.change(strip, (2, 3), (losses.Boxes(), losses.Boxes()))


def test_control_when_stored_anew_differs_in_four_pixels_by_eight_levels() -> None:
    after = losses.loss_named("none").change(STRIP, (), ())
    for panel, before in zip(after, STRIP, strict=True):
        assert panel.data != before.data
        difference = np.abs(pixels(panel).astype(int) - pixels(before).astype(int))
        assert (difference.max(axis=2) > 0).sum() == 4
        assert difference.max() == 8


# -- Reading a study, and what its folder is to be called

MODEL = "image:drawn:storyboard"
NO_KEY = (MissingRequirement, "OPENAI_API_KEY")


def study(**more: object) -> Study:
    given = {
        "name": "s",
        "release": "r",
        "plans": ["direct"],
        "renderers": {"a": {"model": MODEL}},
        "judges": ["x:y"],
    }
    return Study.model_validate(given | more)


@pytest.fixture
def release(tmp_path: Path):
    bundles = sample_bundles(3)
    for bundle, split in zip(bundles, ("public_test", "public_test", "validation"), strict=True):
        bundle["record"]["split"] = split
    return judged_release(tmp_path / "release", bundles)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judges": []}, "judges"),
        ({"seeds": []}, "seeds"),
        ({"conditions": ["smell"]}, "conditions"),
        ({"renderers": {"a": {"model": "video:drawn:faithful"}}}, "makes no pictures"),
        ({"renderers": {"a": {"model": MODEL, "rewrite": MODEL}}}, "no chat model"),
        ({"renderers": {"a": {"model": MODEL, "outputs": "a"}}}, "a model that makes pictures, or outputs"),
        ({"renderers": {"a": {"outputs": "a", "steps": 5}}, "plans": []}, "steps: finished storyboards"),
        ({"renderers": {"a": {"outputs": "a"}}}, "no renderer with a model for its plans"),
        ({"plans": []}, "no plans for its renderers"),
        ({"name": "No Name"}, "name"),
        (
            {
                "compass": {
                    "plan": "direct",
                    "renderer": "a",
                    "coverage": "c",
                    "copies": "p",
                    "tuned_on": "public_test",
                }
            },
            "tuned on public_test, which the study reports on",
        ),
    ],
)
def test_study_when_a_value_is_wrong_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        study(**change)


def test_orders_when_compass_is_wanted_have_candidates_of_its_split_for_its_method_alone(release) -> None:
    renderers = {"a": {"model": MODEL}, "b": {"model": MODEL, "seeded": False}}
    compass = {"plan": "direct", "renderer": "a", "coverage": "drawn-marks", "copies": "pixels"}
    ordered = orders_of(study(renderers=renderers, compass=compass, seeds=[1, 2]), release)
    stories = {split: ordered.stories[split] for split in ("public_test", "validation")}
    assert {split: len(names) for split, names in stories.items()} == {"public_test": 2, "validation": 1}
    keys = [order.key for order in ordered.orders]
    # a: 2 stories of the test and 1 of validation with 2 seeds each; b: 2 stories, once, without a seed.
    assert len(keys) == 3 * 2 + 2 and ordered.pictures == 8 * 5
    assert {key for key in keys if key.startswith("direct+b/")} == {
        f"direct+b/{story}" for story in stories["public_test"]
    }
    limited = orders_of(study(renderers=renderers, seeds=[1], limit=1), release)
    assert len(limited.orders) == 2 and list(limited.stories) == ["public_test"]


def finished_study(release: Release, folder: Path, **more: object) -> Study:
    """A study of two finished methods, one of them with two seeds."""
    records = [record for record in release.records if record.split == "public_test"]
    draw_outputs(folder / "storygen", records)
    draw_outputs(folder / "storydiffusion", records, seeds=(1, 2))
    named = {name: {"outputs": str(folder / name)} for name in ("storygen", "storydiffusion")}
    given = {"release": str(release.path), "plans": [], "renderers": named, "judges": ["openai:any"]}
    return study(**(given | more))


@pytest.mark.slow
def test_finished_storyboards_when_named_by_a_study_are_methods_without_a_plan_that_nobody_orders(
    release, tmp_path: Path
) -> None:
    planned = finished_study(release, tmp_path / "boards")
    assert planned.methods() == {"storygen": ("", "storygen"), "storydiffusion": ("", "storydiffusion")}
    assert orders_of(planned, release).orders == ()
    desk = Desk(planned, {}, release, tmp_path / "study", ExperimentOptions(workers=0))
    made = {cell.method: (cell.ordered, cell.to_judge, cell.judged) for cell in study_status(desk).cells}
    assert made == {"storygen": (2, 2, 0), "storydiffusion": (4, 4, 0)}
    assert losses.forecast(desk).cells == {"storygen": 2, "storydiffusion": 4}
    both = planned.model_copy(update={"plans": ("direct",)}).renderers | {"a": Renderer(model=MODEL)}
    mixed = study(renderers=both, split=["public_test"])
    assert list(mixed.methods()) == ["direct+a", "storygen", "storydiffusion"]
    assert {order.method for order in orders_of(mixed, release).orders} == {"direct+a"}
    cells = study_status(Desk(mixed, {}, release, tmp_path / "mixed")).cells
    assert [(cell.method, cell.ordered) for cell in cells] == [
        ("direct+a", 6),
        ("storygen", 2),
        ("storydiffusion", 4),
    ]
    named = {"x": {"outputs": str(tmp_path / "boards" / "storygen")}}
    other = finished_study(release, tmp_path / "boards", renderers=named)
    with pytest.raises(ConfigError, match="call the renderer storygen"):
        Desk(other, {}, release, tmp_path / "other").finished_boards()


@pytest.mark.slow
def test_finished_storyboards_when_judged_have_rows_of_their_own(release, tmp_path: Path) -> None:
    records = [record for record in release.records if record.split == "public_test"]
    judge = JudgeModel(records, {"image": 0.6})
    with ModelServer(judge) as server:
        planned = finished_study(release, tmp_path / "boards", judges=[f"{server.openai_url}#one"])
        desk = Desk(
            planned, {}, release, tmp_path / "study", ExperimentOptions(workers=0, created_at=CREATED)
        )
        run_study(desk, ["judgements"])
    results = read_results(desk.folder)
    assert [row.label for row in leaderboard(results).rows] == ["storydiffusion", "storygen"]  # Table 52
    rows = {row.label: row.values for row in pipelines(results).rows}  # Table 41
    assert (rows["storygen"]["plan"], rows["storygen"]["renderer"]) == ("its own", "finished storyboards")
    assert [row.label for row in story_audit(results).rows] == ["storydiffusion", "storygen"]  # Table 57
    assert not list(contrasts({m.name: m for m in results.evaluation.methods}, results.cells, "renderer"))
    cells = {cell.method: (cell.to_judge, cell.judged) for cell in study_status(desk).cells}
    assert cells == {"storygen": (2, 2), "storydiffusion": (4, 4)}


def test_orders_when_the_release_lacks_the_split_or_drafts_lack_a_story_say_so(release, tmp_path):
    with pytest.raises(ConfigError, match="the release has none; it has: validation, public_test"):
        orders_of(study(split=["train"]), release)
    other = judged_release(tmp_path / "other", [dict(bundle) for bundle in sample_bundles(6)[4:]])
    with pytest.raises(ConfigError, match="no record with the text of"):
        orders_of(study(drafts=str(other.path)), release)


def test_desk_when_the_limit_is_spent_by_others_stops_before_anything_is_asked(
    release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ExperimentOptions(max_cost=1.0)
    desk = Desk(study(release=str(release.path)), {}, release, tmp_path / "out", options)
    assert desk.run_options(tmp_path / "out" / "run")["max_cost"] == 1.0
    spent = {desk.folder: 1.25, desk.folder / "run": 0.5}
    monkeypatch.setattr("fabula.studies.experiments.study.spent_below", spent.__getitem__)
    # 0.75 USD are others', so that 0.25 are left beside the 0.5 of the run itself.
    assert desk.run_options(desk.folder / "run")["max_cost"] == 0.25
    spent[desk.folder] = 2.0
    with pytest.raises(BudgetStop, match=r"1\.5000 of 1 USD are spent"):
        desk.run_options(desk.folder / "run")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"judges": ["openai:gpt-4.1"]}, NO_KEY),
        ({"judges": ["nobody:gpt"]}, (ConfigError, "nobody")),
        ({"match_with": ["openai:gpt-4.1"]}, NO_KEY),
        (
            {"question_writer": "openai:gpt-4.1", "evaluators": ["tifa"]},
            NO_KEY,
        ),
    ],
    ids=["key", "nobody", "matcher", "writer"],
)
def test_study_when_somebody_cannot_be_asked_stops_before_a_picture_is_made(
    release, tmp_path: Path, change: dict[str, object], problem: tuple[type[Exception], str]
) -> None:
    served = {"judges": ["http://127.0.0.1:9/v1#judge"]}
    desk = Desk(study(release=str(release.path), **(served | change)), {}, release, tmp_path / "out")
    with pytest.raises(problem[0], match=problem[1]):
        run_study(desk)
    assert not (tmp_path / "out").exists()


# -- From planted losses to verdicts: the judge that reads drawn frames loses what was planted, nothing else

STORIES_PLANTED_EVALUATION = 4
CREATED = "2026-01-01T00:00:00Z"
CHOSEN = ("swapped", "removed", "repeated", "object_erased", "emotion_flattened", "none")


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
    release = judged_release(folder / "release", gold_bundles()[:STORIES_PLANTED_EVALUATION])
    truth = folder / "truth.jsonl"
    plan = plan_named("transition-aware")
    outputs = draw_method(folder / "outputs", release.records, plan, truth=truth)
    planted = plant(outputs, release, folder / "planted", PlantOptions(losses=CHOSEN, truth=truth))
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
    assert len(expected) == (1 + len(CHOSEN)) * len(world.questions())
    assert verdicts == expected
    lost = {key[0].rpartition("-")[2] for key, was_right in verdicts.items() if not was_right}
    assert lost == set(CHOSEN) - {"none"}
    assert all(right(archive, world, "text").values())
    assert all(right(archive, world, "text_image").values())


@pytest.mark.slow
def test_failures_when_losses_are_planted_are_named_by_rule_where_they_lie(world: World) -> None:
    planted = [world.planted.methods[name] for name in CHOSEN]
    world.judged(planted, ["drawn"], "failing")
    judged = judged_folder(world.folder / "failing", world.release.path, Definitions(resamples=0))
    plants = read_plants(world.folder / "planted" / PLANTS)
    alone = [each for each in plants if each.loss in ("swapped", "object_erased", "emotion_flattened")]
    kinds, _ = accuracy(judged, alone)
    assert (kinds.value, kinds.denominator) == (1, 3 * STORIES_PLANTED_EVALUATION)
    kinds, places = accuracy(judged, plants)
    # A picture that is removed or repeated takes several dimensions with it: all of them were hit.
    assert kinds.value == 1 and kinds.denominator == 5 * STORIES_PLANTED_EVALUATION
    assert places.value is not None and places.value > 0.9
    unchanged = next(method for method in judged.methods if method.name.endswith("-none"))
    for failure in failures_of(unchanged, judged.items, judged.replies.seeds):
        assert not failure.types.any() and failure.localised is None and failure.recovered == 1


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
    assert [each.is_control for each in plants].count(True) == STORIES_PLANTED_EVALUATION


# -- A loss that a bridge can mend: Semantic Compass repairs it, and the report sees it


@pytest.mark.slow
def test_study_whose_candidates_lost_a_transition_is_repaired_by_bridges_that_beat_frames_without_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bundles = gold_bundles()[:10]
    for number, bundle in enumerate(bundles):
        bundle["record"]["split"] = "validation" if number < 3 else "public_test"
    release = judged_release(tmp_path / "release", bundles)
    with ModelServer(service_of(release.records)) as server:
        arms = ["base", "first-seed", STILL_FRAME, "bridge-only"]
        compass = {
            "plan": "transition-aware", "renderer": "drawn", "coverage": "drawn-marks", "copies": "pixels",
            "loss": "transition_erased", "selection_set": "rules", "arms": arms,
        }  # fmt: skip
        planned = study(
            release=str(release.path), plans=["transition-aware"], renderers={"drawn": {"model": MODEL}},
            seeds=[42, 123], judges=[f"{server.openai_url}#drawn"], compass=compass, split=["public_test"],
            limit=None,
        )  # fmt: skip
        options = ExperimentOptions(workers=0, created_at=CREATED)
        desk = Desk(planned, {}, release, tmp_path / "study", options)
        run_study(desk, ["pictures", "judgements", "compass"])
    results = read_results(desk.folder)
    assert isinstance(results.compass, CompassResults)
    assert results.compass.frozen.setting.repair_threshold > 0
    made = results.compass.document["arms"]["bridge-only"]
    assert (made["inserted"], made["storyboards"]) == (7, 7)
    better = differences(results, STILL_FRAME)["bridge-only"]
    assert better.n == 7
    assert better.high is not None and better.high < 0, "STG is lower than with a frame that means nothing"
    rows = {row.label: row for row in bridge_controls(results).rows}
    shown = rows["Bridge repair only"].scores["delta_still"]
    assert (shown.value, shown.high) == (better.difference, better.high)


# -- A study whose variants have questions: the protocol with and without contrastives


@pytest.mark.slow
def test_study_whose_variants_have_questions_has_other_rows_without_contrastives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bundles = [with_variant_questions(bundle) for bundle in gold_bundles()[:10]]
    for bundle in bundles:
        bundle["record"]["split"] = "public_test"
    release = judged_release(tmp_path / "release", bundles)
    told = [*release.records, *variant_stories(release, release.records)]
    with ModelServer(service_of(told)) as server:
        planned = study(
            release=str(release.path), plans=["transition-aware"], renderers={"drawn": {"model": MODEL}},
            seeds=[42], judges=[f"{server.openai_url}#drawn-0.3"], split=["public_test"], limit=None,
            evaluators=["katha", "katha-without-contrastives"],
        )  # fmt: skip
        options = ExperimentOptions(workers=0, created_at=CREATED)
        desk = Desk(planned, {}, release, tmp_path / "study", options)
        run_study(desk, ["pictures", "judgements"])
    results = read_results(desk.folder)
    for table, full, without in (
        (ladder, "Full KathaTrace (+ contrastives)", "+ dimension-specific questions"),  # Table 3
        (controls, "Full KathaTrace", "KathaTrace w/o contrastives"),  # Table 54
        (components, "Full KathaTrace", "w/o contrastive variants"),  # Table 58
    ):
        rows = {row.label: row.scores for row in table(results).rows}
        image = [rows[name]["image"].value for name in (full, without)]
        assert None not in image and image[0] < image[1], table
        assert rows[full]["gap"].value > rows[without]["gap"].value
    assert results.scores is not None
    (method,) = results.scores.methods.values()
    assert method.pairs["variant_gap"].value > method.gaps["question"]["filtered"].gap.value
