"""What a service's error responses and a broken connection mean: one named fault for each."""

import json
import math
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ..errors import MissingRequirement
from ..schemas.canonical import Json
from .chat import TRANSIENT, CallFault, ChatRequest, FaultKind
from .keys import Redactor, expand
from .options import ModelOptions
from .spec import ModelSpec

if TYPE_CHECKING:
    import httpx2


# -- The HTTP client that the SDKs are given: proxy, no redirects, and bodies of a bounded size

LONGEST_BODY = 4 * 1024 * 1024
"""Most bytes of a response that are read."""

LONGEST_PACKED_BODY = 64 * 1024
"""The same for a compressed one, which nobody asked for and which may unpack to a thousand times more."""

GRACE = 30.0
"""Seconds that the SDK waits longer than the client, so that the client's timeout is the one that counts."""

_CONNECT = 30.0
_KEEP_ALIVE = 20.0


class BodyTooLong(Exception):
    """A response has more bytes than are read.

    Attributes:
        most: how many are read.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class BodyLost(Exception):
    """The connection ended, or brought something else than HTTP, inside a response."""


def http_client(
    spec: ModelSpec, options: ModelOptions, redactor: Redactor, longest: int = LONGEST_BODY
) -> "httpx2.AsyncClient":
    """Return an HTTP client for one model.

    It follows no redirects: some headers that carry keys would be sent to wherever they lead.

    ``longest``: most bytes of a response that are read.
    """
    import httpx2

    class _Bounded(httpx2.AsyncByteStream):
        """A response's stream that ends with an error beyond a number of bytes."""

        def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
            self._stream = stream
            self._most = self._left = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._stream:
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise BodyTooLong(self._most)
                    yield chunk
            except httpx2.TimeoutException:
                raise
            except httpx2.TransportError as error:
                raise BodyLost(str(error)) from error

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity") != "identity"
        response.stream = _Bounded(
            response.stream,  # type: ignore[arg-type]  # the stream of an asynchronous client is of this kind
            LONGEST_PACKED_BODY if packed else longest,
        )

    try:
        return httpx2.AsyncClient(
            proxy=_proxy(spec, options, redactor),
            trust_env=not spec.is_local,  # a proxy cannot reach this machine
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(options.call_timeout + GRACE, connect=_CONNECT, pool=None),
            limits=httpx2.Limits(
                max_connections=None,
                max_keepalive_connections=options.concurrency,
                keepalive_expiry=_KEEP_ALIVE,
            ),
            event_hooks={"response": [bound]},
        )
    except ImportError as error:
        raise MissingRequirement(
            f'[models."{spec}"] proxy', what=f"such a proxy needs a library that is not installed ({error})",
            fix="pip install socksio, or use an http proxy",
        ) from error  # fmt: skip


def headers_of(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> dict[str, str]:
    """Return the extra headers of a model with their variables filled in."""
    return {
        name: expand(value, f'[models."{spec}"] headers.{name}', redactor)
        for name, value in options.headers.items()
    }


def headers_not_ours(variable: str, key: str, omit: object) -> dict[str, Any]:
    """Return what undoes the headers that an SDK takes from an environment variable for every request.

    They may hold secrets that the redactor does not know, and would go to whoever serves the model.
    """
    lines = os.environ.get(variable, "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    return {name: f"Bearer {key}" if name.lower() == "authorization" else omit for name in names}


def _proxy(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> str | None:
    if options.proxy is None:
        # The HTTP library takes it from the environment.
        from urllib.request import getproxies_environment

        for address in getproxies_environment().values():
            _remember(address, redactor)
        return None
    address = expand(options.proxy, f'[models."{spec}"] proxy', redactor)
    _remember(address, redactor)
    return address


def _remember(address: str, redactor: Redactor) -> None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    for secret in (parts.password, unquote(parts.password or "")):
        if secret:
            redactor.add(secret)
    if parts.username and parts.password:
        redactor.add(f"{unquote(parts.username)}:{unquote(parts.password)}")
    elif parts.username:  # alone it may be a token
        redactor.add(unquote(parts.username))


# --

LONGEST_MESSAGE = 500
LONGEST_RETRY_AFTER = 3600.0

NO_MONEY = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error")
)
FILTERED = frozenset(
    (
        *("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked"),
        *("data_inspection_failed", "sensitive_words_detected", "guardrail_intervened", "1301"),
    )
)
BROKEN_OFF = frozenset(
    (
        *("error", "abort", "aborted", "cancelled", "canceled", "timeout", "network_error"),
        "insufficient_system_resource",
    )
)
"""How a choice ends that was not written to its end."""
_NO_MONEY_TEXT = re.compile(r"credit balance|billing (?:to be enabled|is (?:not|disabled))|payment", re.I)
_BAD_KEY_TEXT = re.compile(r"api.?key.{0,40}(?:not valid|invalid|expired)|API_KEY_INVALID", re.I | re.S)
_FILTERED_TEXT = re.compile(
    r"content.?(?:filter|polic|management policy|moderation|safety|violat|exists risk|inspection)"
    r"|(?:usage|safety|acceptable.use|community|content).?polic|violat\w*.{0,60}(?:polic|terms)|\bguidelines?\b"
    r"|moderation|\bflagged\b|inappropriate|data.?inspection|inspection.{0,20}fail|considered high risk"
    r"|safety.?(?:system|check|filter|setting|reason)|guardrail"
    r"|(?:unsafe|harmful|prohibited|sensitive|explicit|nsfw).{0,20}(?:content|words?\b|material|prompt|input)"
    r"|sensitive.?content|blocked.{0,30}(?:filter|safety)|censored|敏感|违规|审核|不安全",
    re.I | re.S,
)
_TOO_LONG_TEXT = re.compile(
    r"context.?(?:length|window|size)|(?:prompt|input|request|messages?) (?:is|are) too (?:long|large)"
    r"|token count.{0,40}exceeds|too many (?:input )?tokens|exceeds? the (?:maximum|model)"
    r"|tokens.{0,60}must be <=|exceeds \S+ \S+ maximum",
    re.I | re.S,
)
_REFUSED_SETTING = re.compile(
    r"response_?format|json.?schema|json.?mode|structured.?output|output_(?:config|format)|tool_choice"
    r"|\btools?\b|guided|grammar|temperature|\bseed\b|top_p|max_(?:completion_|output_)?tokens", re.I,
)  # fmt: skip
_UNSUPPORTED_TEXT = re.compile(
    r"unsupported|not support(?:ed)?|unknown (?:name|field|parameter)|unrecogni[sz]ed"
    r"|not permitted|deprecated|invalid schema|not enabled"
    r"|must be 'json_schema'|one of the allowed values", re.I,
)  # fmt: skip
_GRAMMAR_TEXT = re.compile(
    r"(?:pars|compil|initiali[sz]|convert|invalid|fail|unexpected|empty|build).{0,60}\b(?:grammar|samplers?)\b"
    r"|grammar.{0,60}(?:fail|invalid|error)|schema conversion failed|unrecogni[sz]ed schema",
    re.I | re.S,
)
"""What llama.cpp and others say whose grammar cannot hold a schema."""

_SAID: Mapping[str, int] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429,
    "resource_exhausted": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
"""Word for an error, in a body that names no number -> status of HTTP with which it comes else."""
_MINIMAX = {1001: 504, 1002: 429, 1004: 401, 1008: 402, 1026: 400, 1027: 400, 1039: 413, 2013: 400}
"""Status in a body of MiniMax's, which always come with status 200."""

_KINDS: dict[int, FaultKind] = {
    405: "not_an_api",
    408: "timeout",
    409: "server_error",
    425: "server_error",
    429: "rate_limited",
    498: "server_error",
    501: "not_an_api",
    505: "not_an_api",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error response, read."""

    status: int  # HTTP status
    codes: frozenset[str]  # the words by which the service names the problem, in lower case
    text: str  # its message, as it came
    details: tuple[Mapping[str, Any], ...] = ()  # further details, where the service gives a list of them
    page: bool = False  # whether the body is a web page
    # whether a model was at work already: then neither key nor address nor settings are wrong
    begun: bool = False

    @property
    def filtered(self) -> bool:
        """Whether the service's filter stopped the prompt, or the reply."""
        words = " ".join((*self.codes, self.text))
        return self.status in (400, 403, 422, 451) and bool(
            self.codes & FILTERED or (_FILTERED_TEXT.search(words) and not self.page)
        )


def read_problem(status: int, content_type: str, body: bytes) -> Problem:
    """Return what an error response says, in any of the services' forms."""
    page = is_page(content_type, body)
    document = None if page else _json_object(body)
    if document is None:
        text = body[:4000].decode("utf-8", "replace")
        return Problem(status, frozenset(), _title(text) if page else text, page=page)
    return problem_of(status, document)


def problem_of(status: int, document: Mapping[str, Any]) -> Problem:
    """Return what the JSON of an error says: the forms of OpenAI, Google, Anthropic, FastAPI and others."""
    given = document.get("error", document)
    # Some have a text for the error, and what it is about beside it.
    error = given if isinstance(given, Mapping) else document
    words = (error.get(key) for key in ("message", "error", "detail"))
    texts = [word for word in words if isinstance(word, str) and word]
    codes = {error[key].lower() for key in ("code", "type", "status") if isinstance(error.get(key), str)}
    inner, about = error.get("innererror"), error.get("metadata")
    if isinstance(inner, Mapping) and isinstance(inner.get("code"), str):
        codes.add(inner["code"].lower())
    if isinstance(about, Mapping):  # a router's: why it was flagged, and what the service behind it said
        if about.get("reasons"):
            codes.add("content_filter")
        texts += [about["raw"][:2000]] if isinstance(about.get("raw"), str) else []
    details = error.get("details")
    entries = tuple(e for e in details if isinstance(e, Mapping)) if isinstance(details, list) else ()
    codes.update(entry["reason"].lower() for entry in entries if isinstance(entry.get("reason"), str))
    shown = "; ".join(dict.fromkeys(texts)) or json.dumps(document)[:4000]
    param = error.get("param")
    return Problem(
        status, frozenset(codes), f"{shown} ({param})" if param and isinstance(param, str) else shown, entries
    )


def error_in(document: Mapping[str, Any]) -> Problem | None:
    """Return the error that a body of status 200 tells of; None where it tells of none.

    Gateways report errors of a service behind them so, and a choice that broke off has one, or ends with a
    word that says so.
    """
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    choice = choice if isinstance(choice, Mapping) else {}
    finish, message = choice.get("finish_reason"), choice.get("message")
    for holder in (document, choice, message if isinstance(message, Mapping) else {}):
        if isinstance(holder.get("error"), dict | str) and holder["error"]:
            return _with_status(holder, begun=bool(choice))
    if isinstance(finish, str) and finish.lower() in BROKEN_OFF:
        return Problem(500, frozenset(), f"the reply broke off (finish_reason {finish!r})", begun=True)
    said = document.get("base_resp")
    if isinstance(said, Mapping) and type(said.get("status_code")) is int and said["status_code"]:
        status, text = _MINIMAX.get(said["status_code"], 500), str(said.get("status_msg"))
        filtered = frozenset(("content_filter",)) if said["status_code"] in (1026, 1027) else frozenset[str]()
        return Problem(status, filtered, text)
    if document.get("object") == "error" or document.get("success") is False:
        return _with_status(document)
    return None


def _with_status(holder: Mapping[str, Any], *, begun: bool = False) -> Problem:
    """Return the problem of an error without a status of HTTP, with the one that it names or means."""
    problem = replace(problem_of(400, holder), begun=begun)
    error = holder.get("error", holder)
    about = error if isinstance(error, Mapping) else holder
    for name in ("code", "status", "status_code"):
        number = about.get(name)
        if isinstance(number, str) and number.isdecimal():
            number = int(number)
        if type(number) is int and 400 <= number < 600:
            return replace(problem, status=number)
    if problem.filtered:
        return problem
    known = (_SAID[code] for code in sorted(problem.codes) if code in _SAID)
    return replace(problem, status=next(known, 500))


def is_page(content_type: str, body: bytes) -> bool:
    """Return whether a body is a web page or other markup."""
    return "html" in content_type.lower() or body[:200].lstrip().startswith(b"<")


def kind_of(problem: Problem) -> FaultKind:
    kind = _kind_of(problem)
    return kind if not problem.begun or kind in TRANSIENT or kind == "too_long" else "server_error"


def _kind_of(problem: Problem) -> FaultKind:
    status = problem.status
    if status == 413:  # whoever says so, and however
        return "too_long"
    if status < 400 or (problem.page and status < 500 and status not in (408, 429)):
        return "not_an_api"
    if status == 402 or _no_money(problem):
        return "no_quota"
    if status in (400, 422, 500) and _GRAMMAR_TEXT.search(problem.text) and not problem.page:
        return "unsupported"
    rest = "server_error" if status >= 500 else _kind_of_client_error(problem)
    return _KINDS.get(status, rest)


def _kind_of_client_error(problem: Problem) -> FaultKind:
    status, text = problem.status, problem.text
    if "model_not_found" in problem.codes or status == 404:
        return "no_such_model"
    if status in (401, 403) or "failed_precondition" in problem.codes or _BAD_KEY_TEXT.search(text):
        return "key_refused"
    if "context_length_exceeded" in problem.codes or _TOO_LONG_TEXT.search(text):
        return "too_long"
    if problem.codes & {"unsupported_parameter", "unsupported_value"}:
        return "unsupported"
    if _UNSUPPORTED_TEXT.search(text) and (_REFUSED_SETTING.search(text) or "parameter" in text):
        return "unsupported"
    return "bad_request"


def _no_money(problem: Problem) -> bool:
    if problem.status not in (400, 403, 429) or problem.page:
        return False
    if problem.codes & NO_MONEY:
        return True
    if problem.status != 429:
        return bool(_NO_MONEY_TEXT.search(problem.text))
    # At Google the words of a daily limit and of a short one are the same; the name of the quota tells.
    lists = [entry.get("violations") for entry in problem.details]
    violations = [v for some in lists if isinstance(some, list) for v in some if isinstance(v, Mapping)]
    return any("PerDay" in str(v.get("quotaId")) or v.get("quotaValue") == "0" for v in violations)


def retry_after(headers: Mapping[str, str], problem: Problem) -> float | None:
    """Return how many seconds a service asks to wait, 0 to 3600; None where it does not say.

    A date is read against the response's own Date header, so that no wrong clock matters.
    """
    seconds: float | None = None
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" in headers:
            seconds = _seconds(headers["retry-after"], headers.get("date"))
        else:
            delays = (entry.get("retryDelay") for entry in problem.details)
            delay = next((text for text in delays if isinstance(text, str)), None)
            seconds = None if delay is None else float(delay.removesuffix("s"))
    except (ValueError, TypeError, OverflowError):
        return None
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _seconds(text: str, now: str | None) -> float | None:
    try:
        return float(text)
    except ValueError:
        if now is None:
            return None
        return (parsedate_to_datetime(text) - parsedate_to_datetime(now)).total_seconds()


def explain(kind: FaultKind, problem: Problem, request: ChatRequest) -> str:
    """Return what happened, and what a user can do about it where that is not obvious."""
    said = f"status {problem.status}: {problem.text.strip() or 'no text'}"
    if kind == "not_an_api":
        return f"the address answers with something else than the API ({said})"
    if kind == "no_such_model":
        return f"the service knows no such model, or the address is wrong ({said})"
    if kind == "unsupported":
        return f'{_setting_for(problem.text, request)} in [models."{request.model}"]: {said}'
    if kind == "too_long" and problem.status == 413:
        return (
            f"the request is larger than the service, or a proxy before it, takes{_size(request)}: raise that"
            f" limit (nginx: client_max_body_size), or send fewer or smaller pictures ({said})"
        )
    return said


def _size(request: ChatRequest) -> str:
    """Return about how large a request is, in words; nothing where it is not at hand."""
    parts = [part for message in request.messages for part in message.parts]
    size = sum(
        len(part.encode("utf-8", "replace")) if isinstance(part, str) else len(part.data) * 4 // 3
        for part in parts
    )
    return f" (about {size:,} bytes)" if size else ""


def _setting_for(text: str, request: ChatRequest) -> str:
    for name in ("temperature", "seed"):
        if name in text.lower() and getattr(request, name) is not None:
            return f'set unsupported = ["{name}"]'
    if request.schema is not None and request.structured != "prompt":
        other = "json" if request.structured == "schema" else "prompt"
        return f'set structured = "{other}"'
    return "set unsupported or extra"


def connection_fault(error: BaseException, seconds: float) -> CallFault:
    """Return the fault that an exception of the SDK or of its HTTP client means; its text is not redacted."""
    import httpx2

    known = (BodyLost, BodyTooLong, httpx2.RequestError)
    cause = error
    while not isinstance(cause, known) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = f"{type(cause).__name__}: {cause}".rstrip(": ")
    most = cause.most if isinstance(cause, BodyTooLong) else 0
    cases: tuple[tuple[tuple[type[BaseException], ...], FaultKind, str, bool], ...] = (
        ((BodyTooLong,), "too_long", f"the reply has more than {most:,} bytes", True),
        ((BodyLost, httpx2.DecodingError), "broken_reply", f"the reply ended early ({cause})", True),
        (
            (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError),
            "connection",
            f"cannot connect ({text})",
            False,
        ),
        ((httpx2.UnsupportedProtocol,), "not_an_api", text, False),
        ((httpx2.TimeoutException,), "timeout", f"no answer within {seconds:g} s ({text})", True),
        ((httpx2.TransportError, OSError), "connection", f"the connection was lost ({text})", True),
        ((BaseException,), "bad_request", f"the request cannot be sent ({text})", False),
    )
    kind, message, paid = next(case[1:] for case in cases if isinstance(cause, case[0]))
    if "CERTIFICATE_VERIFY_FAILED" in message:
        kind = "not_an_api"  # it will not pass by itself
    return CallFault(kind, message, maybe_paid=paid)


def one_line(text: str) -> str:
    """Return a text on one line, printable, of at most 500 characters."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * LONGEST_MESSAGE])
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST_MESSAGE else f"{shown[: LONGEST_MESSAGE - 3]}..."


def _json_object(body: bytes) -> dict[str, Json] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    return document if isinstance(document, dict) else None


def _title(page: str) -> str:
    match = re.search(r"<title[^>]*>(.{0,200}?)</title>", page, re.I | re.S)
    return f"web page {match[1].strip()!r}" if match else "a web page"
