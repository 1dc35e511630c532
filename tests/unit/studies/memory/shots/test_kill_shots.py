"""A process that makes videos is killed at several moments: nothing that was made is made again."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fabula.models.generators.drawn.videos import encode_mp4
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes

pytest.importorskip("av")

pytestmark = pytest.mark.slow
CREATED = "2026-01-01T00:00:00Z"
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


@pytest.mark.waits
def test_run_when_it_is_killed_makes_every_video_once_but_those_under_way(
    tmp_path: Path, starter: Any
) -> None:
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
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
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
