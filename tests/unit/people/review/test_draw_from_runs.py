"""Items drawn from evaluations that were run: what was looked at is what people see, and nothing else."""

import json
from pathlib import Path

import pytest
from PIL import Image

from fabula.engine.execute import execute
from fabula.errors import InputError
from fabula.evaluation.events.requests import EventOptions, events_request
from fabula.kinds.studies import draw_items
from fabula.people.review.sources.source import DrawOptions
from fabula.people.review.task import load_task
from fabula.testing.drawn_evaluations import draw_evaluation
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel
from fabula.testing.study_sources import drawn_videos

CREATED = "2026-01-01T00:00:00Z"


@pytest.mark.slow
def test_shots_when_drawn_from_an_evaluation_are_its_pictures_and_no_others(tmp_path: Path) -> None:
    run = draw_evaluation(tmp_path, 2, 3)
    shots = load_task("shots")
    drawing = draw_items(shots, run, DrawOptions(stories=("02",)))
    assert [(item.about, item.methods, len(item.sides[0])) for item in drawing.items] == [
        ("02", ("copy-paste",), 3), ("02", ("model-a",), 2)  # shot 3 of story 02 is missing
    ]  # fmt: skip
    assert drawing.source["release_sha256"] == json.loads((run / "evaluation.json").read_text())["protocol"][
        "release"]["sha256"]  # fmt: skip
    Image.new("RGB", (64, 64)).save(tmp_path / "model-a/01/shots/shot_01.png")
    with pytest.raises(InputError, match="not the picture that was evaluated") as caught:
        draw_items(shots, run)
    assert len(caught.value.problems) == 1
    assert len(draw_items(shots, run, DrawOptions(methods=("copy-paste",))).items) == 2
    (run / "run.json").unlink()  # only a copy of the archive is there
    with pytest.raises(InputError, match="give the run folder of the evaluation"):
        draw_items(shots, run)


def test_videos_when_drawn_from_an_evaluation_are_judged_ones_as_they_were(tmp_path: Path) -> None:
    suite, folders = drawn_videos(tmp_path / "videos")
    (folders[1] / "cup.mp4").write_bytes(b"no video")
    with ModelServer(EventModel({})) as server:
        judge = f"{server.openai_url}#one"
        options = EventOptions(judges=[judge], models={judge: {"attempts": 2}}, workers=0, created_at=CREATED)
        execute(events_request(suite, folders, tmp_path / "run", options))
    events = load_task("events")
    drawing = draw_items(events, tmp_path / "run")
    assert {(item.about, item.methods[0]) for item in drawing.items} == {
        ("cup.mp4", "model-a"), ("dog.mp4", "model-a"), ("dog.mp4", "model-b")
    }  # fmt: skip
    assert drawing.short == ("1 of 2 prompts have judged videos of fewer methods",)
    (folders[0] / "dog.mp4").write_bytes((folders[1] / "dog.mp4").read_bytes())
    with pytest.raises(InputError, match="these are not the videos that were judged"):
        draw_items(events, tmp_path / "run")
    with pytest.raises(InputError, match="these are not the videos"):
        draw_items(events, tmp_path / "run", DrawOptions(outputs=(folders[0],)))
