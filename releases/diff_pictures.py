"""The reference images that differ between two releases, small, for the page of a diff."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..media.images import encode, open_picture
from ..schemas.canonical import sha256_bytes
from ..schemas.plain_files import read_plain
from .diffing_images import ImageChange

SIDE, QUALITY = 112, 82
MOST = 200
"""Most rows with pictures on a page; JSON has all changes."""


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One image that differs.

    Attributes:
        change: what became of it.
        before: the old picture as a data address; None where there was none, or it cannot be shown.
        after: the new one likewise.
    """

    change: ImageChange
    before: str | None
    after: str | None


def picture_rows(changes: Sequence[ImageChange], old: Path, new: Path) -> list[PictureRow]:
    """Return the first changes with their pictures.

    Args:
        changes: see :func:`.diffing_images.image_changes`.
        old: the folder of the old release.
        new: that of the new one.
    """
    return [
        PictureRow(one, _small(old / one.path, one.old), _small(new / one.path, one.new))
        for one in changes[:MOST]
    ]


def _small(path: Path, sha256: str | None) -> str | None:
    """Return a picture as a data address; None where the file is not the stated one, or no picture."""
    if sha256 is None:
        return None
    try:
        data = read_plain(path)
        if sha256_bytes(data) != sha256:
            return None
        small = encode(open_picture(data), max_side=SIDE, format="jpeg", quality=QUALITY)
    except (OSError, UserError):
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(small).decode('ascii')}"
