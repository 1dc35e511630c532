"""From packets to videos and their evaluation: drawn shots, last frames, ablations, faults and kills."""

import io
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL import Image as Pictures

from fabula.models.generators.drawn.images import codes_in, encode_mp4
from fabula.models.generators.drawn.scene import code_of
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.shots.exports import read_packets
from fabula.studies.memory.shots.generating import (
    Ended,
    GeneratedShots,
    GenerateSettings,
    ShotOptions,
    generate_shots,
    last_frame,
    place_videos,
    request_of,
)
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes

pytest.importorskip("av")
CREATED = "2026-01-01T00:00:00Z"
DRAWN = "video:drawn:faithful"
CONDITIONS: dict[str, dict[str, Any]] = {
    "full": {}, "portraits": {"no_keyframes": True}, "last-frame": {"memory": "last-frame"},
    "text": {"memory": "text"},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The written episodes, a drawn bank of them, and packets under each condition."""
    folder = tmp_path_factory.mktemp("world")
    write_episodes(folder / "set")
    write_bank(folder / "set", folder / "memory")
    for name, condition in CONDITIONS.items():
        options = PacketOptions(workers=0, created_at=CREATED, **condition)
        make_packets(folder / "memory", folder / f"packets-{name}", options, folder / "set")
    return folder


def options_for(model: str = DRAWN, **more: Any) -> ShotOptions:
    return ShotOptions(**{"model": model, "seconds": 1.0, "workers": 0, "created_at": CREATED, **more})


def generated(world: Path, tmp_path: Path, condition: str = "full", **more: Any) -> GeneratedShots:
    generate_shots(world / f"packets-{condition}", tmp_path / f"{condition}.run", options_for(**more))
    return place_videos(tmp_path / f"{condition}.run", tmp_path / condition)


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    return {f"{row['episode_id']} {row['shot']}": row for row in json_lines(folder / "generations.jsonl")}


@pytest.mark.slow
def test_videos_when_made_lie_as_evaluations_read_them_and_pass_last_frames_on(world, tmp_path):
    done = generated(world, tmp_path)
    assert (done.outcomes, done.cost) == ({"made": 7}, 0.0)
    names = sorted(path.relative_to(done.outputs).as_posix() for path in done.outputs.rglob("*.mp4"))
    assert names == [
        *(f"ep_a/{name}.mp4" for name in ("001_001", "001_002", "002_001", "002_002", "002_003")),
        "ep_b/001_001.mp4", "ep_b/001_002.mp4",
    ]  # fmt: skip
    made = rows(done.run)
    first, second = made["ep_a 1:1"], made["ep_a 1:2"]
    assert first["first_frame"] is None and made["ep_a 2:1"]["first_frame"] is None
    assert f"{second['first_frame']}.png" == first["last_frame"]
    assert (first["references"], second["references"]) == (2, 3), "the first frame is no reference"
    frames, png = last_frame((done.outputs / "ep_a/001_001.mp4").read_bytes(), "mp4")
    assert frames == first["frames"] == 8
    assert (done.run / "store" / first["last_frame"]).read_bytes() == png
    assert {code_of("Ana"), code_of("The Kitchen"), code_of("the red cup")} <= codes_in(png)
    truth = list(json_lines(done.run / "truth.jsonl"))
    assert len(truth) == 7 and truth[0]["truth"]["drawn_from"] == "scene"
    report = generate_shots(world / "packets-full", done.run, options_for())
    assert {stage.name: stage.ran for stage in report.stages} == {"load_packets": 0, "generate_shots": 0}


def test_request_when_a_shot_goes_on_has_memory_in_order_and_the_frame_apart(world: Path) -> None:
    placed = read_packets(world / "packets-full")[4]  # ep_a 2:3
    frame = io.BytesIO()
    Pictures.new("RGB", (8, 8), (1, 2, 3)).save(frame, "PNG")
    hashes = {image.file: str(image.sha256) for image in placed.packet.images if image.file}
    settings = GenerateSettings(model="video:command:mine", seconds=4.0, video_seed=3)
    request, _ = request_of(placed, hashes, Ended("2:2", frame.getvalue()), settings)
    assert [image.sha256 for image in request.references] == list(hashes.values())
    assert request.first_frame is not None and request.first_frame.data == frame.getvalue()
    assert request.scene is None, "a scene as data is for nobody but the one that draws data"
    assert (request.seconds, request.seed, request.prompt) == (4.0, 3, placed.packet.prompt)
    lost, _ = request_of(placed, hashes, Ended("2:2"), settings)
    assert lost.first_frame is None, "the shot before has no video"
    whole = read_packets(world / "packets-last-frame")[2]  # ep_a 2:1, after a cut
    shown, _ = request_of(whole, {}, Ended("1:2", frame.getvalue()), settings)
    assert [image.data for image in shown.references] == [frame.getvalue()] and shown.first_frame is None


def looks(run: Path) -> Counter[tuple[str, bool]]:
    """Return how many of each kind were drawn, by whether with a look of their own or with one made up."""
    marks = [mark for row in json_lines(run / "truth.jsonl") for mark in row["truth"]["drawn"]]
    return Counter((mark["kind"], "made up for" not in mark["text"]) for mark in marks)


@pytest.mark.slow
def test_entities_when_the_memory_is_taken_away_are_no_longer_themselves(world, tmp_path):
    found = {}
    for name in ("full", "portraits", "text"):  # looks under "last-frame" are below
        found[name] = looks(generated(world, tmp_path, name).run)
        del found[name]["action", True]
    # Scheduled in both episodes: characters 1+2+1+1+2+1+1 = 9, places in all 7 shots, things 1+1+1+1 = 4.
    assert found["full"] == {("character", True): 9, ("place", True): 7, ("object", True): 4}
    # Portraits alone show characters; things and places are words, and so made up in every shot.
    assert found["portraits"] == {("character", True): 9, ("place", False): 7, ("object", False): 4}
    assert found["text"] == {("character", False): 9, ("place", False): 7, ("object", False): 4}


def test_looks_when_only_the_last_frame_is_shown_last_as_long_as_somebody_stays(world, tmp_path):
    done = generated(world, tmp_path, "last-frame", episodes=("ep_a",))
    drawn = [
        {mark["text"] for mark in row["truth"]["drawn"] if mark["kind"] != "action"}
        for row in json_lines(done.run / "truth.jsonl")
    ]
    assert "Ana, made up for ep_a 1:1" in drawn[0] and "Ana, made up for ep_a 1:1" in drawn[1]
    # Ben is first seen in 1:2 and is in the frame that 2:1 is shown; Ana is in no frame before 2:2.
    assert "Ben, made up for ep_a 1:2" in drawn[2] and "Ana, made up for ep_a 2:2" in drawn[3]
    assert {"Ana, made up for ep_a 2:2", "Ben, made up for ep_a 2:3"} <= drawn[4]


PROGRAM = """
import json, pathlib, shutil, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
log = pathlib.Path(given["--log"])
prompt = pathlib.Path(given["--prompt"]).read_text()
folder = pathlib.Path(given.get("--pictures", "nowhere"))
pictures = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
with log.open("a") as file:
    file.write(json.dumps([prompt.splitlines()[-1], pictures, "--first" in given]) + chr(10))
fault = pathlib.Path(given["--fault"])
if fault.exists() and fault.read_text() in prompt:
    sys.exit(int(given["--status"]))
shutil.copyfile(pathlib.Path(__file__).with_name("video.mp4"), given["--out"])
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., ShotOptions]:
    """Options for a program that writes a plain video, notes what it was given, and fails where told to."""
    (tmp_path / "generator.py").write_text(PROGRAM)
    frames = [Image.new("RGB", (64, 64), (level, 0, 0)) for level in (0, 120, 240)]
    (tmp_path / "video.mp4").write_bytes(encode_mp4(frames))

    def options(status: int = 0, **more: Any) -> ShotOptions:
        command = [
            sys.executable, str(tmp_path / "generator.py"), "--prompt", "{prompt_file}", "--out", "{out}",
            "--log", str(tmp_path / "log"), "--fault", str(tmp_path / "fault"), "--status", str(status),
            ["--pictures", "{references}"], ["--first", "{first_frame}"],
        ]  # fmt: skip
        model = {"extra": {"command": command}, "concurrency": 1, "attempts": 1}
        return options_for("video:command:mine", models={"video:command:mine": model}, **more)

    return options


def asked(tmp_path: Path) -> list[tuple[str, list[str], bool]]:
    return [tuple(json.loads(line)) for line in (tmp_path / "log").read_text().splitlines()]


def test_program_when_it_is_the_generator_gets_files_in_order_and_the_first_frame(world, tmp_path, program):
    generate_shots(world / "packets-full", tmp_path / "run", program(episodes=("ep_a",)))
    assert asked(tmp_path)[:3] == [
        ("Ana fills the red cup at the sink of The Kitchen.", ["001.png", "002.png"], False),
        ("Ben runs into The Kitchen and waves at Ana.", ["001.png", "002.png", "003.png"], True),
        ("Ben leans the old ladder against the tree in The Garden.", ["001.png", "002.png"], False),
    ]
    assert rows(tmp_path / "run")["ep_a 1:1"]["unsupported"] == ["seconds"]


def test_shot_when_the_generator_refuses_it_is_an_outcome_and_the_next_begins_without_its_frame(
    world: Path, tmp_path: Path, program: Callable[..., ShotOptions]
) -> None:
    (tmp_path / "fault").write_text("Ana walks across")
    generate_shots(world / "packets-full", tmp_path / "run", program(10, episodes=("ep_a",)))
    made = rows(tmp_path / "run")
    assert made["ep_a 2:2"]["outcome"] == "refused" and made["ep_a 2:3"]["outcome"] == "made"
    assert made["ep_a 2:3"]["first_frame"] is None
    done = place_videos(tmp_path / "run", tmp_path / "mine")
    assert done.as_json() | {"cost": None} == {
        "run": str(done.run), "outputs": str(tmp_path / "mine"), "outcomes": {"made": 4, "refused": 1},
        "shots": 5, "cost": None,
    }  # fmt: skip
    assert not (tmp_path / "mine/ep_a/002_002.mp4").exists()


def test_run_when_it_ends_in_the_middle_of_an_episode_goes_on_at_that_shot(world, tmp_path, program):
    (tmp_path / "fault").write_text("Ana walks across")
    chosen = {"episodes": ("ep_a",)}
    report = generate_shots(world / "packets-full", tmp_path / "run", program(75, **chosen))
    assert [(item.id, item.code) for item in report.items] == [("ep_a", "unavailable")]
    assert len(asked(tmp_path)) == 4 and rows(tmp_path / "run") == {}, "three shots before it were made"
    (tmp_path / "fault").unlink()
    (tmp_path / "log").unlink()
    generate_shots(world / "packets-full", tmp_path / "run", program(75, **chosen))
    assert [prompt for prompt, _, _ in asked(tmp_path)] == [
        "Ana walks across The Garden, shading her eyes.", "Ana gives Ben the red cup in The Garden.",
    ]  # fmt: skip
    assert {row["outcome"] for row in rows(tmp_path / "run").values()} == {"made"}


# -- A process that makes videos is killed at several moments: nothing that was made is made again

pytest.importorskip("av")

GENERATOR = """
import pathlib, shutil, sys
prompt, out, log = sys.argv[1:]
shutil.copyfile(pathlib.Path(__file__).with_name("video.mp4"), out)
with open(log, "a") as file:
    file.write(pathlib.Path(prompt).read_text().splitlines()[-1] + chr(10))
"""
RUN = """
import sys
from pathlib import Path
from fabula.studies.memory.shots.generating import ShotOptions, generate_shots, place_videos
packets, out, generator, log = map(Path, sys.argv[1:])
command = [sys.executable, str(generator), "{prompt_file}", "{out}", str(log)]
model = {"extra": {"command": command}, "concurrency": 1}
options = ShotOptions(model="video:command:mine", models={"video:command:mine": model}, workers=0,
                      created_at="2026-01-01T00:00:00Z")
generate_shots(packets, out / "run", options)
place_videos(out / "run", out / "mine")
"""


@pytest.mark.slow
@pytest.mark.waits
def test_run_when_it_is_killed_makes_every_video_once_but_those_under_way(tmp_path, starter):
    write_episodes(tmp_path / "set")
    write_bank(tmp_path / "set", tmp_path / "memory")
    options = PacketOptions(workers=0, created_at=CREATED)
    make_packets(tmp_path / "memory", tmp_path / "packets", options, tmp_path / "set")
    (tmp_path / "generator.py").write_text(GENERATOR)
    frames = [Image.new("RGB", (64, 64), (level, 0, 0)) for level in (0, 120, 240)]
    (tmp_path / "video.mp4").write_bytes(encode_mp4(frames))
    log = tmp_path / "log"
    given = (tmp_path / "packets", tmp_path, tmp_path / "generator.py", log)
    kills = 0
    for wanted in (1, 3, 5):
        child = starter.start(given, code=RUN, start_new_session=True)
        while child.poll() is None and (not log.exists() or log.read_text().count("\n") < wanted):
            time.sleep(0.02)
        with suppress(ProcessLookupError):  # it may have ended
            os.killpg(child.pid, signal.SIGKILL)
        kills += child.wait() != 0
    done = starter.run_code(RUN, *given)
    assert done.returncode == 0, done.stderr
    made = log.read_text().splitlines()
    assert kills and len(set(made)) == 7
    assert len(made) <= 7 + 2 * kills, (
        "a kill loses what was under way: one call of each of two episodes at most"
    )
    rows = list(json_lines(tmp_path / "run/generations.jsonl"))
    assert [row["outcome"] for row in rows] == ["made"] * 7
    assert len(list((tmp_path / "mine").rglob("*.mp4"))) == 7
    again = starter.run_code(RUN, *given)
    assert again.returncode == 0 and log.read_text().splitlines() == made
    assert json.loads((tmp_path / "run/report.json").read_text())["totals"]["made"] == 2
