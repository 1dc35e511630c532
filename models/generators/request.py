"""What is asked of a model that makes pictures or videos, and what comes back.

Such a model is asked like a chat model, one picture or video a call, so that journal, limits, retries,
prices, cost limits and redaction are the same for both. What it makes travels in a reply's text: JSON, the
file in base64. A request names only what was chosen; what a system does not take is not sent, and its reply
says so.
"""

import base64
import binascii
import json
import math
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

from ...schemas.canonical import Json
from ..chat import CallFault, ChatRequest, Image, Message, Part, Reply
from ..edge import Edge, Service, unicode_only
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec

CHOSEN = "picture"
"""Key under which a chat request's ``extra`` holds what is chosen for a picture besides its prompt."""

FIRST = "first_frame"
"""Key there that says that the last picture of a request is the frame with which the video begins."""

Choice: TypeAlias = Literal[
    "references", "seed", "size", "steps", "negative", "seconds", "scene", "first_frame"
]  # fmt: skip
"""What a system may not take: reference images, a seed, a size, a number of steps, a negative prompt, a
duration, the scene as data, or a first frame."""


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """One picture or video to be made."""

    model: str  # spec of the model, such as ``image:openai:gpt-image-2``
    prompt: str  # what is to be seen, in words, as it is sent
    references: tuple[Image, ...] = ()  # pictures that it must resemble
    negative: str | None = None  # what is not to be seen
    seed: int | None = None  # sampling seed; None leaves it to the system
    width: int | None = None  # in pixels; None leaves it to the system, and so does None for ``height``
    height: int | None = None  # in pixels
    steps: int | None = None  # of denoising
    seconds: float | None = None  # duration of a video
    # the same scene as data, for the one model that draws from data (``drawn``); others do not get it. Its
    # form is that of :mod:`.drawn.scene`.
    scene: Mapping[str, Json] | None = None
    # the picture with which a video begins; no reference for what anything looks like
    first_frame: Image | None = None

    def chat(self) -> ChatRequest:
        """Return it as a chat request, by whose key the journal keeps the reply."""
        chosen = {
            name: getattr(self, name)
            for name in ("negative", "width", "height", "steps", "seconds", "scene")
            if getattr(self, name) is not None
        }
        parts: tuple[Part, ...] = (self.prompt, *self.references)
        if self.first_frame is not None:
            parts, chosen[FIRST] = (*parts, self.first_frame), True
        most = MOST_TOKENS
        if self.model.startswith("video:"):
            most = math.ceil((self.seconds or MOST_SECONDS) * TOKENS_PER_SECOND)
        return ChatRequest(
            self.model,
            (Message("user", parts),),
            seed=self.seed,
            max_tokens=most,
            extra={CHOSEN: chosen},
        )

    @classmethod
    def of(cls, request: ChatRequest) -> "PictureRequest":
        """Return what :meth:`chat` wrote."""
        chosen = request.extra.get(CHOSEN)
        if len(request.messages) != 1 or request.schema is not None or not isinstance(chosen, Mapping):
            raise CallFault("unsupported", "this model makes pictures or videos; it answers no questions")
        texts = [part for part in request.messages[0].parts if isinstance(part, str)]
        pictures = tuple(part for part in request.messages[0].parts if isinstance(part, Image))
        first = pictures[-1] if chosen.get(FIRST) and pictures else None
        given = {name: value for name, value in chosen.items() if name != FIRST}
        if first is not None:
            pictures = pictures[:-1]
        return cls(
            request.model, "\n".join(texts), pictures, seed=request.seed, first_frame=first, **given
        )  # fmt: skip


MOST_TOKENS = 8192
"""Most tokens that the reply of a model that makes pictures is reserved at, where it is priced by tokens; a
picture of today's services takes 200 to 6,300."""

TOKENS_PER_SECOND = 20_000
"""The same for each second of a video; Google counts about 5,700 at 720p, and three times that at 4K."""

MOST_SECONDS = 20.0
"""How long a video is reserved at for which no duration is chosen."""


TYPICAL_TOKENS = 1300
"""About how many tokens a picture takes, and a second of video, for plans of what they will cost."""

TYPICAL_TOKENS_PER_SECOND = 5800


def typical_tokens(request: ChatRequest) -> int:
    """Return about how many tokens what is asked for takes, where it is priced by tokens."""
    if request.model.startswith("video:"):
        return round(longest_seconds(request) * TYPICAL_TOKENS_PER_SECOND)
    return TYPICAL_TOKENS


def longest_seconds(request: ChatRequest) -> float:
    """Return the duration that a video is reserved at, in seconds."""
    chosen = request.extra.get(CHOSEN)
    seconds = chosen.get("seconds") if isinstance(chosen, Mapping) else None
    return float(seconds) if isinstance(seconds, int | float) else MOST_SECONDS


def extras(request: ChatRequest) -> dict[str, Json]:
    """Return the parameters that the settings of a model add, without what is chosen for the picture."""
    return {name: value for name, value in request.extra.items() if name != CHOSEN}


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A picture or video as it came."""

    data: bytes = field(repr=False)  # its bytes
    media_type: str  # such as ``image/png`` or ``video/mp4``


@dataclass(frozen=True, slots=True)
class Generated:
    """What a model made, with what it says of how."""

    file: GeneratedFile  # the picture or video
    revised_prompt: str | None = None  # the prompt as the service rewrote it; None where it does not tell
    seed: int | None = None  # the seed that was used; None where nobody knows
    width: int | None = None  # of what came back, in pixels, as the system says; None where it does not
    height: int | None = None  # the same
    steps: int | None = None  # of denoising; None where they are not known
    # what was chosen and is not taken by the system, so that it was not sent
    unsupported: tuple[Choice, ...] = ()
    # what a drawn picture shows, as data, for whoever measures judges; judges never see it
    truth: Mapping[str, Json] | None = None

    def packed(self) -> str:
        """Return it as the text of a reply."""
        return json.dumps(
            {
                "file": base64.b64encode(self.file.data).decode("ascii"),
                "media_type": self.file.media_type,
                **self.about(),
                "truth": None if self.truth is None else dict(self.truth),
            },
            ensure_ascii=False,
        )

    def about(self) -> dict[str, Json]:
        """Return all but the file and the truth, as JSON: what is kept for each picture."""
        return {
            "revised_prompt": self.revised_prompt, "seed": self.seed, "width": self.width,
            "height": self.height, "steps": self.steps, "unsupported": list(self.unsupported),
        }  # fmt: skip


def read_generated(text: str) -> Generated:
    """Return what :meth:`Generated.packed` wrote."""
    try:
        document: dict[str, Any] = json.loads(text)
        file = GeneratedFile(
            base64.b64decode(document.pop("file"), validate=True), document.pop("media_type")
        )
        unsupported = tuple(document.pop("unsupported"))
        return Generated(file, unsupported=unsupported, **document)
    except (KeyError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise ValueError(f"the reply holds no picture: {error}") from error


# -- What adapters of services that make pictures share
#
# A reply with a picture has megabytes of base64 in it. It is not searched like words: secrets are looked
# for in its words as everywhere, and in the bytes of the file.

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
        picture = PictureRequest.of(request)
        return await self._asked(request, partial(self._read, request, picture))

    @abstractmethod
    def _read(
        self, request: ChatRequest, picture: PictureRequest, document: Mapping[str, Any]
    ) -> Reply | None:
        """Return the reply in the JSON of a response; None where it is not the service's form."""
