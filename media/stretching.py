"""Pictures made to a fixed size, whatever their shape: what some public evaluators show their judges.

Source: OpenCV's resize with INTER_AREA. Where both sides shrink, a pixel is the mean of the area that it
covers; else the nearest two pixels are mixed by how far the new one reaches over their border. Within one
level of OpenCV's own.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL.Image import Image

    Weights = npt.NDArray[np.float32]

Filter = Literal["area", "bicubic"]


def stretched(image: "Image", size: tuple[int, int], how: Filter) -> "Image":
    """Return an RGB image in a size.

    ``size``: width and height in pixels; the shape may change.
    """
    import numpy as np
    from PIL import Image as Pillow

    if how == "bicubic":
        return image.resize(size, Pillow.Resampling.BICUBIC)
    pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    shrinks = image.width >= size[0] and image.height >= size[1]
    weights = _covered if shrinks else _mixed
    rows, columns = weights(image.height, size[1]), weights(image.width, size[0])
    made = np.tensordot(columns, np.tensordot(rows, pixels, (1, 0)), (1, 1)).transpose(1, 0, 2)
    return Pillow.fromarray(np.rint(np.clip(made, 0, 255)).astype(np.uint8))


def _covered(before: int, after: int) -> "Weights":
    """Return the share of each old pixel in each new one, shape (after, before)."""
    import numpy as np

    scale = before / after
    starts = np.arange(after)[:, None] * scale
    pixels = np.arange(before)[None, :]
    overlap = np.minimum(starts + scale, pixels + 1) - np.maximum(starts, pixels)
    shares: Weights = (np.clip(overlap, 0, None) / scale).astype(np.float32)
    return shares


def _mixed(before: int, after: int) -> "Weights":
    """Return the weights of the two old pixels of each new one, shape (after, before)."""
    import numpy as np

    scale = before / after
    new = np.arange(after)
    left = np.floor(new * scale).astype(int)
    share = (new + 1) - (left + 1) / scale
    share = np.where(share <= 0, 0, share - np.floor(share))
    weights = np.zeros((after, before), dtype=np.float32)
    weights[new, np.minimum(left, before - 1)] += 1 - share
    weights[new, np.minimum(left + 1, before - 1)] += share
    return weights
