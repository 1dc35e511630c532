"""What a handler answers, and what a service says instead of an answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ...models.chat import Usage
from ...models.stand_ins import MARK, is_stand_in
from ...schemas.canonical import Json
from .asked import CHARACTERS_PER_TOKEN, IMAGE_TOKENS, Asked, count_tokens

Finish: TypeAlias = Literal["stop", "length"]
Where: TypeAlias = Literal["prompt", "reply"]


PICTURE_TOKENS = 1290
"""Tokens of a picture that a model makes, and of a second of video, where an answer does not say."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture or a video that a model makes.

    Attributes:
        data: its bytes.
        media_type: such as ``image/png`` or ``video/mp4``.
        revised_prompt: the prompt as the service rewrote it, where its format has a place for that.
    """

    data: bytes = field(repr=False)
    media_type: str = "image/png"
    revised_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, whatever wire format it leaves in.

    Attributes:
        text: the reply's text.
        usage: tokens; by default one for every four characters.
        finish: whether the model came to its end or ran into the token limit.
        refusal: the refusal, instead of the text.
        blocked: whether a filter of the service stopped the prompt or the reply.
        block_reason: the service's word for it.
        thinking: thinking that the service returns beside the text; counted as output.
        choices: 0 answers without any choice or candidate.
        model: the model that the service says it used; by default that it is a stand-in,
            whatever model was asked for.
        picture: the picture or video that it made.
    """

    text: str = ""
    usage: Usage | None = None
    finish: Finish = "stop"
    refusal: str | None = None
    blocked: Where | None = None
    block_reason: str = "SAFETY"
    thinking: str | None = None
    choices: int = 1
    model: str | None = None
    picture: Picture | None = None

    def served_as(self, asked: Asked) -> str:
        """Return the model's name in the reply: a stand-in's, unless the answer says otherwise."""
        return self.model or (asked.model if is_stand_in(asked.model) else MARK)

    def counts(self, asked: Asked) -> dict[str, int]:
        """Return the tokens of this answer to a question, by the names of their fields in a usage."""
        return {name: count or 0 for name, count in self.tokens(asked).as_json().items()}

    def tokens(self, asked: Asked) -> Usage:
        """Return the usage of this answer to a question."""
        if self.usage is not None:
            return self.usage
        if asked.wants in ("image", "video"):
            drawn = 0 if self.picture is None else round(PICTURE_TOKENS * (asked.seconds or 1))
            written = count_tokens(self.text or self.refusal or "")
            seen = IMAGE_TOKENS * len(asked.images)
            parts = {"image_input_tokens": seen, f"{asked.wants}_output_tokens": drawn}
            return Usage(asked.input_tokens, written + drawn, **parts)
        thinking = count_tokens(self.thinking or "")
        return Usage(
            input_tokens=asked.input_tokens,
            output_tokens=count_tokens(self.text or self.refusal or "") + thinking,
            thinking_tokens=thinking,
            cached_tokens=asked.cached,
            cache_write_tokens=asked.written,
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that a service reports instead of an answer.

    Attributes:
        code: what is wrong, in words of this server; each wire format has its own for them.
        message: what people read; None takes the service's usual words.
        status: HTTP status; None takes the one that the service uses.
        headers: more response headers.
        retry_after: seconds that the service asks to wait.
    """

    code: str
    message: str | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response and how it is delivered.

    Attributes:
        status: HTTP status.
        body: the body, whole.
        headers: headers beside those that every response has.
        delay: seconds before the first byte.
        keep: how many bytes of head and body are sent before the connection is cut; None sends all.
        announced: the length that the head announces; None announces the true one.
        piece: bytes sent at a time; None sends all at once.
        pause: seconds between two pieces.
        clock_error: seconds by which the Date header is wrong.
        retry_date: seconds from that Date to a Retry-After given as a date.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    keep: int | None = None
    announced: int | None = None
    piece: int | None = None
    pause: float = 0.0
    clock_error: float = 0.0
    retry_date: float | None = None


Given: TypeAlias = str | Mapping[str, Any] | list[Any] | Picture | Answer
"""An answer as a handler may write it: a text, JSON for the text, a picture, or all of it."""


def as_answer(given: Given) -> Answer:
    """Return an answer as :class:`Answer`; JSON becomes its text.

    Raises:
        TypeError: it is none of what a handler may return.
    """
    if isinstance(given, Answer):
        return given
    if isinstance(given, str):
        return Answer(given)
    if isinstance(given, Picture):
        return Answer(picture=given)
    if isinstance(given, Mapping | list):
        return Answer(json_text(given))
    raise TypeError(
        f"a handler returns str, dict, list, Picture, Answer or Fault, not {type(given).__name__}"
    )


def json_text(value: Json) -> str:
    """Return JSON as a model would write it: in the order given, Unicode kept."""
    return json.dumps(value, ensure_ascii=False)


def within_limit(answer: Answer, asked: Asked) -> Answer:
    """Return the answer cut off at the request's token limit, as a service would."""
    limit = asked.params.get("max_tokens")
    if answer.usage is not None or limit is None or count_tokens(answer.text) <= limit:
        return answer
    return replace(answer, text=answer.text[: limit * CHARACTERS_PER_TOKEN], finish="length")
