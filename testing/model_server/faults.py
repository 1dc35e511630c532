"""What can go wrong at a model service, one small class each.

Three kinds: an error instead of an answer (:class:`ErrorFault`), an answer that says something unusable
(:class:`ContentFault`), and a sound answer that arrives badly or late (:class:`DeliveryFault`).
"""

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from ...schemas.canonical import Json
from .answers import Answer, Given, Problem, Response, Where, json_text
from .asked import Asked


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault."""

    # what is spoiled or delayed when a handler returns the fault; where the fault comes from a plan, it is
    # the handler's answer. By default the smallest reply that satisfies the schema.
    answer: Given | None = field(default=None, hash=False, repr=False)
    # whether it is bound to the question, so that the same question meets it whenever it is asked
    content: ClassVar[bool] = False

    def deliver(self, response: Response) -> Response:
        """Return the response as it is delivered."""
        return response


class ErrorFault(Fault):
    """The service reports an error; no model is asked."""

    code: ClassVar[str] = "bad_request"  # see ``Problem.code``

    def problem(self, asked: Asked) -> Problem:
        """Return the error: with its message, status and wait where it has its own, else the service's."""
        own: dict[str, Any] = {
            name: getattr(self, name, None) for name in ("message", "status", "retry_after")
        }
        return Problem(self.code, **own)


class ContentFault(Fault):
    """The service answers, and the answer is of no use."""

    content: ClassVar[bool] = True

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        """Return what is answered instead."""
        raise NotImplementedError


class DeliveryFault(Fault):
    """The service answers well, and the answer arrives badly."""


@dataclass(frozen=True)
class RateLimited(ErrorFault):
    """Status 429."""

    retry_after: float | None = None  # seconds for the Retry-After header; None sends none
    as_date: bool = False  # whether the header holds a date instead of seconds
    clock_error: float = 0.0  # seconds by which the service's clock, its Date header, is wrong
    code: ClassVar[str] = "rate_limited"

    def deliver(self, response: Response) -> Response:
        if not self.as_date:
            return replace(response, clock_error=self.clock_error)
        headers = {name: value for name, value in response.headers.items() if name != "retry-after"}
        return replace(response, headers=headers, clock_error=self.clock_error, retry_date=self.retry_after)


@dataclass(frozen=True)
class ServerError(ErrorFault):
    """Status 500, 502, 503, 504 or 529, with Retry-After if given."""

    status: int = 500
    retry_after: float | None = None
    code: ClassVar[str] = "server_error"


@dataclass(frozen=True)
class Unauthorized(ErrorFault):
    """The key is refused, in the service's own way unless a status is given (Gemini's own way is a 400)."""

    status: int | None = None

    def problem(self, asked: Asked) -> Problem:
        return Problem("forbidden" if self.status == 403 else "unauthorized", status=self.status)


@dataclass(frozen=True)
class NoQuota(ErrorFault):
    """No money or quota is left; reported in the service's own way unless a status such as 402 is given."""

    status: int | None = None
    code: ClassVar[str] = "no_quota"


@dataclass(frozen=True)
class NoSuchModel(ErrorFault):
    """Status 404: the model does not exist; ``message`` says what there is instead."""

    message: str | None = None

    def problem(self, asked: Asked) -> Problem:
        usual = f"The model `{asked.model}` does not exist or you cannot use it."
        return Problem("no_such_model", self.message or usual)


@dataclass(frozen=True)
class Unsupported(ErrorFault):
    """Status 400 for requests that carry a parameter (``temperature``, ``seed``); others are answered."""

    parameter: str = "temperature"

    def problem(self, asked: Asked) -> Problem:
        return Problem("unsupported", f"Unsupported parameter: '{self.parameter}' is not supported.")


@dataclass(frozen=True)
class NoStructuredOutput(ErrorFault):
    """Status 400 for requests that want a schema, or with ``json_too`` plain JSON; others are answered."""

    json_too: bool = False

    def problem(self, asked: Asked) -> Problem:
        words = {
            "openai": "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
            "google": "JSON mode is not enabled for this model: response_json_schema is not supported.",
            "anthropic": "output_config.format: structured outputs (json_schema) are not supported.",
        }
        return Problem("unsupported", words.get(asked.protocol, words["openai"]))


@dataclass(frozen=True)
class TooLong(ErrorFault):
    """The context length is exceeded; with ``limit``, only by requests of more tokens than that."""

    limit: int | None = None
    status: int | None = None

    def problem(self, asked: Asked) -> Problem:
        most, found = self.limit or 8192, asked.input_tokens
        words = {
            "openai": f"This model's maximum context length is {most} tokens, you sent {found}.",
            "google": f"The input token count ({found}) exceeds the maximum number of tokens ({most}).",
            "anthropic": f"prompt is too long: {found} tokens > {most} maximum",
        }
        return Problem("too_long", words.get(asked.protocol, words["openai"]), self.status)


@dataclass(frozen=True)
class BadRequestFault(ErrorFault):
    """Another error of status 400, or of the status given."""

    message: str = "The request is not valid."
    status: int = 400


@dataclass(frozen=True)
class EchoSecrets(ErrorFault):
    """The caller's key comes back in the text of an error."""

    status: int = 401

    def problem(self, asked: Asked) -> Problem:
        return Problem(
            "unauthorized", f"Incorrect API key provided: {', '.join(asked.secrets)}.", self.status
        )


@dataclass(frozen=True)
class EchoSecretsInReply(ContentFault):
    """The caller's key comes back in the first free string of the answer and as the name of the model."""

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        key = ", ".join(asked.secrets)
        if answer.picture is not None:
            return replace(answer, picture=replace(answer.picture, revised_prompt=key), model=key)
        text = _first_string(answer.text, asked.schema or {}, lambda value: f"{key} {value}")
        return replace(answer, text=text, model=key)


@dataclass(frozen=True)
class Refused(ContentFault):
    """The model refuses: in the field for refusals where the format has one, else as text."""

    text: str = "I'm sorry, but I can't help with that."

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return Answer(refusal=self.text)


@dataclass(frozen=True)
class SafetyBlock(ContentFault):
    """A filter stops the prompt or the reply."""

    where: Where = "reply"
    reason: str = "SAFETY"

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return Answer(blocked=self.where, block_reason=self.reason)


@dataclass(frozen=True)
class ContentFilter(ErrorFault):
    """A filter stops the prompt with an error of status 400."""

    content: ClassVar[bool] = True
    code: ClassVar[str] = "content_filter"


@dataclass(frozen=True)
class EmptyChoices(ContentFault):
    """An answer without any choice or candidate."""

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return replace(answer, text="", picture=None, choices=0)


@dataclass(frozen=True)
class EmptyText(ContentFault):
    """An answer whose text is empty."""

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return replace(answer, text="", picture=None)


@dataclass(frozen=True)
class TruncatedJson(ContentFault):
    """The text stops in the middle; the service says so, or with ``said=False`` claims a regular end.

    Where a picture is wanted, there is none.
    """

    at: float = 0.6
    said: bool = True

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        text = answer.text[: int(len(answer.text) * self.at)]
        return replace(answer, text=text, picture=None, finish="length" if self.said else "stop")


@dataclass(frozen=True)
class MalformedJson(ContentFault):
    """JSON with one comma too many, single quotes, the end missing, or a list around all."""

    kind: Literal["commas", "quotes", "unclosed", "wrong_type"] = "quotes"

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        if self.kind == "commas":
            return replace(answer, text=re.sub(r"([}\]])\s*$", r",\1", answer.text))
        if self.kind == "unclosed":
            return replace(answer, text=answer.text.rstrip()[:-1])
        if self.kind == "wrong_type":
            return replace(answer, text=json_text([answer.text]))
        return replace(answer, text=answer.text.replace('"', "'"))


@dataclass(frozen=True)
class Prose(ContentFault):
    """Sentences instead of JSON or of a picture, or with ``around`` sentences before and after it."""

    text: str = "Certainly! This is a lovely story, and I think that its moral is clear."
    around: bool = False

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        if not self.around:
            return replace(answer, text=self.text, picture=None)
        return replace(answer, text=f"{self.text}\n\n{answer.text}\n\nI hope this helps!")


@dataclass(frozen=True)
class Fenced(ContentFault):
    """The JSON stands in a code fence."""

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return replace(answer, text=f"```json\n{answer.text}\n```")


@dataclass(frozen=True)
class Thinking(ContentFault):
    """Thinking stands in the text before the JSON, with marks that are closed or not."""

    closed: bool = True
    text: str = 'First I look at {"the": "story"} as a whole.'

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return replace(
            answer, text=f"<think>\n{self.text}\n{'</think>' if self.closed else ''}\n{answer.text}"
        )


@dataclass(frozen=True)
class WrongLanguage(ContentFault):
    """All free strings of the JSON are in Cyrillic letters; members of enumerations stay."""

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        return replace(answer, text=_with_strings(answer.text, asked.schema or {}, _cyrillic))


@dataclass(frozen=True)
class Huge(ContentFault):
    """The first free string of the JSON, the text, or the picture makes the reply so many bytes long."""

    size: int = 5_000_000

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        if answer.picture is not None:
            data = answer.picture.data.ljust(self.size, b"\0")
            return replace(answer, picture=replace(answer.picture, data=data))
        more = " and so on" * (1 + max(0, self.size - len(answer.text)) // 10)
        grown = _first_string(answer.text, asked.schema or {}, lambda value: value + more)
        return replace(answer, text=grown.ljust(self.size))


@dataclass(frozen=True)
class CorruptPicture(ContentFault):
    """The file of a picture or video is cut, or is something else: random bytes, or words."""

    how: Literal["cut", "noise", "words"] = "cut"  # what is wrong with it
    at: float = 0.5  # share of the file that is kept where it is cut

    def alter(self, asked: Asked, answer: Answer) -> Answer:
        if answer.picture is None:
            return answer
        whole = answer.picture.data
        data = {
            "cut": whole[: int(len(whole) * self.at)],
            "noise": b"".join(hashlib.sha256(whole[:64] + bytes([n])).digest() for n in range(16)),
            "words": b"the picture could not be stored",
        }[self.how]
        return replace(answer, picture=replace(answer.picture, data=data))


@dataclass(frozen=True)
class Slow(DeliveryFault):
    """The answer comes so many seconds later."""

    seconds: float = 1.0

    def deliver(self, response: Response) -> Response:
        return replace(response, delay=response.delay + self.seconds)


@dataclass(frozen=True)
class Dripping(DeliveryFault):
    """The answer comes a few bytes at a time with a pause after each, so that no single read takes long."""

    size: int = 16
    pause: float = 0.05

    def deliver(self, response: Response) -> Response:
        return replace(response, piece=self.size, pause=self.pause)


@dataclass(frozen=True)
class Dropped(DeliveryFault):
    """The connection is reset after so many bytes of the response; 0 sends nothing."""

    after: int = 0

    def deliver(self, response: Response) -> Response:
        return replace(response, keep=self.after)


@dataclass(frozen=True)
class TruncatedBody(DeliveryFault):
    """The body is cut: the connection closes early, or with ``announced`` the head agrees with the cut."""

    at: float = 0.5
    announced: bool = False

    def deliver(self, response: Response) -> Response:
        cut = response.body[: int(len(response.body) * self.at)]
        return replace(response, body=cut, announced=len(cut) if self.announced else len(response.body))


@dataclass(frozen=True)
class HtmlPage(DeliveryFault):
    """A web page, as a wrong base URL, a login or a proxy gives one."""

    status: int = 200

    def deliver(self, response: Response) -> Response:
        page = (
            b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>"
        )
        return replace(response, status=self.status, body=page, headers={"content-type": "text/html"})


@dataclass(frozen=True)
class Misreported(DeliveryFault):
    """What was asked for is done, and the answer is an error all the same."""

    status: int = 500

    def deliver(self, response: Response) -> Response:
        body = b'{"error": {"message": "An internal error has occurred.", "type": "server_error"}}'
        return replace(response, status=self.status, body=body, headers={})


@dataclass(frozen=True)
class NotJson(DeliveryFault):
    """Status 200 and a body that is no JSON object: by default a JSON string."""

    body: bytes = b'"ok"'

    def deliver(self, response: Response) -> Response:
        return replace(response, body=self.body)


@dataclass(frozen=True)
class OddUsage(DeliveryFault):
    """A sound answer whose count of tokens is missing or cannot be."""

    # which one; None for all of the usage
    count: Literal["input", "output", "cached", "cache_write", "thinking"] | None = None
    # what stands there instead, such as a text, NaN, -1 or a billion
    value: Json = field(default=None, hash=False)
    missing: bool = False  # whether it is left out

    def deliver(self, response: Response) -> Response:
        document = json.loads(response.body)
        for usage in ("usage", "usageMetadata"):
            places = [document] if self.count is None else [document.get(usage)]
            names = (usage,) if self.count is None else _COUNTS[self.count]
            places += [entry for place in places if isinstance(place, dict) for entry in place.values()]
            for place in (entry for entry in places if isinstance(entry, dict)):
                for name in (name for name in names if name in place):
                    place[name] = self.value
                    if self.missing:
                        del place[name]
        return replace(response, body=json.dumps(document, ensure_ascii=False).encode())


def concerns(fault: Fault, asked: Asked) -> bool:
    """Return whether a fault strikes this request at all; some strike only requests of a kind."""
    if isinstance(fault, OddUsage):
        return asked.step != "fetch"
    if isinstance(fault, CorruptPicture):
        return asked.wants in ("image", "video")
    if isinstance(fault, NoStructuredOutput):
        return asked.structured in (("schema", "tool", "json") if fault.json_too else ("schema", "tool"))
    if isinstance(fault, Unsupported):
        return fault.parameter in asked.params or fault.parameter in asked.body
    if isinstance(fault, TooLong):
        return fault.limit is None or asked.input_tokens > fault.limit
    return True


def known_faults() -> Mapping[str, type[Fault]]:
    """Return the faults under the names that files use, such as ``rate_limited``."""
    bases = {Fault, ErrorFault, ContentFault, DeliveryFault}
    faults: dict[str, Any] = {}
    for value in globals().values():
        if isinstance(value, type) and issubclass(value, Fault) and value not in bases:
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", value.__name__).lower()
            faults[name.removesuffix("_fault")] = value
    return faults


# How the text of an answer is spoiled.

_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абкдефгхижклмнопярстуввхйз"
_SCRIPT = str.maketrans(_LATIN + _LATIN.upper(), _CYRILLIC + _CYRILLIC.upper())


_COUNTS: Mapping[str, tuple[str, ...]] = {
    "input": ("prompt_tokens", "promptTokenCount", "input_tokens"),
    "output": ("completion_tokens", "candidatesTokenCount", "output_tokens"),
    "cached": ("cached_tokens", "cachedContentTokenCount", "cache_read_input_tokens"),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens"),
    "thinking": ("reasoning_tokens", "thoughtsTokenCount", "thinking_tokens"),
}
"""Counts of tokens, and what the services call them."""


def _cyrillic(text: str) -> str:
    changed = text.translate(_SCRIPT)
    return changed if changed != text or not text.strip() else "совсем другие слова"


def _first_string(text: str, schema: Mapping[str, Any], change: Callable[[str], str]) -> str:
    turns = itertools.count()
    return _with_strings(text, schema, lambda value: change(value) if next(turns) == 0 else value)


def _with_strings(text: str, schema: Mapping[str, Any], change: Callable[[str], str]) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return change(text)
    return json_text(_walk(value, schema, change))


def _walk(value: Json, schema: Json, change: Callable[[str], str]) -> Json:
    about = _branch(value, schema if isinstance(schema, Mapping) else {})
    if isinstance(value, dict):
        members = about.get("properties", {})
        return {name: _walk(entry, members.get(name), change) for name, entry in value.items()}
    if isinstance(value, list):
        return [_walk(entry, about.get("items"), change) for entry in value]
    free = isinstance(value, str) and "enum" not in about and "const" not in about
    return change(value) if free else value


def _branch(value: Json, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the alternative of a schema that is meant for a value, as far as its type tells."""
    names: dict[type, str] = {str: "string", dict: "object", list: "array"}
    for entry in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kinds = entry.get("type")
        if value in entry.get("enum", ()) or names.get(type(value)) in (
            kinds if isinstance(kinds, list) else [kinds]
        ):
            found: Mapping[str, Any] = entry
            return found
    return schema
