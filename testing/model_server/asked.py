"""What a client asked, read from any of the wire formats, and the key that tells questions apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...models.chat import ChatRequest, Image, Message
from ...models.edge import messages_to_send, without_counts
from ...models.generators.google_videos import RATIOS, aspect_ratio, image_size, resolution
from ...models.generators.google_videos import RATIOS as VIDEO_RATIOS
from ...models.generators.request import CHOSEN, PictureRequest
from ...schemas.canonical import Json, digest, sha256_bytes

Protocol: TypeAlias = Literal["openai", "google", "anthropic", "embeddings", "images", "videos", "batches"]
Wants: TypeAlias = Literal["text", "vector", "image", "video"]
Step: TypeAlias = Literal["create", "look", "fetch", "upload", "make", "list", "cancel"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, whatever wire format it came in."""

    # the wire format; ``embeddings`` where the vector of a text is asked for, ``images`` where OpenAI's
    # format asks for a picture, ``videos`` where Google's asks for a video, ``batches`` for whatever concerns
    # a batch as a whole; the requests in it are asked when it is over
    protocol: Protocol
    path: str  # the path of the URL, without query
    model: str  # the model's name as the service knows it
    system: str  # the system message; empty if there is none
    messages: tuple[Message, ...]  # the other messages in order, texts and pictures decoded
    # the JSON Schema that the reply must satisfy, as sent; None if there is none
    schema: Mapping[str, Any] | None = None
    # its name; where the format has no place for one (Gemini, and the output format of Anthropic), the
    # schema's ``title``; None if there is none either
    schema_name: str | None = None
    # ``schema`` or ``json`` where that was asked for, ``tool`` where a forced tool call carries the schema,
    # else None
    structured: Literal["schema", "json", "tool"] | None = None
    # ``temperature``, ``seed`` and ``max_tokens`` as sent, where sent; of pictures also ``size``,
    # ``aspect_ratio``, ``image_size``, ``resolution`` and ``seconds``
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # header names in lower case -> values
    body: Mapping[str, Any] = field(default_factory=dict)  # the request's body as parsed JSON
    target: str = ""  # the request target as sent; a whole URL where the client took the server for a proxy
    key: str = ""  # hash of what bears meaning; equal for equal questions, in every wire format
    attempt: int = 1  # how often the server has been asked this key, this time included
    number: int = 1  # how many requests the server has had, this one included
    at: float = 0.0  # seconds since the server started
    wants: Wants = "text"  # what is to come back
    # of a video made in the background: its creation, a look at how far it is, or the file; of a batch also
    # the upload of its file, the making, the list of batches and the cancelling
    step: Step = "create"
    cached: int = 0  # input tokens that the server has read before, where it keeps prompts
    written: int = 0  # input tokens that it keeps, where that is charged

    @property
    def prompt(self) -> str:
        """What a picture or video is to show."""
        return self.text

    @property
    def references(self) -> tuple[Image, ...]:
        """Pictures that it must resemble."""
        return self.images

    @property
    def seed(self) -> int | None:
        """The sampling seed, where one was sent."""
        return self.params.get("seed")

    @property
    def seconds(self) -> float | None:
        """The duration of a video, where one was sent."""
        return self.params.get("seconds")

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of a picture in pixels, where they were sent as such."""
        width, _, height = str(self.params.get("size", "")).partition("x")
        return (int(width), int(height)) if width.isdecimal() and height.isdecimal() else None

    @property
    def text(self) -> str:
        """All that was said, system message first, without the pictures."""
        said = [part for message in self.messages for part in message.parts if isinstance(part, str)]
        return "\n".join([self.system, *said] if self.system else said)

    @property
    def images(self) -> tuple[Image, ...]:
        """All pictures in order."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, Image))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of the headers that carry credentials, without the word before them such as ``Bearer``."""
        marks = ("authorization", "key", "token", "cookie")
        found = (value for name, value in self.headers.items() if any(mark in name for mark in marks))
        return tuple(value.rpartition(" ")[2] for value in found)

    @property
    def input_tokens(self) -> int:
        """Tokens of the question as the server counts them; see :func:`count_tokens`."""
        schema = "" if self.schema is None else str(self.schema)
        return count_tokens(self.text) + count_tokens(schema) + IMAGE_TOKENS * len(self.images)


IMAGE_TOKENS = 258
CHARACTERS_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Return the tokens of a text: one for every four characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def meaning_key(
    model: str,
    system: str,
    messages: Sequence[Message],
    schema: Mapping[str, Any] | None,
    params: Mapping[str, Any],
) -> str:
    """Return the hash of what bears meaning in a question.

    Texts that stand side by side count as one; the schema's own title, which may carry its name, does not.
    """
    said: list[Json] = [[message.role, _joined(message)] for message in messages]
    return digest(
        {
            "model": model,
            "system": system,
            "messages": said,
            "schema": None if schema is None else {k: v for k, v in schema.items() if k != "title"},
            "params": {name: params[name] for name in sorted(params) if params[name] is not None},
        }
    )


def key_of(request: ChatRequest, model: str) -> str:
    """Return the key under which the server knows what Fabula's adapters send for a request.

    With it a journal's requests are looked up in a server's log. Parameters that settings add, or keep from
    being sent, are not considered.
    """
    if CHOSEN in request.extra:
        return meaning_key(model, "", request.messages, None, _picture_params(request))
    if request.model.startswith("embedding:"):
        return meaning_key(model, "", request.messages, None, request.extra)
    claude = request.model.startswith("anthropic:")
    sent = messages_to_send(request)
    system = "\n".join(str(part) for message in sent if message.role == "system" for part in message.parts)
    params = {
        "temperature": None if request.temperature is None else float(request.temperature),
        "seed": None if claude else request.seed,
        "max_tokens": request.max_tokens,
    }
    schema: Mapping[str, Any] | None = None
    if request.schema is not None and request.structured == "schema":
        schema = without_counts(request.schema) if claude else request.schema.schema
    elif request.schema is not None and request.structured == "json" and claude:
        schema = request.schema.schema
    rest = [message for message in sent if message.role != "system"]
    return meaning_key(model, system, rest, schema, params)


def _picture_params(request: ChatRequest) -> dict[str, Json]:
    """Return the parameters that an adapter sends for a picture."""
    picture = PictureRequest.of(request)
    width, height = picture.width, picture.height
    if ":google:" not in request.model:
        return {} if width is None or height is None else {"size": f"{width}x{height}"}
    video = request.model.startswith("video:")
    ratio = aspect_ratio(width, height, VIDEO_RATIOS if video else RATIOS)
    shape: dict[str, Json] = {"seed": picture.seed, "aspect_ratio": ratio}
    if ratio is not None and width and height:
        shape |= (
            {"resolution": resolution(width, height)} if video else {"image_size": image_size(width, height)}
        )
    return {**shape, "seconds": picture.seconds} if video else shape


def _joined(message: Message) -> list[Json]:
    parts: list[Json] = []
    for part in message.parts:
        if isinstance(part, Image):
            parts.append({"image": sha256_bytes(part.data), "media_type": part.media_type})
        elif parts and isinstance(parts[-1], str):
            parts[-1] += "\n" + part
        else:
            parts.append(part)
    return parts
