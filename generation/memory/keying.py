"""Cutting a subject out of a ground of one colour, by the distance of colours (chroma keying).

Colours are compared without their brightness, so that shadows on the ground are ground: in the plane of the
two colour differences of ITU-R BT.601, in which a distance of 1 is one level of 255. What is ground and hangs
together with the edge of the picture is left out; ground that the subject encloses is left out, too, and is
counted as holes, because clothes of the ground's colour look just like that.

Grounds of one colour behind a portrait, and the order in which they are tried (EntityBench, C.2, E.3).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .words import colours_worn

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
