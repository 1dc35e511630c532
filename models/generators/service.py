"""What adapters of services that make pictures share: bounds, what is not taken, and replies without secrets.

A reply with a picture has megabytes of base64 in it. It is not searched like words: secrets are looked for in
its words as everywhere, and in the bytes of the file.
"""

import base64
import binascii
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from ...schemas.canonical import Json
from ..chat import ChatRequest, Reply
from ..edge import Edge, Service, unicode_only
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec
from .request import Choice, Generated, GeneratedFile, PictureRequest, read_generated

LONGEST_PICTURE = 32 * 1024 * 1024
"""Most bytes of a response that holds a picture in base64, a third longer than its file."""

LONGEST_VIDEO = 128 * 1024 * 1024
"""Most bytes of a video, and of a response that holds one."""

_STARTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.S), "image/webp"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"....ftypavif", re.S), "image/avif"),
    (re.compile(rb"....ftyp", re.S), "video/mp4"),
    (re.compile(rb"\x1a\x45\xdf\xa3"), "video/webm"),
)

NO_FILE = "the service gave no {} that can be read"


def known_media_type(data: bytes) -> str | None:
    """Return the media type that the first bytes of a picture or video show; None for anything else."""
    return next((name for start, name in _STARTS if start.match(data)), None)


def file_of(data: bytes, declared: str | None = None) -> GeneratedFile:
    """Return a file with the media type that it shows, else the one that was declared."""
    return GeneratedFile(data, known_media_type(data) or declared or "application/octet-stream")


def bytes_of(text: Json) -> bytes | None:
    """Return what base64 stands for, in either alphabet; None where it is none, or nothing."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def not_taken(picture: PictureRequest, taken: Collection[Choice]) -> tuple[Choice, ...]:
    """Return what was chosen and is not among what is taken."""
    chosen: Mapping[Choice, bool] = {
        "references": bool(picture.references),
        "seed": picture.seed is not None,
        "size": picture.width is not None or picture.height is not None,
        "steps": picture.steps is not None,
        "negative": picture.negative is not None,
        "seconds": picture.seconds is not None,
        "scene": picture.scene is not None,
        "first_frame": picture.first_frame is not None,
    }
    return tuple(name for name, is_chosen in chosen.items() if is_chosen and name not in taken)


def cleaned(made: Generated, redactor: Redactor) -> Generated:
    """Return what was made without secrets in its words and in the bytes of its file."""
    data, media_type = made.file.data, redactor.redact(unicode_only(made.file.media_type))
    if known_media_type(data) is None:
        # No picture, so it may be words: they are searched in all the forms that words have.
        data = redactor.redact(data.decode("latin-1")).encode("latin-1")
    else:
        data = redactor.redact_bytes(data)
    revised = None if made.revised_prompt is None else redactor.redact(unicode_only(made.revised_prompt))
    return replace(made, file=GeneratedFile(data, media_type[:100]), revised_prompt=revised)


class PictureEdge(Edge):
    """The edge of a service that makes pictures."""

    def _text(self, text: str) -> str:
        try:
            made = read_generated(text)
        except ValueError:
            return super()._text(text)
        return cleaned(made, self._redactor).packed()


class PictureService(Service):
    """A service that makes pictures or videos: what it is asked changes how its reply is read.

    Args:
        spec: which model, and where.
        options: its settings.
        redactor: learns the key and takes it out of all that comes back.

    Raises:
        MissingRequirement: the library, the key or a variable that the settings name is not there.
    """

    makes: ClassVar[str] = "picture"

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._edge = PictureEdge(options, redactor)

    async def complete(self, request: ChatRequest) -> Reply:
        """Make one picture."""
        picture = PictureRequest.of(request)
        return await self._asked(request, partial(self._read, request, picture))

    @abstractmethod
    def _read(
        self, request: ChatRequest, picture: PictureRequest, document: Mapping[str, Any]
    ) -> Reply | None:
        """Return the reply in the JSON of a response; None where it is not the service's form."""
