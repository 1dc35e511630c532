"""Pictures of the bank: on a checkered ground, side by side, cut into thirds; always the same bytes."""

import io
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MissingRequirement
from ...media.images import open_picture
from .bank import PANORAMA_SIZE, VIEWS, View

if TYPE_CHECKING:
    from PIL.Image import Image

SQUARE = 16
"""Pixels of a square of the checkered ground."""
LIGHT, DARK = (236, 236, 236), (188, 188, 188)
CELL = (320, 400)
"""Width and height of a candidate on the grid, in pixels."""
_GAP, _BAND = 8, 36
_FRAME, _INK = (40, 40, 48), (255, 255, 255)


def png_bytes(image: "Image") -> bytes:
    """Return a picture as the bytes of a PNG with pixels and nothing else."""
    clean = image.copy()
    clean.info = {}
    file = io.BytesIO()
    clean.save(file, "PNG", compress_level=6)
    return file.getvalue()


def opened_rgb(data: bytes, name: str) -> "Image":
    """Return a picture as RGB."""
    return open_picture(data, name=name).image


def opened_rgba(data: bytes, name: str) -> "Image":
    """Return a picture with its opacity, as RGBA."""
    from PIL import Image

    open_picture(data, name=name)  # the limits and the errors are the same
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGBA")


def checkered(size: tuple[int, int]) -> "Image":
    """Return a ground of light and dark squares, on which holes and leftovers show."""
    import numpy as np
    from PIL import Image

    rows, columns = (np.arange(side) // SQUARE for side in (size[1], size[0]))
    dark = (rows[:, None] + columns[None, :]) % 2 == 1
    pixels = np.where(dark[..., None], np.array(DARK, np.uint8), np.array(LIGHT, np.uint8))
    return Image.fromarray(pixels.astype(np.uint8), "RGB")


def on_checkers(cut: "Image") -> "Image":
    """Return a cut-out on a checkered ground."""
    ground = checkered(cut.size)
    ground.paste(cut, mask=cut.getchannel("A"))
    return ground


def grid_of(cuts: "Sequence[tuple[int, Image]]") -> "Image":
    """Return cut-outs side by side on checkered ground, each with its number in a band below.

    ``cuts``: number and RGBA picture of each.
    """
    from PIL import Image, ImageDraw, ImageFont
    from PIL.Image import Resampling

    width = len(cuts) * (CELL[0] + _GAP) + _GAP
    grid = Image.new("RGB", (width, CELL[1] + _BAND + 2 * _GAP), _FRAME)
    draw, font = ImageDraw.Draw(grid), ImageFont.load_default(24)
    for column, (number, cut) in enumerate(cuts):
        left = _GAP + column * (CELL[0] + _GAP)
        scale = min(CELL[0] / cut.width, CELL[1] / cut.height)
        size = (max(1, round(cut.width * scale)), max(1, round(cut.height * scale)))
        cell = checkered(CELL)
        small = cut.resize(size, Resampling.LANCZOS)
        cell.paste(small, ((CELL[0] - size[0]) // 2, (CELL[1] - size[1]) // 2), small.getchannel("A"))
        grid.paste(cell, (left, _GAP))
        draw.text((left + CELL[0] / 2, _GAP + CELL[1] + _BAND / 2), str(number), _INK, font, anchor="mm")
    return grid


def panorama_of(image: "Image") -> "Image":
    """Return a picture as a panorama: another shape is cut to its middle, another size is scaled."""
    from PIL.Image import Resampling

    width, height = PANORAMA_SIZE
    if image.size == PANORAMA_SIZE:
        return image
    wanted = width / height
    if image.width / image.height > wanted:
        side = round(image.height * wanted)
        left = (image.width - side) // 2
        image = image.crop((left, 0, left + side, image.height))
    else:
        side = max(1, round(image.width / wanted))
        top = (image.height - side) // 2
        image = image.crop((0, top, image.width, top + side))
    return image.resize(PANORAMA_SIZE, Resampling.LANCZOS)


def thirds_of(panorama: "Image") -> "dict[View, Image]":
    """Return the thirds of a panorama, by the camera angle that each is the background of."""
    third = panorama.width // 3
    return {
        view: panorama.crop((column * third, 0, (column + 1) * third, panorama.height))
        for column, view in enumerate(VIEWS)
    }


# -- A name drawn below a portrait, in any script: by a font that has its letters, or refused
#
# Pillow does not fall back from one font to another, so that one font has to have every letter of a name.
# Letters that join or change places (Arabic, Devanagari and others) need the libraries Raqm and FriBiDi:
# without them Pillow would draw them apart and in the wrong order, and they are refused instead.

PREFERRED = (
    "NotoSans-Regular.ttf",
    "NotoSansArabic-Regular.ttf",
    "NotoNaskhArabic-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "DejaVuSans.ttf",
)
"""Fonts that are tried first, in this order; then every other one that is installed, by name."""
SHAPED = (
    "ARABIC", "SYRIAC", "THAANA", "NKO", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL",
    "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER", "MONGOLIAN",
    "HEBREW",
)  # fmt: skip
"""Scripts whose letters join, change places or run to the left, by the first word of the letters' names."""
PACKAGES = {
    "ARABIC": "fonts-noto-core", "DEVANAGARI": "fonts-noto-core", "HEBREW": "fonts-noto-core",
    "CJK": "fonts-noto-cjk", "HIRAGANA": "fonts-noto-cjk", "KATAKANA": "fonts-noto-cjk",
    "HANGUL": "fonts-noto-cjk",
}  # fmt: skip
"""Script -> the Debian package with a font that has it; every other one is in fonts-noto-core."""
GROUND, INK = (255, 255, 255), (20, 20, 24)
_ENDINGS = (".ttf", ".otf", ".ttc")
_NOTHING = "\U0010fffd"
_TRIED = 24  # size at which a letter is looked for
_LEAST = 10


def script_of(char: str) -> str:
    """Return the script of a letter, by the first word of its name: ``LATIN``, ``CJK``; empty for others."""
    return (
        unicodedata.name(char, "").partition(" ")[0] if char.isalpha() or unicodedata.combining(char) else ""
    )


def scripts_of(text: str) -> tuple[str, ...]:
    """Return the scripts of a text, in order, each once."""
    return tuple(dict.fromkeys(script for char in text if (script := script_of(char))))


def is_shaped(text: str) -> bool:
    """Whether the letters of a text join, change places or run to the left."""
    return any(script in SHAPED for script in scripts_of(text))


def can_shape() -> bool:
    """Whether Pillow can draw such letters here."""
    from PIL import features

    return bool(features.check("raqm"))


@cache
def font_files() -> tuple[Path, ...]:
    """Return the fonts of this machine, in the order in which they are tried."""
    files = {path.name: path for folder in reversed(list(_folders())) for path in _fonts_in(folder)}
    first = [files[name] for name in PREFERRED if name in files]
    return (*first, *(files[name] for name in sorted(files) if name not in PREFERRED))


def _folders() -> Iterator[Path]:
    home = Path.home()
    yield from (home / ".fonts", home / ".local/share/fonts")
    if sys.platform == "darwin":
        yield from (home / "Library/Fonts", Path("/Library/Fonts"), Path("/System/Library/Fonts"))
    elif os.name == "nt":
        yield Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts"
    else:
        yield from (Path("/usr/local/share/fonts"), Path("/usr/share/fonts"))


def _fonts_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS and path.is_file())


def font_for(text: str) -> str | None:
    """Return the font that a text is drawn with: a file, or an empty text for the one that Pillow carries."""
    if is_shaped(text) and not can_shape():
        raise MissingRequirement(
            f"the name {text}",
            what=f"it has letters of {_listed(text)}, which only Raqm with FriBiDi can join and order",
            fix="install FriBiDi (Debian: apt-get install libfribidi0; macOS: brew install fribidi), or build"
            " with --without-labels",
        )
    for file in ("", *map(str, font_files())):
        if _has_all(file, text):
            return file
    package = next((PACKAGES[script] for script in scripts_of(text) if script in PACKAGES), "fonts-noto-core")
    raise MissingRequirement(
        f"the name {text}", what=f"no font of this machine has all its letters ({_listed(text)})",
        fix=f"install one (Debian: apt-get install {package}), or build with --without-labels",
    )  # fmt: skip


def _listed(text: str) -> str:
    return ", ".join(script.capitalize() for script in scripts_of(text)) or "no script that we know"


def check_labels(names: Iterable[str]) -> None:
    """Check that every name can be drawn here."""
    failed: list[MissingRequirement] = []
    for name in dict.fromkeys(names):
        try:
            font_for(name)
        except MissingRequirement as error:
            failed.append(error)
    if len(failed) > 1:
        first = failed[0]
        raise MissingRequirement(
            first.where, what=f"{first.what}; so it is with {len(failed) - 1} more", fix=first.fix
        )
    if failed:
        raise failed[0]


@cache
def _has_all(file: str, text: str) -> bool:
    """Whether a font has every letter of a text: none is drawn like a code that no font has."""
    try:
        font = _font(file, _TRIED)
        nothing = _drawn(font, _NOTHING)
        return all(
            char.isspace() or unicodedata.category(char) == "Cf" or _drawn(font, char) != nothing
            for char in dict.fromkeys(text)
        )
    except (OSError, ValueError):
        return False


def _drawn(font: Any, char: str) -> tuple[object, bytes]:  # noqa: ANN401 - Pillow's own
    mask = font.getmask(char)
    return mask.size, bytes(mask)


@cache
def _font(file: str, size: int) -> Any:  # noqa: ANN401 - Pillow's own
    from PIL import ImageFont

    return ImageFont.load_default(size) if not file else ImageFont.truetype(file, size)


def labelled(subject: "Image", name: str) -> "Image":
    """Return a picture with a name below it, on a white ground: as wide as the picture, an eighth higher.

    ``subject``: RGB, or RGBA, of which what is transparent becomes ground.
    """
    from PIL import Image, ImageDraw

    file = font_for(name)
    assert file is not None
    band = max(32, subject.height // 8)
    sheet = Image.new("RGB", (subject.width, subject.height + band), GROUND)
    sheet.paste(subject.convert("RGB"), mask=subject.getchannel("A") if subject.mode == "RGBA" else None)
    draw = ImageDraw.Draw(sheet)
    text, font = _fitting(draw, name, file, (subject.width - 16, round(band * 0.6)))
    draw.text((subject.width / 2, subject.height + band / 2), text, fill=INK, font=font, anchor="mm")
    return sheet


def _fitting(draw: Any, name: str, file: str, room: tuple[int, int]) -> tuple[str, Any]:  # noqa: ANN401 - Pillow's own
    size = room[1]
    while size > _LEAST and draw.textlength(name, font=_font(file, size)) > room[0]:
        size -= 1
    text, font = name, _font(file, size)
    while len(text) > 1 and draw.textlength(text, font=font) > room[0]:
        text = f"{text.rstrip('…')[:-1].rstrip()}…" if _has_all(file, "…") else text[:-1]
    return text, font
