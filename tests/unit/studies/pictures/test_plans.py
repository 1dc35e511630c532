"""Orders carried out: what goes wrong is data of the method, and nothing is asked for twice."""

import io
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fabula.errors import BudgetStop, ConfigError, TargetError
from fabula.evaluation.outputs.shots import check_shots
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.kinds.verbs import continue_run
from fabula.media.images import Picture as PictureOfCopy
from fabula.media.images import encode, open_picture
from fabula.releases.loading import Release
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.schemas.katha import StoryRecord
from fabula.studies import pictures
from fabula.studies.copy_paste import HEIGHT, UNFINISHED, WIDTH, stitch, write_copy_paste
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.drawn_storyboards import drawn_release, judged_release
from fabula.testing.endurance import rounds
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import Answer, Asked, ModelServer, Picture

CREATED = "2026-01-01T00:00:00Z"
GOOD = picture_bytes(draw_panel(1))


def order(model: str, story: str = "kb25k_0001", seed: int | None = 42, **more: object) -> pictures.Order:
    panels = tuple(
        pictures.PanelOrder(number=number, prompt=f"picture {number} of {story}") for number in range(1, 6)
    )
    given = {"method": "m", "story_id": story, "seed": seed, "model": model, "panels": panels}
    return pictures.Order.model_validate({**given, **more})


def painter(bad: dict[str, object]) -> Callable[[Asked], object]:
    def paint(asked: Asked) -> object:
        return next((answer for text, answer in bad.items() if text in asked.prompt), Picture(GOOD))

    return paint


def test_orders_when_a_service_spoils_pictures_keep_each_as_an_outcome_with_its_reason(tmp_path):
    bad = {
        "picture 2": Answer(refusal="I cannot draw this."),
        "picture 3": Answer(blocked="prompt"),
        "picture 4": Picture(b"this is no picture", "image/png"),
    }
    release = drawn_release(tmp_path / "release")
    stories = [record.story_id for record in release.records[:2]]
    with ModelServer(painter({f"{text} of {stories[0]}": answer for text, answer in bad.items()})) as server:
        model = f"image:{server.openai_url}#painter"
        pictures.write_orders(tmp_path / pictures.ORDERS, [order(model, story) for story in stories])
        options = pictures.GenerateOptions(created_at=CREATED, workers=0)
        report = pictures.generate(tmp_path / pictures.ORDERS, tmp_path / "run", options)
        assert (report.totals["made"], len(server.log)) == (2, 10)
        pictures.generate(tmp_path / pictures.ORDERS, tmp_path / "run", options)
        assert len(server.log) == 10, "an outcome is kept, and not asked for again"
        continue_run(tmp_path / "run", retry_failed=True, workers=0)
        again = [exchange.asked.prompt for exchange in server.log][10:]
    assert sorted(again) == sorted(f"{text} of {stories[0]}" for text in bad), (
        "a retry asks for what was spoiled"
    )
    rows = {(row["story_id"], row["panel"]): row for row in pictures.generations_of(tmp_path / "run")["m"]}
    outcomes = [rows[stories[0], number]["outcome"] for number in range(1, 6)]
    # This format of requests has no field for a refusal: the service calls both a filter's work.
    assert outcomes == ["made", "blocked", "blocked", "corrupt", "made"]
    assert all(rows[stories[0], number]["reason"] for number in (2, 3, 4))
    assert all(rows[stories[1], number]["outcome"] == "made" for number in range(1, 6))
    made = rows[stories[1], 1]
    assert (made["asked_seed"], made["effective_seed"], made["unsupported"]) == (42, None, ["seed"])

    placed = pictures.place_outputs(tmp_path / "run", tmp_path / "outputs")
    checked = check_outputs(placed["m"], release.records[:2], known=release.records)
    assert [(board.unit, board.codes) for board in checked.invalid] == [(stories[0], ("missing",))]
    assert checked.accounting()["invalid_rate"] == 0.5


def test_orders_when_the_service_is_away_are_carried_out_by_the_same_command_later(tmp_path: Path) -> None:
    with ModelServer(painter({})) as server:
        url = server.openai_url
        model = f"image:{url}#painter"
        pictures.write_orders(tmp_path / pictures.ORDERS, [order(model)])
        models = {model: {"attempts": 1, "patience": 0.0}}
        options = pictures.GenerateOptions(created_at=CREATED, workers=0, models=models)
        server.faults = None
        report = pictures.generate(tmp_path / pictures.ORDERS, tmp_path / "run", options)
    assert report.totals["made"] == 1
    assert {row["outcome"] for row in pictures.generations_of(tmp_path / "run")["m"]} == {"made"}


def test_orders_when_pictures_have_a_price_stop_at_the_limit_and_go_on_above_it(tmp_path: Path) -> None:
    with ModelServer(painter({})) as server:
        model = f"image:{server.openai_url}#painter"
        pictures.write_orders(tmp_path / pictures.ORDERS, [order(model)])
        models = {model: {"prices": {"picture": 0.04}, "concurrency": 1}}
        plan = pictures.estimate_generation(
            tmp_path / pictures.ORDERS, tmp_path / "run", pictures.GenerateOptions(models=models, workers=0)
        )
        assert (plan.calls, plan.cost) == (5, pytest.approx(0.2))
        low = pictures.GenerateOptions(created_at=CREATED, workers=0, models=models, max_cost=0.1)
        with pytest.raises(BudgetStop):
            pictures.generate(tmp_path / pictures.ORDERS, tmp_path / "run", low)
        assert len(server.log) == 2, "a third picture of 0.04 USD would make 0.12"
        enough = pictures.GenerateOptions(created_at=CREATED, workers=0, models=models, max_cost=1.0)
        assert pictures.generate(tmp_path / pictures.ORDERS, tmp_path / "run", enough).totals["made"] == 1
        assert len(server.log) == 5


# What each plan shows a generator, and that no question ever stands in a prompt.


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoryRecord, ...]:
    release: Release = judged_release(tmp_path_factory.mktemp("release"), sample_bundles(6))
    return release.records


@pytest.mark.parametrize("plan", pictures.PLANS, ids=lambda plan: plan.name)
def test_plan_when_made_of_any_sample_story_has_a_picture_for_each_scene_and_no_question(plan, records):
    for record in records:
        panels = plan.panels(record)
        assert [panel.scene for panel in panels] == [scene.scene_index for scene in record.scenes]
        pictures.check_panels(record, plan, panels)


def test_plans_when_they_show_more_have_the_marks_of_those_that_show_less(records):
    for record in records:
        for scene in record.scenes:
            shown = {plan.name: set(plan.panel(record, scene).drawn.marks) for plan in pictures.PLANS}
            assert shown["direct"] <= shown["rule"] <= shown["scene"] <= shown["transition-aware"]
            assert shown["caption"] <= shown["scene"]
            assert {mark.kind for mark in shown["direct"]} <= {"character"}
            assert not {mark.kind for mark in shown["scene"]} & {"cause", "consequence", "moral", "intention"}


def test_direct_plan_when_made_shows_the_whole_story_and_nothing_of_the_annotation(records):
    record = records[0]
    prompt = pictures.plan_named("direct").panel(record, record.scenes[1]).prompt
    assert record.story_text in prompt
    assert record.scenes[1].action not in prompt
    assert record.transitions[0].causality not in prompt


def test_transition_aware_plan_when_made_tells_both_sides_of_a_scene(records):
    record = records[0]
    prompt = pictures.plan_named("transition-aware").panel(record, record.scenes[1]).prompt
    before, after = prompt.split("It leads to the next scene")
    assert record.transitions[0].causality in before
    assert record.transitions[1].causality in after
    first = pictures.plan_named("transition-aware").panel(record, record.scenes[0]).prompt
    assert "comes from the scene before" not in first


def test_leaks_when_a_plan_gives_away_a_question_or_an_answer_are_found(records):
    record, plan = records[0], pictures.plan_named("caption")
    panel = plan.panels(record)[0]
    question = next(each for each in record.questions if each.question_type == "causal")
    asked = replace(panel, prompt=f"{panel.prompt} {question.question}")
    assert any(
        leak.endswith("question") or ".question:" in leak for leak in pictures.leaks_of(record, plan, asked)
    )
    answered = replace(panel, prompt=f"{panel.prompt} ({question.accepted_answers[0]})")
    assert any("accepted_answers" in leak for leak in pictures.leaks_of(record, plan, answered))
    with pytest.raises(ConfigError, match="gives away what judges are asked"):
        pictures.check_panels(record, plan, (answered,))
    # What the plan may show anyhow is no leak, though an answer says the same.
    allowed = replace(answered, texts=(*panel.texts, question.accepted_answers[0]))
    assert not list(pictures.leaks_of(record, plan, allowed))


def test_oracle_when_nobody_accepted_the_records_can_be_made_of_none(records):
    oracle = pictures.plan_named("oracle")
    assert not any(oracle.usable(record) for record in records)
    status = records[0].evidence_status.model_copy(update={"human_evidence_accepted": True})
    assert oracle.usable(records[0].model_copy(update={"evidence_status": status}))
    with pytest.raises(ConfigError, match="there is no such plan; there are: direct, rule"):
        pictures.plan_named("orakel")


# -- The copy-paste baseline


@pytest.fixture
def shot_set(tmp_path: Path) -> ShotSet:
    return read_shot_set(draw_shot_set(tmp_path / "set"))[0]


def size(path: Path) -> tuple[int, int]:
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        return image.size


def test_copy_paste_stitches_the_first_references_of_who_is_on_stage(shot_set, tmp_path):
    out = tmp_path / "out"
    assert write_copy_paste(shot_set, out) == 10
    # references are square; shots 1, 2, 3 have so many characters, shot 4 has none
    assert [size(out / "01" / f"shot_{number:02d}.png") for number in (1, 2, 3, 4)] == [
        (HEIGHT, HEIGHT), (2 * HEIGHT, HEIGHT), (3 * HEIGHT, HEIGHT), (WIDTH, HEIGHT),
    ]  # fmt: skip
    found = check_shots(out, shot_set)
    assert set(found.counts) <= {"odd-picture"}  # a shot without anybody is one colour
    assert found.accounting()["missing_rate"] == 0.0


def test_pictures_when_stitched_stand_side_by_side_without_a_gap() -> None:
    reds, blues = ((40, 40), "red"), ((20, 40), "blue")
    drawn = [open_picture(encode(PictureOfCopy(Image.new("RGB", *each), "PNG"))) for each in (reds, blues)]
    whole = open_picture(stitch(drawn)).image
    # scaled to HEIGHT: HEIGHT columns of red from the first on, half as many of blue, all rows alike
    assert whole.size == (HEIGHT + HEIGHT // 2, HEIGHT)
    columns = [(255, 0, 0)] * HEIGHT + [(0, 0, 255)] * (HEIGHT // 2)
    assert np.array_equal(np.asarray(whole), np.broadcast_to(columns, (HEIGHT, len(columns), 3)))


def test_copy_paste_when_done_again_is_byte_identical_and_refuses_to_overwrite(shot_set, tmp_path):
    for name in ("a", "b"):
        write_copy_paste(shot_set, tmp_path / name)
    for path in sorted((tmp_path / "a").rglob("*.png")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    with pytest.raises(TargetError):
        write_copy_paste(shot_set, tmp_path / "a")


KILLED = """
import os, signal, sys
from pathlib import Path
from fabula.studies.copy_paste import write_copy_paste
from fabula.releases.shots.tree import read_shot_set

left, before = int(sys.argv[1]), sys.argv[2] == "before"
real = Path.replace

def replace(self, target):
    global left
    left -= 1
    if left == 0 and before:
        os.kill(os.getpid(), signal.SIGKILL)
    done = real(self, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Path.replace = replace
write_copy_paste(read_shot_set(Path(sys.argv[3]))[0], Path(sys.argv[4]))
"""


@pytest.mark.slow
@pytest.mark.endurance
def test_copy_paste_when_killed_at_any_file_goes_on_and_keeps_what_is_there(shot_set, tmp_path, starter):
    write_copy_paste(shot_set, tmp_path / "whole")
    wanted = {
        path.relative_to(tmp_path / "whole"): path.read_bytes()
        for path in (tmp_path / "whole").rglob("*.png")
    }
    files = len(wanted) + 1  # the pictures, and the note that they are not finished
    kills = [(number, when) for number in range(1, files + 1) for when in ("before", "after")]
    count = rounds(len(kills))
    for number, when in kills[:: len(kills) // count][:count]:
        out = tmp_path / f"{number}-{when}"
        done = starter.run_code(KILLED, number, when, tmp_path / "set", out)
        assert done.returncode == -signal.SIGKILL, done.stderr
        there = {path: path.stat().st_mtime_ns for path in out.rglob("shot_*.png")}
        assert len(there) == max(0, number - 1 - (when == "before"))
        assert write_copy_paste(shot_set, out) == len(wanted)
        found = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        assert found == wanted, "nothing else is left: no part, no note"
        assert {path: path.stat().st_mtime_ns for path in there} == there, (
            "what was there was not drawn again"
        )


def test_copy_paste_when_it_was_begun_for_another_set_is_refused_and_left_alone(shot_set, tmp_path):
    out = tmp_path / "out"
    write_copy_paste(shot_set, out)
    other = read_shot_set(draw_shot_set(tmp_path / "other", stories=3))[0]
    (out / UNFINISHED).write_text("{}")
    before = sorted(path.name for path in out.iterdir())
    with pytest.raises(TargetError, match="began this folder for another set"):
        write_copy_paste(other, out)
    assert sorted(path.name for path in out.iterdir()) == before
