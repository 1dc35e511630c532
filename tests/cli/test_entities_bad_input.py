"""Videos and detections of every bad kind, given to the real command: each is named, the others are built."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames, write_sound, write_takes

av = pytest.importorskip("av")
np = pytest.importorskip("numpy")
Fabula = Callable[..., subprocess.CompletedProcess[str]]
SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1")
COLOURS = ("--set", "detect_shots.method=histogram", "--set", "filter_shots.copies=false", "--workers", "0")
NOBODY = (*COLOURS, "--set", "detect_people.people=none", "--set", "run.threshold=0.0")


def plain(level: int) -> Any:
    return np.full((64, 96, 3), level, np.uint8)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of videos of every kind, only two of which can be made into episodes."""
    folder = tmp_path_factory.mktemp("odd") / "my films"
    deep = folder / "tiefer Ordner"
    deep.mkdir(parents=True)
    write_episode(deep, SHOTS, "電影 ünïcode")
    (deep / "電影 ünïcode.jsonl").unlink()
    (deep / "loop").symlink_to(folder, target_is_directory=True)
    (deep / "itself.mp4").symlink_to(deep / "itself.mp4")
    whole = write_frames(deep / "no cut.mp4", draw_takes((Take(60, 3),), (320, 240))).read_bytes()
    (folder / "text.mp4").write_text("not a video, but a text that is long enough to be read")
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "no end.mp4").write_bytes(whole[:-300])
    (folder / "half.mp4").write_bytes(whole[: len(whole) // 2])
    write_sound(folder / "sound.mp4")
    write_frames(folder / "one frame.mp4", [plain(90)])
    write_frames(folder / "black.mp4", [np.zeros((240, 320, 3), np.uint8)] * 40)
    write_frames(folder / "cuts.mp4", [plain(number * 97 % 256) for number in range(30)])
    large = np.full((4320, 7680, 3), 70, np.uint8)
    large[::60] = 200
    write_frames(folder / "8k.mp4", [large, large[::-1]], Encoder("mjpeg", pixels="yuvj420p"))
    write_frames(folder / "fast.mp4", draw_takes((Take(40, 7),), (320, 240)), fps=1000)
    write_frames(folder / "tall.mp4", draw_takes((Take(40, 8),), (240, 426)))
    yield folder


def test_build_when_videos_are_of_every_bad_kind_names_each_and_builds_the_rest(
    fabula_command: Fabula, odd: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run folder"
    build = ("build", "entities", odd, *NOBODY, "--out", run)
    done = fabula_command(*build)
    assert done.returncode == 0, done.stderr
    report = json.loads((run / "report.json").read_text("utf-8"))
    found = {item["id"]: (item["stage"], item["code"]) for item in report["items"]}
    for name, code in (
        ("text", "not_a_video"), ("empty", "empty"), ("no-end", "truncated"), ("sound", "no_video"),
    ):  # fmt: skip
        assert found.pop(name) == ("detect_shots", code)
    assert found.pop("itself") == ("load_videos", "unreadable")
    assert found.pop("half")[1] in ("truncated", "damaged")
    for name in ("one-frame", "black", "8k", "fast"):
        assert found.pop(f"{name}__shot0001") == ("filter_shots", "too_short" if name != "black" else "dark")
    assert {found.pop(f"cuts__shot{number:04d}") for number in range(1, 31)} == {
        ("filter_shots", "too_short")
    }
    # Of one shot no episode can be made.
    assert {key.partition("__")[0]: value for key, value in found.items()} == {
        "no-cut": ("plan_windows", "too_short"), "tall": ("plan_windows", "too_short"),
    }  # fmt: skip
    funnel = json.loads((run / "funnel.json").read_text("utf-8"))
    assert (funnel[0]["before"], funnel[0]["after"]) == (14, 8)
    (script,) = (run / "data/scripts").glob("*.json")
    assert json.loads(script.read_text("utf-8"))["scenes"]
    again = fabula_command(*build, "--json")
    assert sum(stage["ran"] for stage in json.loads(again.stdout)["stages"]) == 0


def test_build_when_no_shot_is_good_enough_says_which_settings_decide(
    fabula_command: Fabula, tmp_path: Path
) -> None:
    write_takes(tmp_path / "small.mp4", (Take(40, 1), Take(40, 2), Take(8, 3)), (160, 90))
    done = fabula_command(
        "build",
        "entities",
        tmp_path / "small.mp4",
        *NOBODY,
        "--set",
        "run.threshold=0.95",
        "--out",
        tmp_path / "run",
    )
    assert done.returncode == 5
    assert "2 low_resolution" in done.stdout
    assert "--set filter_shots.min_side=" in done.stdout
    assert "--set filter_shots.min_seconds=" in done.stdout


def test_build_when_weights_are_missing_says_what_can_stand_in_before_any_work(
    needs_installed: Any, fabula_command: Fabula, tmp_path: Path
) -> None:
    needs_installed("torch", "ultralytics")
    video, _ = write_episode(tmp_path, SHOTS[:2])
    done = fabula_command("build", "entities", video, *COLOURS, "--out", tmp_path / "run")
    assert done.returncode == 3
    for part in ("yolo11n.pt", "for faces-scrfd-10g", "for dinov2-l-14", "--detections FILE", "people=none"):
        assert part in done.stderr
    assert not (tmp_path / "run").exists()


def changed(path: Path, **fields: Any) -> Path:
    """Change fields of the fourth row of a file of detections."""
    lines = path.read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), **fields})
    path.write_text("\n".join(lines) + "\n")
    return path


def built_from(fabula_command: Fabula, folder: Path, fields: dict[str, Any]) -> Any:
    """Build from detections one row of which is changed."""
    video, detections = write_episode(folder, SHOTS[:2])
    changed(detections, **fields)
    return fabula_command(
        "build", "entities", video, "--detections", detections, *COLOURS, "--out", folder / "run"
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"face_embedding": [float("nan")] * 8}, "jsonl:4: face_embedding"),
        ({"body_embedding": [0.0] * 8}, "a vector with a direction"),
        ({"box": [10.0, 10.0, float("inf"), 20.0]}, "jsonl:4: box"),
        ({"frame": -1}, "jsonl:4: frame"),
        ({"video": "nobody"}, "rows of 'nobody'"),
    ],
)
def test_build_when_a_row_of_detections_is_wrong_names_it_before_any_work(
    fabula_command: Fabula, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    done = built_from(fabula_command, tmp_path, fields)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"frame": 5000}, "frames 0 to 59"),
        (
            {"box": [900.0, 10.0, 950.0, 90.0], "face": None, "face_score": None},
            "boxes that touch its 320 x 240",
        ),
    ],
)
def test_build_when_detections_lie_outside_the_video_fails_its_shots_and_says_why(
    fabula_command: Fabula, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    done = built_from(fabula_command, tmp_path, fields)
    assert done.returncode == 5
    items = json.loads((tmp_path / "run/report.json").read_text())["items"]
    assert {(item["stage"], item["code"]) for item in items} == {("detect_people", "bad_detections")}
    assert all(said in item["reason"] for item in items)
