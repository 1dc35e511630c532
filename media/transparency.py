"""Frames of videos with transparent parts: they are laid over white, as pictures are."""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image


def over_white(frame: Any) -> "tuple[Image, bool]":  # noqa: ANN401 - PyAV's
    """Return the pixels of a frame as RGB, not turned, and whether something of it is transparent."""
    image: Image = frame.to_image()
    if not _may_be_transparent(frame.format.name):
        return image, False
    from PIL import Image as Images

    alpha = Images.fromarray(frame.to_ndarray(format="rgba")[:, :, 3])
    if alpha.getextrema() == (255, 255):
        return image, False
    white = Images.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=alpha)
    return white, True


def opaque(frame: Any) -> Any:  # noqa: ANN401 - PyAV's
    """Return a frame that lies over white where something of it is transparent; it is not turned."""
    import av

    if not _may_be_transparent(frame.format.name):
        return frame
    image, transparent = over_white(frame)
    return av.VideoFrame.from_image(image) if transparent else frame  # type: ignore[no-untyped-call]


@cache
def _may_be_transparent(pixel_format: str) -> bool:
    import av

    kind = av.VideoFormat(pixel_format)
    return kind.has_palette or any(component.is_alpha for component in kind.components)
