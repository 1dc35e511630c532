"""Cutting what a detector found out of a picture.

Two definitions. ``clamped`` (default, what the public code of ViStoryBench does): corners are cut off to
whole pixels, what lies outside the picture goes. ``trimmed``: as the paper says of reference images, the
edges are trimmed as well; it gives no amount, so a hundredth of width and height on each side is ours.
"""

from typing import TYPE_CHECKING, Literal

from .types import Box

if TYPE_CHECKING:
    from PIL.Image import Image

Definition = Literal["clamped", "trimmed"]
TRIM = 0.01
"""Share of width and height that ``trimmed`` takes off each side."""


def cut(image: "Image", box: Box, definition: Definition = "clamped") -> "Image | None":
    """Return the part of a picture that lies in a box, in RGB; None where no pixel does."""
    if definition == "trimmed":
        across, down = TRIM * (box.right - box.left), TRIM * (box.bottom - box.top)
        box = Box(box.left + across, box.top + down, box.right - across, box.bottom - down)
    inside = box.within(image.width, image.height)
    edges = (int(inside.left), int(inside.top), int(inside.right), int(inside.bottom))
    if edges[2] <= edges[0] or edges[3] <= edges[1]:
        return None
    part = image.crop(edges)
    return part if part.mode == "RGB" else part.convert("RGB")
