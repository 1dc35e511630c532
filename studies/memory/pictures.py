"""Pictures of the bank: on a checkered ground, side by side, cut into thirds; always the same bytes."""

import io
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...errors import MissingRequirement
from ...media.images import open_picture
from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import PANORAMA_SIZE, VIEWS, BankCheck, View
from .scripts import colours_worn, is_many

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
    return open_picture(data, name=name).image


def opened_rgba(data: bytes, name: str) -> "Image":
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


# -- Cutting a subject out of a ground of one colour, by the distance of colours (chroma keying)
#
# Colours are compared without their brightness, so that shadows on the ground are ground: in the plane of the
# two colour differences of ITU-R BT.601, in which a distance of 1 is one level of 255. What is ground and
# hangs together with the edge of the picture is left out; ground that the subject encloses is left out,
# too, and is counted as holes, because clothes of the ground's colour look just like that.
#
# Grounds of one colour behind a portrait, and the order in which they are tried (EntityBench, C.2, E.3).

Pixels: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

NEAR, FAR = 24.0, 56.0
"""Distances up to which a pixel is ground, and from which on it has nothing of the ground's colour."""
BAND = 2
"""Pixels from the ground within which a pixel between the two distances is partly ground: an edge. Further
inside it is subject, and tinted."""
RIM = 0.02
"""Share of the shorter side that counts as the edge, where the ground is looked for; 2 pixels at least."""
SAME = 60.0
"""Distance up to which the ground at the edge counts as of the colour that was asked for."""


@dataclass(frozen=True)
class CutOut:
    """A subject cut out of a picture."""

    # RGBA, as large as the picture; colours of half transparent pixels are freed of the ground's
    image: "Image" = field(repr=False)
    mask: Mask = field(repr=False)  # shape (height, width): what is subject, at an opacity of a half and more
    enclosed: Mask = field(repr=False)  # the same shape: ground that the subject encloses
    tinted: Mask = field(repr=False)  # the same shape: subject whose colour is near the ground's
    # share of the picture's edge that is of the colour that was asked for, 0 to 1; None where no such colour
    # was asked for
    ground: float | None
    by: str = "colour"  # who cut: ``colour`` or the identity of a model


def cut_by_colour(image: "Image", key: tuple[int, int, int]) -> CutOut:
    """Return the subject of a picture with a ground of one colour.

    ``image``: RGB.
    """
    pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    ground, share = ground_of(pixels, key)
    away = _distance(_differences(pixels), _differences(ground))
    edge = _grown(away < NEAR, BAND)
    soft = np.clip((away - NEAR) / (FAR - NEAR), 0.0, 1.0)
    alpha = np.where(edge, soft, np.float32(1))
    mask = alpha >= 0.5
    tinted = mask & ~edge & (away < FAR) & _strong(pixels)
    return CutOut(_freed(pixels, alpha, ground), mask, _enclosed(mask), tinted, share)


def cut_by_mask(image: "Image", mask: Mask, by: str, key: tuple[int, int, int] | None = None) -> CutOut:
    """Return the subject that a mask of shape (height, width) says, cut by its identity ``by``."""
    from PIL import Image as Pillow

    pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    cut = np.dstack([pixels.astype(np.uint8), mask.astype(np.uint8) * 255])
    tinted, share = np.zeros_like(mask), None
    if key is not None:
        ground, share = ground_of(pixels, key)
        tinted = mask & (_distance(_differences(pixels), _differences(ground)) < FAR) & _strong(pixels)
    return CutOut(Pillow.fromarray(cut, "RGBA"), mask, _enclosed(mask), tinted, share, by)


def ground_of(pixels: Pixels, key: tuple[int, int, int]) -> tuple[Pixels, float]:
    """Return the colour of the ground at a picture's edge, shape (3,), and which share of the edge has it.

    It is the median of what is near the colour that was asked for; that colour itself where nothing is.
    """
    wanted = np.array(key, dtype=np.float32)
    rim = max(2, round(RIM * min(pixels.shape[:2])))
    edge = np.concatenate(
        [pixels[:rim].reshape(-1, 3), pixels[-rim:].reshape(-1, 3),
         pixels[rim:-rim, :rim].reshape(-1, 3), pixels[rim:-rim, -rim:].reshape(-1, 3)]
    )  # fmt: skip
    near = _distance(_differences(edge), _differences(wanted)) < SAME
    share = float(near.mean())
    return (np.median(edge[near], axis=0).astype(np.float32) if near.any() else wanted), share


def components(mask: Mask) -> list[int]:
    """Return the areas of the parts of a mask that hang together (8 neighbours), the largest first."""
    from scipy import ndimage

    labels, count = ndimage.label(mask, structure=np.ones((3, 3), dtype=int))
    sizes = np.bincount(labels.reshape(-1), minlength=count + 1)[1:]
    return sorted((int(size) for size in sizes), reverse=True)


def _enclosed(mask: Mask) -> Mask:
    from scipy import ndimage

    filled: Mask = ndimage.binary_fill_holes(mask)
    return filled & ~mask


def _grown(mask: Mask, by: int) -> Mask:
    from scipy import ndimage

    grown: Mask = ndimage.binary_dilation(mask, structure=np.ones((3, 3), dtype=bool), iterations=by)
    return grown


def _differences(pixels: Pixels) -> Pixels:
    """Return the two colour differences, shape (..., 2), in levels of 255."""
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    luma = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
    return np.stack([np.float32(0.564) * (blue - luma), np.float32(0.713) * (red - luma)], axis=-1)


def _distance(values: Pixels, other: Pixels) -> Pixels:
    gap = values - other
    away: Pixels = np.sqrt(gap[..., 0] * gap[..., 0] + gap[..., 1] * gap[..., 1])
    return away


def _strong(pixels: Pixels) -> Mask:
    """Return which pixels have a colour at all: what is nearly grey is of no key's colour."""
    strong: Mask = pixels.max(axis=-1) - pixels.min(axis=-1) > 48
    return strong


def _freed(pixels: Pixels, alpha: Pixels, ground: Pixels) -> "Image":
    """Return the picture with its opacity; what is partly ground loses the ground's share of its colour."""
    from PIL import Image

    share = alpha[..., None]
    partly = (share > 0) & (share < 1)
    bare = (pixels - (1 - share) * ground) / np.maximum(share, np.float32(0.05))
    colours = np.where(partly, bare, pixels)
    whole = np.dstack([np.clip(np.rint(colours), 0, 255), np.rint(alpha * 255)]).astype(np.uint8)
    whole[alpha == 0] = 0
    return Image.fromarray(whole, "RGBA")


Key: TypeAlias = Literal["green", "magenta", "blue", "orange"]
KEYS: dict[Key, str] = {"green": "#00b140", "magenta": "#ff00b8", "blue": "#0047bb", "orange": "#ff7f00"}
"""Name of a ground -> its colour, in the order in which they are tried."""


def grounds_for(description: str, retries: int) -> tuple[Key, ...]:
    """Return the grounds to try, one for the first try and one for each retry.

    Green, magenta, blue, then orange. A colour that the description has words for is replaced by the next
    one that it has none for; where there is no such colour left, it comes last. From the fifth try on they
    repeat.

    >>> grounds_for("Woman in a red coat.", 2)
    ('green', 'magenta', 'blue')
    >>> grounds_for("Man in an olive coat.", 2)
    ('orange', 'magenta', 'blue')
    """
    worn = colours_worn(description)
    tries = retries + 1
    order: list[Key] = list(KEYS)
    chosen = order[:tries]
    spare = [key for key in order[tries:] if key not in worn]
    kept: list[Key] = []
    late: list[Key] = []
    for key in chosen:
        if key not in worn:
            kept.append(key)
        elif spare:
            kept.append(spare.pop(0))
        else:
            late.append(key)
    rounds = [*kept, *late]
    return tuple(rounds[number % len(rounds)] for number in range(tries))


def rgb_of(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour such as ``#00b140``."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


# -- What is looked at in a picture before any model is asked
#
# Every check has a limit of ours: the paper names what makes a portrait fail, without numbers (C.2).

RULES = "rules"


class CheckLimits(Own):
    """How much of what is borne."""

    least_area: float = Field(default=0.03, ge=0, le=1, description="Share of the picture that is subject.")
    most_area: float = Field(default=0.85, ge=0, le=1, description="The same, at most.")
    most_holes: float = Field(
        default=0.04, ge=0, le=1, description="Ground that the subject encloses, as a share of both."
    )
    most_pieces: float = Field(
        default=0.08, ge=0, le=1, description="The second largest piece, as a share of the largest."
    )
    most_touching: float = Field(
        default=0.02, ge=0, le=1, description="Share of an edge of the picture that the subject touches."
    )
    most_tinted: float = Field(
        default=0.12, ge=0, le=1, description="Share of the subject whose colour is near the ground's."
    )
    least_ground: float = Field(
        default=0.6, ge=0, le=1, description="Share of the picture's edge that has the ground's colour."
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """What is cut out."""

    type: EntityType  # of the entity
    name: str  # of the entity; one of several things may be in several pieces


def check_cut(cut: CutOut, subject: Subject, limits: CheckLimits) -> tuple[BankCheck, ...]:
    """Return the checks of a cut-out portrait, each passed or not."""
    return tuple(_checks(cut, subject, limits))


def _checks(cut: CutOut, subject: Subject, limits: CheckLimits) -> Iterator[BankCheck]:
    area = float(cut.mask.mean())
    if cut.ground is not None:
        yield _check("ground", cut.ground >= limits.least_ground, f"{cut.ground:.0%} of the edge is ground")
    yield _check("area", limits.least_area <= area <= limits.most_area, f"{area:.1%} of the picture")
    whole = int(cut.mask.sum())
    if not whole:
        return
    holes = int(cut.enclosed.sum()) / (whole + int(cut.enclosed.sum()))
    yield _check("holes", holes <= limits.most_holes, f"{holes:.1%} of it is ground that it encloses")
    yield _pieces(cut.mask, subject, limits)
    sides = touching(cut.mask)
    worst = max(sides, key=lambda side: sides[side])
    yield _check("border", sides[worst] <= limits.most_touching, f"{sides[worst]:.1%} of the {worst} edge")
    tinted = int(cut.tinted.sum()) / whole
    yield _check("key_left", tinted <= limits.most_tinted, f"{tinted:.1%} of it is near the ground's colour")


def _pieces(mask: Mask, subject: Subject, limits: CheckLimits) -> BankCheck:
    """Return whether the subject is one thing: no second figure, no head without its neck.

    Parts of an object may hover above each other; one beside the other is a second object. A name of several
    things says nothing about pieces.
    """
    sizes = components(mask)
    share = sizes[1] / sizes[0] if len(sizes) > 1 else 0.0
    note = f"the second largest of {len(sizes)} pieces has {share:.1%} of the largest"
    if subject.type == "object" and share > limits.most_pieces:
        if is_many(subject.name):
            return BankCheck(code="pieces", passed=None, note=f"{note}; it is named as several", by=RULES)
        return _check("pieces", not _side_by_side(mask, sizes[1]), note)
    return _check("pieces", share <= limits.most_pieces, note)


def _side_by_side(mask: Mask, least: int) -> bool:
    """Whether of the pieces of so many pixels or more two share no column of the picture."""
    from scipy import ndimage

    labels, _ = ndimage.label(mask, structure=np.ones((3, 3), dtype=int))
    sizes = np.bincount(labels.reshape(-1))
    spans = []
    for number, columns in enumerate(ndimage.find_objects(labels), 1):
        if columns is not None and sizes[number] >= least:
            spans.append((columns[1].start, columns[1].stop))
    return any(
        first[1] <= other[0] or other[1] <= first[0]
        for number, first in enumerate(spans)
        for other in spans[number + 1 :]
    )


def touching(mask: Mask) -> dict[str, float]:
    """Return for each edge of the picture which share of it the subject covers."""
    edges = {"upper": mask[0], "lower": mask[-1], "left": mask[:, 0], "right": mask[:, -1]}
    return {name: float(edge.mean()) for name, edge in edges.items()}


def bounds_of(mask: Mask) -> tuple[int, int, int, int] | None:
    """Return left, top, right, bottom of a mask in pixels, the last two outside; None for an empty one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


LEAST_CONTRAST = 4.0
"""Standard deviation of the brightness, of 255, below which a panorama shows nothing."""


def check_panorama(image: "Image") -> tuple[BankCheck, ...]:
    """Return the checks of a panorama: whether it shows anything, and whether its shape was as asked."""
    brightness = float(np.asarray(image.convert("L"), dtype=np.float32).std())
    width, height = PANORAMA_SIZE
    shape = image.size == PANORAMA_SIZE
    cut = "" if shape else f", brought to {width} x {height} by cutting and scaling"
    return (
        _check("contrast", brightness >= LEAST_CONTRAST, f"its brightness varies by {brightness:.1f}"),
        BankCheck(
            code="shape",
            passed=shape or None,
            note=f"it came as {image.width} x {image.height}{cut}",
            by=RULES,
        ),
    )


def _check(code: str, passed: bool, note: str) -> BankCheck:
    return BankCheck(code=code, passed=passed, note=note, by=RULES)


def passes(checks: tuple[BankCheck, ...]) -> bool:
    """Whether nothing is known against a picture."""
    return all(check.passed is not False for check in checks)


SHAPES = {"character": (1.6, 4.5), "object": (0.25, 4.0)}
"""Type -> height over width of a subject between which proportions are usual."""
FILLED = {"character": 0.9, "object": 0.7}
"""Type -> share of the picture's height, or of its longer extent, that a well composed subject takes."""


def composition(cut: CutOut, kind: EntityType) -> float:
    """Return how well a cut-out is composed, 0 to 1: the mean of size, place and proportions.

    Size is how near its longer extent comes to :data:`FILLED`, place how near its middle is to the middle of
    the picture, proportions 1 within :data:`SHAPES` and less beyond. 0 where nothing is cut out.
    """
    edges = bounds_of(cut.mask)
    if edges is None:
        return 0.0
    height, width = cut.mask.shape
    left, top, right, bottom = edges
    tall, wide = bottom - top, right - left
    extent = tall / height if kind == "character" else max(tall / height, wide / width)
    size = max(0.0, 1 - abs(extent - FILLED[kind]) / FILLED[kind])
    off = abs((left + right) / 2 / width - 0.5) + abs((top + bottom) / 2 / height - 0.5)
    low, high = SHAPES[kind]
    ratio = tall / wide
    shape = min(1.0, ratio / low, high / ratio)
    return float(size + max(0.0, 1 - 2 * off) + shape) / 3
