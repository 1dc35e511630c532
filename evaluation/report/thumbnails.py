"""Pictures of a report: small JPEGs as data URLs, opened with limits, without metadata."""

import base64
from pathlib import Path

from ...errors import UserError
from ...media.images import encode, open_picture
from .model import Frame

SIDE, QUALITY = 360, 72
"""Longer side in pixels, and quality, of an embedded picture."""


class Thumbnails:
    """Makes the small pictures of a report, each file once."""

    def __init__(self) -> None:
        self._made: dict[Path, tuple[str, int, int] | None] = {}

    def frame(self, path: Path | None, label: str, text: str | None = None) -> Frame:
        """Return the frame for a file; without its picture where it is gone or cannot be opened."""
        made = self._of(path) if path is not None else None
        if made is None:
            return Frame(label=label, text=text)
        data, width, height = made
        return Frame(label=label, text=text, width=width, height=height, data=data)

    def _of(self, path: Path) -> tuple[str, int, int] | None:
        if path not in self._made:
            self._made[path] = _thumbnail(path)
        return self._made[path]


def _thumbnail(path: Path) -> tuple[str, int, int] | None:
    try:
        picture = open_picture(path)
    except UserError:
        return None
    data = encode(picture, max_side=SIDE, format="jpeg", quality=QUALITY)
    small = open_picture(data)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}", small.width, small.height
