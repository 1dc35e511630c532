"""Adapter for Google's models that make videos, through its interactions.

A video is made in the background: one request creates it, others ask how far it is, one fetches the file.
Only the first can be charged, and it is made once: where asking or fetching fails, that is tried again until
``call_timeout`` is over. What was created and not read is remembered by the key of its request, so that a
call that ran out of time and is repeated waits for the same video and creates no other.

The requests are sent without the SDK: its types lose members that they do not know, and its download takes an
address on another host for a name. A test compares what is sent with what the SDK sends.
"""

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from ...schemas.canonical import Json
from ..chat import TRANSIENT, CallFault, ChatRequest, Image, Part, Reply, ReplyOutcome, Usage, base64_text
from ..edge import Service, added, text_or_none, tokens, usage_or_none
from ..faults import Problem, headers_of, http_client, read_problem
from ..google_chat import (
    API_VERSION,
    BLOCKED,
    GOOGLE,
    close_google,
    google_client,
    google_usage,
    pick,
    post_contents,
    read_reply,
)
from ..keys import Redactor, find_key
from ..limits import Clock, SystemClock
from ..options import ModelOptions
from ..spec import ModelSpec
from .request import (
    LONGEST_PICTURE,
    LONGEST_VIDEO,
    NO_FILE,
    Choice,
    Generated,
    PictureEdge,
    PictureRequest,
    PictureService,
    bytes_of,
    extras,
    file_of,
    not_taken,
)

# -- Adapter for Google's models that answer with pictures, through generateContent of google-genai
#
# A size is sent as the aspect ratio that it has and, from 1,536 pixels on, as ``2K`` or ``4K``: pixels cannot
# be chosen. What else a model takes goes into ``extra``, which is merged into the request's body.

IMAGE_RATIOS = (
    *("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"),
    *("1:4", "4:1", "1:8", "8:1"),
)
"""Aspect ratios that the service knows."""

_NEAR = 0.02
_SIZES = ((3072, "4K"), (1536, "2K"))


def aspect_ratio(width: int | None, height: int | None, known: tuple[str, ...] = IMAGE_RATIOS) -> str | None:
    """Return the known aspect ratio that a size has, within 2 %; None where it has none."""
    if not width or not height:
        return None
    for ratio in known:
        across, _, down = ratio.partition(":")
        if abs(width * int(down) / (height * int(across)) - 1) <= _NEAR:
            return ratio
    return None


def image_size(width: int, height: int) -> str | None:
    """Return the service's word for about so many pixels; None for the usual, which is about 1024 x 1024."""
    side = math.sqrt(width * height)
    return next((word for least, word in _SIZES if side >= least), None)


class GoogleImages(PictureService):
    """A Gemini model that answers with a picture; what it takes are references, a seed and aspect ratios."""

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        from google.genai import types

        super().__init__(spec, options, redactor)
        self._types = types
        self._client, self._http = google_client(spec, options, redactor, LONGEST_PICTURE)

    async def close(self) -> None:
        await close_google(self._client, self._http)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        types, picture, more = self._types, PictureRequest.of(request), extras(request)
        ratio = aspect_ratio(picture.width, picture.height)
        shape: dict[str, str] = {}
        if ratio is not None and picture.width and picture.height:
            size = image_size(picture.width, picture.height)
            shape = {"aspect_ratio": ratio, **({} if size is None else {"image_size": size})}
        config = types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"],
            image_config=types.ImageConfig(**shape) if shape else None,
            seed=picture.seed,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
            should_return_http_response=True,
            http_options=types.HttpOptions(extra_body=more) if more else None,
        )
        asked: tuple[Part, ...] = (picture.prompt, *picture.references)
        parts = [self._part(part) for part in asked]
        return {
            "model": self._name,
            "contents": [types.Content(role="user", parts=parts)],
            "config": config,
        }

    def _part(self, part: Part) -> Any:  # noqa: ANN401 - SDK type
        if isinstance(part, Image):
            return self._types.Part.from_bytes(data=part.data, mime_type=part.media_type)
        return self._types.Part(text=part)

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        return await post_contents(self._client, body)

    def _read(
        self,
        request: ChatRequest,  # noqa: ARG002
        picture: PictureRequest,
        document: Mapping[str, Any],
    ) -> Reply | None:
        said = read_reply(document)
        if said is None:
            return None
        inline = _inline(document)
        usage = _image_usage(document, picture, is_empty=inline is None and not said.text)
        data = None if inline is None else bytes_of(inline.get("data"))
        if inline is None or data is None or said.finish in BLOCKED:
            outcome, detail = _without_picture(said)
            return replace(said, outcome=outcome, detail=detail, usage=usage)
        taken: list[Choice] = ["references", "seed"]
        if aspect_ratio(picture.width, picture.height) is not None:
            taken.append("size")
        made = Generated(
            file_of(data, text_or_none(pick(inline, "mimeType"))),
            seed=picture.seed,
            unsupported=not_taken(picture, taken),
        )
        return Reply("ok", made.packed(), None, said.finish, said.reported_model, usage)


def _inline(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first picture of the first candidate that is no draft; None where it has none."""
    candidates = document.get("candidates") or [{}]
    for part in (candidates[0].get("content") or {}).get("parts") or []:
        inline = pick(part, "inlineData")
        if isinstance(inline, Mapping) and not part.get("thought"):
            return inline
    return None


def _without_picture(said: Reply) -> tuple[ReplyOutcome, str | None]:
    """Return what a reply without a picture is, and why."""
    if said.outcome in ("blocked", "truncated"):
        return said.outcome, said.detail
    if said.text.strip():
        # It answers in words where it will not make the picture.
        return "refused", said.detail
    return "empty", said.detail or NO_FILE.format("picture")


def _image_usage(document: Mapping[str, Any], picture: PictureRequest, *, is_empty: bool) -> Usage | None:
    counts = pick(document, "usageMetadata")
    usage = google_usage(counts, is_empty=is_empty)
    if usage is None or not isinstance(counts, Mapping):
        return None
    seen, drawn = (_of_pictures(pick(counts, f"{name}TokensDetails")) for name in ("prompt", "candidates"))
    return replace(
        usage,
        image_input_tokens=seen if seen is not None or picture.references else 0,
        image_output_tokens=drawn if usage.output_tokens else 0,
    )


def _of_pictures(details: Json) -> int | None:
    """Return the tokens of pictures among the counts by modality; None where they are not told."""
    if not isinstance(details, list):
        return None
    counts = [
        tokens({"count": pick(entry, "tokenCount")}, "count")
        for entry in details
        if isinstance(entry, Mapping) and entry.get("modality") == "IMAGE"
    ]
    return None if None in counts else sum(count for count in counts if count is not None)


# -- The form of Google's interactions that make videos: what is sent, and what the state of one says

RATIOS = ("16:9", "9:16")
UNDER_WAY = frozenset(("in_progress", "queued"))
_RESOLUTIONS = ((2160, "4k"), (1080, "1080p"), (720, "720p"), (0, "360p"))
_STATUSES = (("exhausted", 429), ("internal", 500), ("unavailable", 503), ("deadline", 504))
_FILTERED = re.compile(r"safety|prohibited|policy|blocked|filter", re.IGNORECASE)


def resolution(width: int, height: int) -> str:
    """Return the service's word for the next lower number of lines that it knows."""
    return next(word for least, word in _RESOLUTIONS if min(width, height) >= least)


def creation(model: str, request: ChatRequest) -> dict[str, Any]:
    """Return the body of the request that creates a video."""
    picture = PictureRequest.of(request)
    wanted: dict[str, Json] = {"type": "video", "delivery": "uri"}
    ratio = aspect_ratio(picture.width, picture.height, RATIOS)
    if ratio is not None and picture.width and picture.height:
        wanted |= {"aspect_ratio": ratio, "resolution": resolution(picture.width, picture.height)}
    if picture.seconds is not None:
        wanted["duration"] = f"{picture.seconds:g}s"
    first = picture.first_frame
    # One picture cannot be told from another here: where a first frame is wanted, it is the only one.
    shown = picture.references if first is None else (first,)
    parts: tuple[Part, ...] = (picture.prompt, *shown)
    body: dict[str, Any] = {
        "model": model,
        "input": [{"type": "user_input", "content": [_content(part) for part in parts]}],
        "response_format": wanted,
        "background": True,
        "store": True,
    }
    config: dict[str, Json] = {} if picture.seed is None else {"seed": picture.seed}
    if shown:
        task = "reference_to_video" if first is None else "image_to_video"
        config["video_config"] = {"task": task}
    if config:
        body["generation_config"] = config
    return {**body, **extras(request)}


def _content(part: Part) -> dict[str, Json]:
    if isinstance(part, Image):
        return {"type": "image", "data": base64_text(part.data), "mime_type": part.media_type}
    return {"type": "text", "text": part}


def video_in(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the last video that an interaction gave, with its address or data; empty where it gave none."""
    given = document.get("output_video")
    if isinstance(given, Mapping):
        return given
    videos = [content for content in _contents(document) if content.get("type") == "video"]
    return videos[-1] if videos else {}


def _contents(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what the model put out, in order."""
    steps = document.get("steps")
    return [
        content
        for step in (steps if isinstance(steps, list) else [])
        if isinstance(step, Mapping) and step.get("type") == "model_output"
        for content in step.get("content") or []
        if isinstance(content, Mapping)
    ]


def problem_in(document: Mapping[str, Any]) -> Problem | None:
    """Return why an interaction that ended made no video, where it says so; status 0 where it names none."""
    errors = document.get("errors") or [document.get("error")]
    error = errors[0] if isinstance(errors, list) else errors
    if not isinstance(error, Mapping):
        return None
    code, text = str(error.get("code") or ""), text_or_none(error.get("message")) or "no reason is given"
    if _FILTERED.search(f"{code} {text}"):
        return Problem(400, frozenset(("content_filter",)), text)
    if code.isdecimal() and 400 <= int(code) < 600:
        return Problem(int(code), frozenset(), text)
    words = f"{code} {text}".lower()
    return Problem(next((status for word, status in _STATUSES if word in words), 0), frozenset(), text)


def read_video(picture: PictureRequest, data: bytes | None, document: Mapping[str, Any]) -> Reply:
    """Return the reply in an interaction that is over."""
    status, model = str(document["status"]), text_or_none(document.get("model"))
    usage, video = _usage(document.get("usage"), picture), video_in(document)
    data = data or bytes_of(video.get("data"))
    if data is None:
        outcome, text, detail = _without_video(document, status)
        return Reply(outcome, text, detail, status, model, usage)
    taken: list[Choice] = ["seed", "seconds", "references" if picture.first_frame is None else "first_frame"]
    if aspect_ratio(picture.width, picture.height, RATIOS) is not None:
        taken.append("size")
    made = Generated(
        file_of(data, text_or_none(video.get("mime_type"))),
        seed=picture.seed,
        unsupported=not_taken(picture, taken),
    )
    return Reply("ok", made.packed(), None, status, model, usage)


def _without_video(document: Mapping[str, Any], status: str) -> tuple[ReplyOutcome, str, str | None]:
    problem = problem_in(document)
    if problem is not None:
        return ("blocked" if problem.filtered else "empty"), "", problem.text
    texts = [content.get("text") for content in _contents(document) if content.get("type") == "text"]
    words = "\n".join(text for text in texts if isinstance(text, str) and text.strip())
    if words:
        return "refused", words, None
    return ("truncated" if status == "incomplete" else "empty"), "", NO_FILE.format("video")


def _usage(usage: Json, picture: PictureRequest) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    thinking = tokens(usage, "total_thought_tokens") or 0
    seen = _of(usage.get("input_tokens_by_modality"), "image")
    has_pictures = bool(picture.references) or picture.first_frame is not None
    return usage_or_none(
        Usage(
            added(tokens(usage, "total_input_tokens"), tokens(usage, "total_tool_use_tokens") or 0),
            added(tokens(usage, "total_output_tokens"), thinking),
            cached_tokens=tokens(usage, "total_cached_tokens") or 0,
            thinking_tokens=thinking,
            image_input_tokens=seen if seen is not None or has_pictures else 0,
            video_output_tokens=_of(usage.get("output_tokens_by_modality"), "video"),
        )
    )


def _of(counts: Json, modality: str) -> int | None:
    """Return the tokens of a modality among the counts of all; None where they are not told."""
    if not isinstance(counts, list):
        return None
    numbers = [
        tokens(entry, "tokens")
        for entry in counts
        if isinstance(entry, Mapping) and str(entry.get("modality")).lower() == modality
    ]
    return None if None in numbers else sum(number for number in numbers if number is not None)


# -- Adapter for Google's models that make videos, through its interactions

T = TypeVar("T")

FIRST_WAIT = 0.5
"""Seconds before the first look at how far a video is; twice as many before each further one."""

LONGEST_WAIT = 10.0
MOST_REDIRECTS = 3
_FILE = re.compile(r"(?:^|/)(files/[^/:?#]+)$")


class _VideoEdge(PictureEdge):
    reads_errors = True


class GoogleVideos(Service):
    """A Gemini model that makes a video; ``extra`` is merged into the body of the creation.

    ``spec``: which model. ``options``: its settings; ``call_timeout`` bounds the waiting and the download.
    ``redactor``: learns the key. ``clock``: what the pauses between looks go by.

    Raises MissingRequirement: the key or a variable that the settings name is not there.
    """

    def __init__(
        self, spec: ModelSpec, options: ModelOptions, redactor: Redactor, clock: Clock | None = None
    ) -> None:
        super().__init__(spec, options, redactor)
        self._edge = _VideoEdge(options, redactor)
        self._clock = clock or SystemClock()
        self._seconds = options.call_timeout
        self._base = f"{(options.base_url or GOOGLE).rstrip('/')}/{API_VERSION}/"
        key = find_key(spec, options, redactor)
        self._headers = {**headers_of(spec, options, redactor), "x-goog-api-key": key}
        self._http = http_client(spec, options, redactor, LONGEST_VIDEO)
        self._left: dict[str, list[str]] = {}
        """Key of a request -> interactions that were created for it, and that nobody reads now."""

    async def close(self) -> None:
        await self._http.aclose()

    async def complete(self, request: ChatRequest) -> Reply:
        """Make one video, or go on waiting for one that was created for the same request."""
        picture, key = PictureRequest.of(request), request.key()
        if self._left.get(key):
            name = self._left[key].pop()
        else:
            created: list[str] = []
            reply = await self._asked(request, partial(_note_creation, created))
            if not created:
                return reply
            name = created[0]
        is_over = False
        try:
            document, data = await self._finished(request, name)
            is_over = True
        finally:
            if not is_over:
                self._left.setdefault(key, []).append(name)
        return self._reply(request, picture, document, data)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        return creation(self._name, request)

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        response = await self._http.post(f"{self._base}interactions", json=body, headers=self._headers)
        response.raise_for_status()
        return response.headers, response.content

    def _reply(
        self, request: ChatRequest, picture: PictureRequest, document: Mapping[str, Any], data: bytes | None
    ) -> Reply:
        problem = problem_in(document)
        if problem is not None and problem.status and not problem.filtered and not video_in(document):
            return self._edge.answered(request, {}, problem)
        return self._edge.reply(request, {}, json.dumps(document), partial(read_video, picture, data))

    async def _finished(self, request: ChatRequest, name: str) -> tuple[dict[str, Any], bytes | None]:
        """Return an interaction when it is over, and the video if it lies at an address."""
        began = self._clock.monotonic()
        document = await self._patiently(began, FIRST_WAIT, partial(self._look, request, name))
        uri = video_in(document).get("uri")
        if not isinstance(uri, str) or not uri:
            return document, None
        return document, await self._patiently(began, 0.0, partial(self._fetch, request, uri))

    async def _look(self, request: ChatRequest, name: str) -> dict[str, Any] | None:
        """Return the interaction; None while it is under way."""
        body = await self._get(request, f"{self._base}interactions/{quote(name, safe='')}")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise CallFault("broken_reply", "the state of the video is no whole JSON") from None
        if not isinstance(document, dict) or not isinstance(document.get("status"), str):
            raise CallFault("broken_reply", "the state of the video lacks what it needs")
        return None if document["status"] in UNDER_WAY else document

    async def _fetch(self, request: ChatRequest, uri: str) -> bytes | None:
        """Return a video; None where its address gives nothing."""
        address = urljoin(self._base, uri)
        if _origin(address) == _origin(self._base) and (match := _FILE.search(urlsplit(address).path)):
            address = f"{self._base}{match[1]}:download?alt=media"
        return await self._get(request, address) or None

    async def _get(self, request: ChatRequest, address: str) -> bytes:
        """Return what lies at an address; the headers with the key go to the service and nowhere else."""
        for _ in range(MOST_REDIRECTS + 1):
            is_ours = _origin(address) == _origin(self._base)
            if not is_ours and not address.startswith("https://"):
                raise CallFault("bad_request", "the video lies at an address that is not safe to fetch from")
            failure: Exception | None = None
            try:
                response = await self._http.get(address, headers=self._headers if is_ours else {})
            except Exception as error:  # noqa: BLE001 - adapter boundary
                failure = error
            if failure is not None:
                raise _fault_of(partial(self._edge.failed, request, failure))
            if not response.is_redirect:
                break
            address = urljoin(address, response.headers.get("location", ""))
        if response.status_code == 200:
            return response.content
        kind = response.headers.get("content-type", "")
        problem = read_problem(response.status_code, kind, response.content)
        raise _fault_of(partial(self._edge.answered, request, response.headers, problem))

    async def _patiently(self, began: float, wait: float, step: Callable[[], Awaitable[T | None]]) -> T:
        """Return what a step gives, once it gives something."""
        last = "it is not ready"
        while True:
            if self._clock.monotonic() - began + wait >= self._seconds:
                words = f"no video within {self._seconds:g} s (call_timeout): {last}"
                raise CallFault("timeout", words, maybe_paid=True)
            await self._clock.sleep(wait)
            wait = min(LONGEST_WAIT, max(FIRST_WAIT, 2 * wait))
            try:
                given = await step()
            except CallFault as fault:
                if fault.kind not in TRANSIENT:
                    raise _lost(fault) from None
                last, wait = str(fault), max(wait, min(fault.retry_after or 0.0, 60.0))
            else:
                if given is not None:
                    return given
                last = "it is not ready"


def _note_creation(created: list[str], document: Mapping[str, Any]) -> Reply | None:
    """Note the id of what was created; the reply is read when it is over."""
    name = document.get("id")
    if not isinstance(name, str) or not name or not isinstance(document.get("status"), str):
        return None
    created.append(name)
    return Reply("empty", "")


def _fault_of(make: Callable[[], Reply]) -> CallFault:
    """Return the fault that reading a response raises; a look that was filtered is one, too."""
    try:
        reply = make()
    except CallFault as fault:
        return fault
    return CallFault("bad_request", f"the service does not show the video: {reply.detail}")


def _lost(fault: CallFault) -> CallFault:
    """Return the fault of a video that was created and cannot be had."""
    kind = fault.kind if fault.kind in ("key_refused", "no_quota", "too_long") else "bad_request"
    words = f"a video was created and cannot be had: {fault.message}"
    return CallFault(kind, words, status=fault.status, maybe_paid=True)


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


__all__ = ["FIRST_WAIT", "LONGEST_WAIT", "GoogleVideos"]
