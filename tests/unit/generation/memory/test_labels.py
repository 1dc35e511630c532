"""Labels: names below portraits, by a font that has their letters, or refused."""

import numpy as np
import pytest
from PIL import Image, features

from fabula.errors import MissingRequirement
from fabula.generation.memory import labels
from fabula.generation.memory.labels import (
    can_shape,
    check_labels,
    font_files,
    font_for,
    is_shaped,
    labelled,
    scripts_of,
)

FACE = Image.new("RGBA", (200, 240), (200, 30, 30, 255))
NAMES = {"LATIN": "Ana Novák", "CJK": "李小龙", "ARABIC": "الأميرة شهرزاد", "DEVANAGARI": "शिक्षक"}


def ink(sheet: Image.Image) -> np.ndarray:  # type: ignore[type-arg]
    """Where the band below the picture is written on."""
    return np.asarray(sheet.convert("L"))[240:] < 128


def needs(name: str) -> str:
    if is_shaped(name) and not can_shape():
        pytest.skip("Raqm with FriBiDi is not installed here: apt-get install libfribidi0")
    try:
        file = font_for(name)
    except MissingRequirement:
        pytest.skip(f"no font here has the letters of {name}: apt-get install fonts-noto-core fonts-noto-cjk")
    assert file is not None
    return file


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_label_when_a_font_has_the_letters_is_drawn_below_and_fits(name: str) -> None:
    needs(name)
    sheet = labelled(FACE, name)
    assert sheet.size == (200, 272)  # an eighth of 240 is 30, and at least 32 pixels are written on
    assert np.array_equal(np.asarray(sheet)[:240], np.asarray(FACE)[..., :3])
    written = ink(sheet)
    columns = np.flatnonzero(written.any(axis=0))
    assert len(columns) and columns[0] >= 4 and columns[-1] < 196
    assert np.array_equal(np.asarray(labelled(FACE, name)), np.asarray(sheet))


def test_label_when_arabic_is_joined_differs_from_its_letters_apart() -> None:
    needs(NAMES["ARABIC"])
    joined, apart = ink(labelled(FACE, "بيت")), ink(labelled(FACE, "ب‌ي‌ت"))
    # Zero-width non-joiners keep letters apart: without joining both would look the same.
    assert not np.array_equal(joined, apart)


def test_label_when_right_to_left_begins_at_the_right() -> None:
    needs("אא..")
    columns = ink(labelled(FACE, "א......")).any(axis=0)
    rows_left, rows_right = (ink(labelled(FACE, "א......"))[:, part].any(axis=1).sum()
                             for part in (slice(0, 100), slice(100, 200)))  # fmt: skip
    assert columns.any() and rows_right > rows_left, "the letter is high, the full stops are low"


@pytest.mark.parametrize("name", [NAMES["ARABIC"], NAMES["DEVANAGARI"], "משה"])
def test_label_when_letters_cannot_be_joined_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "check", lambda _: False)
    with pytest.raises(MissingRequirement, match="libfribidi0"):
        labelled(FACE, name)


def test_label_when_no_font_has_the_letters_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "font_files", tuple)
    monkeypatch.setattr(labels, "can_shape", lambda: True)
    for name, package in (("李小龙", "fonts-noto-cjk"), ("शिक्षक", "fonts-noto-core")):
        with pytest.raises(MissingRequirement, match=package):
            font_for(name)
    with pytest.raises(MissingRequirement, match="so it is with 1 more"):
        check_labels(["Ana", "李小龙", "शिक्षक", "李小龙"])
    assert font_for("Ana") == "", "the font that Pillow carries has plain Latin"


def test_label_when_the_name_is_far_too_long_is_small_and_cut() -> None:
    sheet = labelled(FACE, "Somebody whose titles fill more than the whole of a page " * 3)
    columns = np.flatnonzero(ink(sheet).any(axis=0))
    assert columns[0] >= 4 and columns[-1] < 196


def test_label_when_the_cut_out_is_transparent_has_a_white_ground() -> None:
    sheet = labelled(Image.new("RGBA", (64, 64)), "Ana")
    assert sheet.mode == "RGB" and np.asarray(sheet)[:64].min() == 255


def test_scripts_when_a_name_mixes_them_are_listed_once() -> None:
    assert scripts_of("李小龙 (Bruce Lee) 李") == ("CJK", "LATIN")
    assert is_shaped("Ana شهرزاد") and not is_shaped("Ana 李")


def test_fonts_when_listed_have_the_preferred_ones_first() -> None:
    files = [path.name for path in font_files()]
    known = [name for name in labels.PREFERRED if name in files]
    assert files[: len(known)] == known and len(files) == len(set(files))
