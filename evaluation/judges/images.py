"""From the files of a storyboard to the pictures that judges get: decoded once, encoded once, no metadata."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from ...errors import InputError, UserError
from ...media.images import LIMITS, MEDIA_TYPES, PictureLimits, encode, fitted, open_picture
from ...media.images import Picture as Opened
from ...media.kept import keep_file, kept_bytes
from ...models.chat import Image
from ...schemas.base import Own
from ...schemas.canonical import sha256_bytes

_SUFFIX = {"image/png": "png", "image/jpeg": "jpg"}
_TYPES = {suffix: media_type for media_type, suffix in _SUFFIX.items()}


class ImageSettings(Own):
    """How pictures are encoded for judges. Part of the protocol: a judge sees exactly this."""

    max_side: int | None = Field(
        default=1024, ge=16, le=8192, description="Longer side in pixels at most; null keeps the size."
    )
    format: Literal["jpeg", "png"] = Field(default="jpeg", description="What the pictures are sent as.")
    quality: int = Field(default=92, ge=1, le=95, description="Quality of a JPEG.")


@dataclass(frozen=True, slots=True)
class PreparedPicture:
    """One encoded picture: pixels and nothing else.

    Attributes:
        sha256: of the bytes.
        width: in pixels, as encoded.
        height: in pixels, as encoded.
        media_type: ``image/jpeg`` or ``image/png``.
        data: the bytes.
        notes: what was done to the file, or is odd about it (see :class:`~fabula.media.images.Picture`).
    """

    sha256: str
    width: int
    height: int
    media_type: str
    data: bytes = field(repr=False)
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
    files: Sequence[Path], settings: ImageSettings, limits: PictureLimits = LIMITS
) -> tuple[PreparedPicture, ...]:
    """Decode the files of a storyboard with limits and encode each once, in the order given.

    Raises:
        InputError: one or more files cannot be used; all of them are listed, each a ``MediaProblem``.
    """
    prepared: list[PreparedPicture] = []
    problems: list[UserError] = []
    for file in files:
        try:
            prepared.append(prepare_picture(open_picture(file, limits), settings))
        except UserError as problem:
            problems.append(problem)
    if problems:
        raise InputError(problems)
    return tuple(prepared)


def prepare_picture(picture: Opened, settings: ImageSettings) -> PreparedPicture:
    """Encode one opened picture, or frame of a video, as the settings say."""
    small = Opened(fitted(picture.image, settings.max_side), picture.format, picture.notes)
    data = encode(small, format=settings.format, quality=settings.quality)
    media_type = MEDIA_TYPES[settings.format]
    return PreparedPicture(sha256_bytes(data), small.width, small.height, media_type, data, picture.notes)


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
    """Return a kept picture as a part of a message; what its bytes are is checked against its name.

    Raises:
        InputError: it is not there, or its bytes are others.
    """
    fix = "remove the folder `images` of the run and run the command again"
    data = kept_bytes(store, file_name, fix=fix)
    return Image(data, _TYPES[file_name.partition(".")[2]])
