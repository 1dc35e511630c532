"""From a video to an episode: the whole pipeline, with detections from a file."""

import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.entities.building import EntityOptions, build_entities, estimate_entities
from fabula.engine.execute import execute
from fabula.engine.hooks import PlainReporter
from fabula.errors import BelowThreshold, ConfigError, InputError
from fabula.kinds.verbs import continue_run
from fabula.releases.entities.tree import read_entity_set
from fabula.testing.drawn_episode import write_episode
from fabula.testing.entities_model import answer
from fabula.testing.load_films import film_request
from fabula.testing.model_server import ModelServer

pytest.importorskip("av")

pytestmark = pytest.mark.slow
SHOTS = ["AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1", "BC2", "A3", "D1", "AD2"]
SETS = ("detect_shots.method=histogram", "filter_shots.copies=false")
CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("video")
    write_episode(place, SHOTS)
    yield place / "film.mp4"


def options(film: Path, server: ModelServer | None = None, **more: Any) -> EntityOptions:
    given: dict[str, Any] = {
        "detections": film.with_suffix(".jsonl"), "settings": SETS, "workers": 0, "created_at": CREATED,
    }  # fmt: skip
    if server is not None:
        given |= {"model": "openai:tested", "models": {"openai:tested": {"base_url": server.openai_url}}}
    return EntityOptions(**{**given, **more})


def test_video_when_rules_write_is_an_episode_of_its_people_and_places(film: Path, tmp_path: Path) -> None:
    report = build_entities(film, tmp_path / "run", options(film))
    assert report.totals == {"made": 1, "rejected": 0, "failed": 0, "pending": 0}
    made, found = read_entity_set(tmp_path / "run")
    assert found.errors == () and {one.code for one in found.issues} <= {"repeated-action"}
    (episode,) = made.episodes
    schedule = episode.script.entity_schedule
    letters = {"Person A": "A", "Person B": "B", "Person C": "C", "Person D": "D"}
    seen = ["".join(letters[name] for name in shot.characters) for shot in schedule.values()]
    first = int(str((episode.script.window_shot_ids or ("1",))[0])[-4:]) - 1
    assert seen == [shot[:-1] for shot in SHOTS[first : first + len(seen)]]
    places = [shot.places[0] for shot in schedule.values()]
    assert len(set(places)) == 3
    funnel = json.loads((tmp_path / "run/funnel.json").read_text())
    assert [(step["name"], step["before"], step["after"]) for step in funnel] == [
        ("Reading", 1, 1), ("Quality filtering", 14, 14), ("Content filtering", 1, 1),
        ("Window selection", 14, 12),
    ]  # fmt: skip
    (row,) = [json.loads(line) for line in (tmp_path / "run/identities.jsonl").read_text().splitlines()]
    assert row["members"]["Character 1"] == ["p001"] and row["tier"] == "easy"
    taken = [json.loads(line) for line in (tmp_path / "run/pictures.jsonl").read_text().splitlines()]
    assert all((tmp_path / "run" / picture["file"]).is_file() for picture in taken)
    frames = [picture["shot"] for picture in taken if picture["kind"] == "keyframe"]
    assert frames == sorted(frames) and set(frames) == set(range(1, len(seen) + 1))
    crops = {(picture["label"], picture["shot"]) for picture in taken if picture["kind"] == "crop"}
    assert {label for label, _ in crops} == {label for label in row["members"] if label.startswith("Char")}
    for label, shot in crops:
        name = episode.script.entity_descriptions[label].name
        assert shot is None or letters[str(name)] in seen[shot - 1]


def test_video_when_a_model_writes_is_told_of_before_and_asked_once(film: Path, tmp_path: Path) -> None:
    told = io.StringIO()
    with ModelServer(answer) as server:
        plan = estimate_entities(film, tmp_path / "run", options(film, server))
        assert server.log == () and plan.calls > 10
        assert not (tmp_path / "run/data").exists()
        build_entities(film, tmp_path / "run", options(film, server), reporter=PlainReporter(told))
        calls = len(server.log)
        continue_run(tmp_path / "run", workers=0)
        assert len(server.log) == calls
        pictures = {one.asked.schema_name: len(one.asked.images) for one in server.log}
    lines = told.getvalue().splitlines()
    at = lines.index(f"about {plan.calls} model calls to come, at prices that are not known")
    assert lines[at - 1].startswith("cluster_people: 1 made")
    assert "detect_shots: 1 made (0 run, 1 reused)" in lines
    assert pictures["entities_consolidate_people"] > 0 and pictures["entities_list_entities"] > 0
    made, found = read_entity_set(tmp_path / "run")
    assert found.errors == () and {one.code for one in found.issues} <= {"description-long"}
    (episode,) = made.episodes
    assert {"Mira", "Tomas"} <= {entry.name for entry in episode.script.entity_descriptions.values()}


def test_detections_when_of_other_videos_or_missing_are_refused_before_any_work(film, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(film.with_suffix(".jsonl").read_text().replace('"film"', '"flim"'))
    with pytest.raises(InputError, match="flim"):
        build_entities(film, tmp_path / "run", options(film, detections=other))
    with pytest.raises(ConfigError, match="there is no file"):
        build_entities(film, tmp_path / "run", options(film, detections=tmp_path / "none.jsonl"))
    with pytest.raises(ConfigError, match="no file or folder is given"):
        build_entities([], tmp_path / "run", options(film))
    assert not (tmp_path / "run").exists()


def test_video_when_it_has_one_shot_is_rejected_with_the_reason_and_a_funnel(tmp_path: Path) -> None:
    video, _ = write_episode(tmp_path, ["A1"], "one")
    with pytest.raises(BelowThreshold):
        build_entities(video, tmp_path / "run", options(video))
    (item,) = json.loads((tmp_path / "run/report.json").read_text())["items"]
    assert (item["code"], item["stage"]) == ("too_short", "plan_windows")
    funnel = json.loads((tmp_path / "run/funnel.json").read_text())
    assert (funnel[-1]["before"], funnel[-1]["after"]) == (1, 0)


PROGRAM = """
import sys
from pathlib import Path
from fabula.engine.execute import execute
from fabula.engine.hooks import JsonReporter
from fabula.testing.load_films import film_request
films, out, url = sys.argv[1:]
execute(film_request(Path(films), Path(out), base_url=url, workers=1), JsonReporter())
"""


@pytest.mark.waits
def test_build_when_killed_and_started_again_writes_the_bytes_of_an_undisturbed_run(tmp_path: Path) -> None:
    films = tmp_path / "films.json"
    films.write_text(json.dumps({name: {"shots": SHOTS} for name in ("one", "two")}))
    with ModelServer(answer) as server:
        execute(film_request(films, tmp_path / "whole", base_url=server.openai_url))
    chance = random.Random(7)
    for number in range(2):
        out = tmp_path / f"run{number}"
        with ModelServer(answer) as server:
            command = [sys.executable, "-c", PROGRAM, str(films), str(out), server.openai_url]
            child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
            assert child.stderr is not None
            with child.stderr:
                for _, _ in zip(range(chance.randint(4, 28)), child.stderr, strict=False):
                    pass
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            execute(film_request(films, out, base_url=server.openai_url))
            # At most the calls that were in flight are made twice.
            assert max(one.asked.attempt for one in server.log) <= 2
        for file in (tmp_path / "whole/data").rglob("*.json"):
            assert (
                out / "data" / file.relative_to(tmp_path / "whole/data")
            ).read_bytes() == file.read_bytes()
