"""Pictures of every kind are opened as 8-bit sRGB, or refused with a name for what is wrong."""

import io
import pickle
import struct
import tracemalloc
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from fabula.errors import ExitCode
from fabula.media.images import DecodedPictures, MediaProblem, PictureLimits, encode, open_picture
from fabula.media.quality import RapidReader
from fabula.media.stretching import stretched
from fabula.testing.drawn import draw_panel, picture_bytes
from fabula.testing.endurance import rounds


def codes(notes: tuple[str, ...]) -> list[str]:
    return [note.partition(":")[0] for note in notes]


def png_chunk(name: bytes, content: bytes, *, wrong_sum: bool = False) -> bytes:
    check = zlib.crc32(name + content) ^ wrong_sum
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def png_header(width: int, height: int) -> bytes:
    """A PNG that promises so many pixels and holds none."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IEND", b"")


@pytest.mark.parametrize("format", ["PNG", "WEBP", "GIF", "JPEG"])
def test_open_picture_when_format_is_common_gives_rgb(format: str) -> None:
    picture = open_picture(picture_bytes(draw_panel(3), format))
    assert (picture.format, picture.image.mode, picture.width, picture.height) == (format, "RGB", 64, 48)
    assert picture.notes == ()
    assert picture.image.info == {}


def test_open_picture_when_16_bit_grey_keeps_the_upper_half() -> None:
    image = Image.new("I;16", (4, 2), 0)
    image.putpixel((1, 0), 0x80FF)
    image.putpixel((2, 0), 0xFFFF)
    picture = open_picture(picture_bytes(image))
    assert codes(picture.notes) == ["16-bit"]
    # 0x80FF >> 8 = 0x80 = 128, 0xFFFF >> 8 = 255
    assert [picture.image.getpixel((x, 0)) for x in range(3)] == [(0,) * 3, (128,) * 3, (255,) * 3]


def test_open_picture_when_16_bit_rgb_gives_8_bits() -> None:
    rows = b"".join(b"\x00" + b"\x80\xff\x00\x00\xff\xff" * 2 for _ in range(2))
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 16, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    assert open_picture(data).image.getpixel((0, 0)) == (128, 0, 255)


def test_open_picture_when_cmyk_gives_rgb() -> None:
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    picture = open_picture(picture_bytes(image, "JPEG", quality=95))
    assert "cmyk" in codes(picture.notes)
    red, green, blue = picture.image.getpixel((4, 4))
    assert red > 240
    assert max(green, blue) < 15


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_open_picture_when_transparent_lies_over_white(mode: str) -> None:
    image = Image.new("RGBA", (6, 6), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 3, 6))
    picture = open_picture(picture_bytes(image.convert(mode) if mode != "P" else image.quantize()))
    assert picture.image.getpixel((5, 5)) == (255, 255, 255)
    assert picture.image.getpixel((0, 0)) == (0, 0, 0)
    assert "transparent" in codes(picture.notes)


def test_open_picture_when_exif_says_rotated_turns_it_upright() -> None:
    image = draw_panel(1, (60, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # the right-hand side is the top: turn clockwise by 90 degrees
    picture = open_picture(picture_bytes(image, "PNG", exif=exif))
    assert (picture.width, picture.height) == (20, 60)
    assert codes(picture.notes) == ["rotated"]
    assert picture.image.tobytes() == image.transpose(Image.Transpose.ROTATE_270).tobytes()


def test_open_picture_when_profile_is_embedded_converts_to_srgb() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    picture = open_picture(picture_bytes(draw_panel(2), "PNG", icc_profile=lab))
    assert codes(picture.notes) == ["icc"]
    differences = [abs(a - b) for a, b in zip(picture.image.tobytes(), draw_panel(2).tobytes(), strict=True)]
    assert max(differences) <= 1


@pytest.mark.parametrize("profile", [b"nonsense", b"\x00" * 200])
def test_open_picture_when_profile_is_damaged_ignores_it_and_says_so(profile: bytes) -> None:
    picture = open_picture(picture_bytes(draw_panel(2), "PNG", icc_profile=profile))
    assert "ignored" in picture.notes[0]
    assert picture.image.tobytes() == draw_panel(2).tobytes()


LARGE = zlib.compress(bytes(1_500_000))
ICC = b"ICC_PROFILE\0"


@pytest.mark.parametrize("behind", [False, True], ids=["before the pixels", "behind the pixels"])
@pytest.mark.parametrize(
    ("part", "left_out"),
    [
        (png_chunk(b"zTXt", b"workflow\0\0" + LARGE), "text"),
        (png_chunk(b"iTXt", b"workflow\0\1\0\0\0" + LARGE), "text"),
        (png_chunk(b"iCCP", b"wide\0\0" + LARGE), "profile"),
        (png_chunk(b"iCCP", b"wide\0\3xyz"), "profile"),
        (png_chunk(b"iCCP", b"wide"), "profile"),
        (png_chunk(b"eXIf", bytes(1_000_001)), "EXIF"),
        (png_chunk(b"tEXt", b"k\0v", wrong_sum=True), "text"),
        (
            b"".join(png_chunk(b"zTXt", b"%d\0\0" % n + zlib.compress(bytes(900_000))) for n in range(80)),
            "text",
        ),
        (png_chunk(b"gAMA", b"\0"), None),
        (png_chunk(b"pHYs", b"", wrong_sum=True), None),
        (png_chunk(b"acTL", b"\0"), None),
        (png_chunk(b"fcTL", struct.pack(">IIIIIHHBB", 7, 500, 500, 0, 0, 1, 10, 0, 0)), None),
    ],
)
def test_open_picture_when_what_is_beside_the_pixels_of_a_png_is_odd_gives_them(part, left_out, behind):
    whole = picture_bytes(draw_panel(3))
    at = len(whole) - 12 if behind else 33  # IEND has 12 bytes; signature and IHDR have 8 + 25
    picture = open_picture(whole[:at] + part + whole[at:])
    assert picture.image.tobytes() == draw_panel(3).tobytes()
    assert picture.notes == (
        () if left_out is None else (f"beside: {left_out} left out, damaged or very large",)
    )


@pytest.mark.parametrize(
    ("part", "left_out"),
    [
        (b"".join(segment(0xE1, b"Exif\0\0" + bytes(65_000)) for _ in range(300)), "EXIF or XMP"),
        (segment(0xE2, ICC), "profile"),
        (segment(0xE0, b"JFIF"), "JFIF"),
        (segment(0xEE, b"Adobe"), "Adobe"),
    ],
)
def test_open_picture_when_what_is_beside_the_pixels_of_a_jpeg_is_odd_gives_them(part, left_out):
    whole = picture_bytes(draw_panel(3), "JPEG")
    picture = open_picture(whole[:2] + part + whole[2:])
    assert picture.image.tobytes() == open_picture(whole).image.tobytes()
    assert picture.notes == (f"beside: {left_out} left out, damaged or very large",)


def test_open_picture_when_text_is_cut_off_depends_on_the_pixels_alone() -> None:
    webp = picture_bytes(draw_panel(3), "WEBP", lossless=True, xmp=bytes(5_000))
    assert open_picture(webp[:-3_000]).image.tobytes() == draw_panel(3).tobytes()
    whole, text = picture_bytes(draw_panel(3)), png_chunk(b"tEXt", b"k\0" + bytes(1_000))
    assert open_picture(whole[:-12] + text[:400]).image.tobytes() == draw_panel(3).tobytes()
    with pytest.raises(MediaProblem) as raised:
        open_picture(whole[:33] + text[:400])
    assert raised.value.code == "truncated"


@pytest.mark.parametrize("format", ["PNG", "GIF", "WEBP"])
def test_open_picture_when_animated_takes_the_first_frame(format: str) -> None:
    frames = [draw_panel(number) for number in (2, 3, 4)]
    extra = {"lossless": True} if format == "WEBP" else {}
    data = picture_bytes(frames[0], format, save_all=True, append_images=frames[1:], duration=50, **extra)
    picture = open_picture(data)
    assert codes(picture.notes) == ["animated"]
    first = picture.image.getpixel((63, 0))
    assert first == (245, 240, 230)
    assert picture.image.tobytes() == open_picture(picture_bytes(frames[0], format, **extra)).image.tobytes()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"<html>error</html>", "not_a_picture"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (picture_bytes(draw_panel(1), "BMP"), "not_a_picture"),
        (picture_bytes(draw_panel(3))[:-60], "truncated"),
        (picture_bytes(draw_panel(3, (400, 300)), "JPEG")[:-900], "truncated"),
        (png_header(60_000, 60_000), "too_many_pixels"),
        (png_header(9_000, 9_000), "too_many_pixels"),
        (png_header(30_000, 10), "too_many_pixels"),
        (png_header(10_000, 10_000), "too_many_pixels"),
    ],
)
def test_open_picture_when_it_cannot_be_used_names_the_problem(data: bytes, code: str) -> None:
    with pytest.raises(MediaProblem) as raised:
        open_picture(data, name="02.png")
    assert raised.value.code == code, raised.value.__cause__
    assert raised.value.where == "02.png"
    assert raised.value.exit_code is ExitCode.FINDINGS
    assert pickle.loads(pickle.dumps(raised.value)).code == code


def test_open_picture_when_pixels_are_many_takes_no_memory_for_them() -> None:
    for number, side in enumerate((9_000, 9_000, 60_000)):
        if number == 1:  # the first loads what Pillow reads PNG with
            tracemalloc.start()
        with pytest.raises(MediaProblem):
            open_picture(png_header(side, side))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_open_picture_when_file_is_missing_or_large_says_so(tmp_path: Path) -> None:
    with pytest.raises(MediaProblem, match="expected a file"):
        open_picture(tmp_path / "01.png")
    path = tmp_path / "02.png"
    path.write_bytes(picture_bytes(draw_panel(1)))
    with pytest.raises(MediaProblem) as raised:
        open_picture(path, PictureLimits(max_bytes=20))
    assert raised.value.code == "too_large"


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
@pytest.mark.endurance
@settings(max_examples=rounds(600), deadline=None)
@given(data=st.data())
def test_open_picture_when_bytes_are_damaged_opens_or_names_the_problem(format, data):
    whole = bytearray(picture_bytes(draw_panel(4), format))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    try:
        picture = open_picture(bytes(whole[:cut]))
    except MediaProblem:
        return
    assert picture.image.mode == "RGB"


@pytest.mark.parametrize("format", ["png", "jpeg"])
def test_encode_when_repeated_gives_the_same_bytes_without_metadata(format: str) -> None:
    exif = Image.Exif()
    exif[0x010E] = "the moral is greed"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    source = picture_bytes(
        draw_panel(3), "JPEG", exif=exif, comment=b"the moral is greed", icc_profile=profile, dpi=(72, 72)
    )
    picture = open_picture(source)
    data = encode(picture, format=format)
    assert data == encode(open_picture(source), format=format)
    again = Image.open(io.BytesIO(data))
    assert b"greed" not in data
    assert not again.getexif()
    assert not {"icc_profile", "comment", "exif"} & set(again.info)
    if format == "png":
        assert again.tobytes() == picture.image.tobytes()


@pytest.mark.parametrize(
    ("size", "max_side", "fitted"),
    [((64, 48), 32, (32, 24)), ((48, 64), 32, (24, 32)), ((64, 48), 64, (64, 48)), ((64, 1), 16, (16, 1))],
)
def test_encode_when_larger_than_wanted_is_made_smaller_in_proportion(size, max_side, fitted):
    data = encode(open_picture(picture_bytes(draw_panel(1, size))), max_side=max_side)
    assert Image.open(io.BytesIO(data)).size == fitted


# Pictures stretched to a fixed size are those of OpenCV.


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [(1280, 720), (576, 320), (512, 320), (320, 256), (1920, 200), (400, 900), (33, 17)]
)
def test_picture_when_stretched_by_area_is_within_a_level_of_opencv(size: tuple[int, int]) -> None:
    cv2 = pytest.importorskip("cv2")
    pixels = np.random.default_rng(7).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    made = np.asarray(stretched(Image.fromarray(pixels), (512, 320), "area")).astype(int)
    truth = cv2.resize(pixels, (512, 320), interpolation=cv2.INTER_AREA)
    assert made.shape == (320, 512, 3)
    assert np.abs(made - truth).max() <= 1


# Text inside pictures is read through one small protocol.


class TinyEngine:
    """Answers like the library and keeps what it was given."""

    def __init__(self, texts: tuple[str, ...] | None, scores: tuple[float, ...] | None) -> None:
        self._answer = SimpleNamespace(txts=texts, scores=scores)
        self.given: list[np.ndarray] = []

    def __call__(self, pixels: np.ndarray) -> SimpleNamespace:
        self.given.append(pixels)
        return self._answer


def test_read_when_engine_is_unsure_leaves_the_line_out() -> None:
    engine = TinyEngine(("THE END", "xj", " "), (0.98, 0.3, 0.9))
    assert RapidReader(engine).read(draw_panel(1)) == ("THE END",)


def test_read_when_engine_is_asked_hands_it_blue_green_red() -> None:
    engine = TinyEngine((), ())
    RapidReader(engine).read(draw_panel(1))
    assert engine.given[0].shape == (48, 64, 3)
    assert tuple(engine.given[0][0, 0]) == (230, 240, 245)


def test_decoded_pictures_when_they_take_too_much_memory_go_by_when_they_were_used() -> None:
    kept = DecodedPictures(4 * 3 * 100)  # four of ten by ten pixels, of three bytes each

    def put(name: str, width: int = 10) -> None:
        kept.put(name, SimpleNamespace(image=Image.new("RGB", (width, 10))))

    for name in ("a", "b", "c", "d", "a"):
        put(name)
    assert kept.held == 1200
    assert kept.get("a") is not None  # and so b was used longest ago
    put("e")
    assert [name for name in "abcde" if kept.get(name) is not None] == ["a", "c", "d", "e"]
    put("wide", 11)
    assert kept.get("wide") is None and kept.held == 1200, "it would have pushed out others"
    put("half", 5)
    assert kept.held == 1050 and kept.get("a") is None
    kept.clear()
    assert kept.held == 0 and kept.get("half") is None
