"""The form of Google's interactions that make videos: what is sent, and what the state of one says."""

import re
from collections.abc import Mapping
from typing import Any

from ...schemas.canonical import Json
from ..chat import ChatRequest, Image, Part, Reply, ReplyOutcome, Usage, base64_text
from ..edge import added, text_or_none, tokens, usage_or_none
from ..faults import Problem
from .google_images import aspect_ratio
from .request import Choice, Generated, PictureRequest, extras
from .service import NO_FILE, bytes_of, file_of, not_taken

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
