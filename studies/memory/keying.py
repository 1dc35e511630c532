"""Cutting a subject out of a ground of one colour, by the distance of colours (chroma keying).

Colours are compared without their brightness, so that shadows on the ground are ground: in the plane of the
two colour differences of ITU-R BT.601, in which a distance of 1 is one level of 255. What is ground and hangs
together with the edge of the picture is left out; ground that the subject encloses is left out, too, and is
counted as holes, because clothes of the ground's colour look just like that.

Grounds of one colour behind a portrait, and the order in which they are tried (EntityBench, C.2, E.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import PANORAMA_SIZE, BankCheck
from .scripts import colours_worn, is_many

if TYPE_CHECKING:
    from PIL.Image import Image

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
