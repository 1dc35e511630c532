"""The pictures that judges get from the files of a storyboard: decoded once, encoded once, no metadata.

What a file holds besides pixels is read from its bytes without decoding it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from ...errors import InputError, UserError
from ...media.images import LIMITS, MEDIA_TYPES, PictureLimits, encode_image, fitted
from ...media.images import Picture as Opened
from ...media.kept_files import keep_file, kept_bytes
from ...media.moving import pictures_in
from ...media.stretching import Filter, stretched
from ...models.chat import Image
from ...schemas.canonical import sha256_bytes
from ...schemas.values import Own, is_unset

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_NEEDED = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
# FF is followed by 00 where it is data and by D0 to D7 where decoding may start again.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SOS, _EOI, _APP0 = 0xDA, 0xD9, 0xE0
# Tables and frame headers: DHT, DQT, DRI and the SOF family.
_JPEG_NEEDED = {0xDB, 0xDD, *range(0xC0, 0xD0)}
_JFIF_WITHOUT_THUMBNAIL = 16


@lru_cache(maxsize=64)
def foreign_chunks(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return what a PNG or JPEG file holds besides pixels: name of the chunk, start of its content.

    A file of any other format, or a damaged one, is reported as a whole: re-encoded pictures are neither.
    """
    try:
        if data.startswith(_PNG):
            return tuple(_png(data))
        if data.startswith(b"\xff\xd8"):
            return tuple(_jpeg(data))
    except (IndexError, ValueError):
        return (("damaged file", shown(data)),)
    return (("file that is not a PNG or JPEG", shown(data)),)


def shown(data: bytes) -> str:
    """Return the start of some bytes as one line of text."""
    return data[:40].decode("latin-1").encode("unicode_escape").decode("ascii")


def _png(data: bytes) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    offset = len(_PNG)
    while offset < len(data):
        size, name = int.from_bytes(data[offset : offset + 4], "big"), data[offset + 4 : offset + 8]
        content = data[offset + 8 : offset + 8 + size]
        if len(name) < 4 or len(content) < size:
            raise ValueError("a chunk is cut")
        if name not in _PNG_NEEDED:
            texts.append((f"PNG chunk {shown(name)}", shown(content)))
        offset += 12 + size
        if name == b"IEND":
            return [*texts, *_rest(data[offset:])]
    raise ValueError("no end")


def _jpeg(data: bytes) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    offset = 2
    while True:
        if data[offset] != 0xFF:
            raise ValueError("no marker")
        marker = data[offset + 1]
        if marker == _EOI:
            return [*texts, *_rest(data[offset + 2 :])]
        size = int.from_bytes(data[offset + 2 : offset + 4], "big")
        content = data[offset + 4 : offset + 2 + size]
        plain = marker == _APP0 and content[:5] == b"JFIF\x00" and size == _JFIF_WITHOUT_THUMBNAIL
        if marker not in _JPEG_NEEDED and marker != _SOS and not plain:
            texts.append((f"JPEG segment {marker:02X}", shown(content)))
        offset += 2 + max(size, 2)
        if marker == _SOS:
            following = _MARKER.search(data, offset)
            if following is None:
                raise ValueError("no end")
            offset = following.start()


def _rest(data: bytes) -> list[tuple[str, str]]:
    return [("bytes after the picture", shown(data))] if data else []


_SUFFIX = {"image/png": "png", "image/jpeg": "jpg"}
_TYPES = {suffix: media_type for media_type, suffix in _SUFFIX.items()}


class ImageSettings(Own):
    """How pictures are encoded for judges. Part of the protocol: a judge sees exactly this."""

    max_side: int | None = Field(
        default=1024, ge=16, le=8192, description="Longer side in pixels at most; null keeps the size."
    )
    format: Literal["jpeg", "png"] = Field(default="jpeg", description="What the pictures are sent as.")
    quality: int = Field(default=92, ge=1, le=95, description="Quality of a JPEG.")
    size: tuple[int, int] | None = Field(
        default=None, exclude_if=is_unset,
        description="Width and height that pictures are stretched to, whatever their shape; null keeps it.",
    )  # fmt: skip
    stretching: Filter = Field(default="area", exclude_if=lambda value: value == "area")
    subsampled: bool = Field(
        default=False, exclude_if=is_unset, description="Whether a JPEG keeps a quarter of its colours."
    )

    @field_validator("size")
    @classmethod
    def _can_be_shown(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not all(16 <= side <= 8192 for side in value):
            raise ValueError("each side must have 16 to 8192 pixels")
        return value


@dataclass(frozen=True, slots=True)
class PreparedPicture:
    """One encoded picture: pixels and nothing else."""

    sha256: str  # of the bytes
    width: int  # in pixels, as encoded
    height: int  # in pixels, as encoded
    media_type: str  # ``image/jpeg`` or ``image/png``
    data: bytes = field(repr=False)  # the bytes
    # what was done to the file, or is odd about it (see :class:`~fabula.media.images.Picture`)
    notes: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """Its name in a folder of pictures named by content, such as ``3f...9a.jpg``."""
        return f"{self.sha256}.{_SUFFIX[self.media_type]}"

    @property
    def part(self) -> Image:
        """The picture as a part of a message."""
        return Image(self.data, self.media_type)


def prepare_storyboard(
    files: Sequence[Path], settings: ImageSettings, limits: PictureLimits = LIMITS, *, frames: int = 1
) -> tuple[PreparedPicture, ...]:
    """Decode the files of a storyboard with limits and encode each once, in the order given.

    ``files``: pictures, or videos of which frames are taken. ``limits``: what a picture may be at most.
    ``frames``: how many frames of each video, the middles of equal parts.
    """
    prepared: list[PreparedPicture] = []
    problems: list[UserError] = []
    for file in files:
        try:
            prepared += [prepare_picture(shown, settings) for shown in pictures_in(file, frames, limits)]
        except UserError as problem:
            problems.append(problem)
    if problems:
        raise InputError(problems)
    return tuple(prepared)


def prepare_picture(picture: Opened, settings: ImageSettings) -> PreparedPicture:
    """Encode one opened picture, or frame of a video, as the settings say."""
    image = (
        fitted(picture.image, settings.max_side)
        if settings.size is None
        else stretched(picture.image, settings.size, settings.stretching)
    )
    data = encode_image(
        image, format=settings.format, quality=settings.quality, subsampled=settings.subsampled
    )
    media_type = MEDIA_TYPES[settings.format]
    return PreparedPicture(sha256_bytes(data), image.width, image.height, media_type, data, picture.notes)


def keep_pictures(pictures: Iterable[PreparedPicture], store: Path) -> tuple[str, ...]:
    """Write pictures into a folder named by their content; return their file names there.

    What is there already is left alone; a file is never seen half written.
    """
    store.mkdir(parents=True, exist_ok=True)
    names = []
    for picture in pictures:
        keep_file(picture.data, picture.file_name, store)
        names.append(picture.file_name)
    return tuple(names)


def absent_picture(file_name: str) -> Image:
    """Return what stands for a kept picture where its bytes are not at hand; requests have the same key."""
    stem, _, suffix = file_name.partition(".")
    return Image(file_name.encode("ascii"), _TYPES[suffix], stem)


def kept_picture(store: Path, file_name: str) -> Image:
    """Return a kept picture as a part of a message; what its bytes are is checked against its name."""
    fix = "remove the folder `images` of the run and run the command again"
    data = kept_bytes(store, file_name, fix=fix)
    return Image(data, _TYPES[file_name.partition(".")[2]])
