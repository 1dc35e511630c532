"""A stream of events that nobody asked for, put together into the document that was asked for.

Some servers stream unless they are told not to, and some gateways always do. A stream is as long as a body
may be (:data:`~.transport.LONGEST_BODY`), and one that does not come to its end is none.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class BrokenStream(ValueError):
    """The events cannot be read, or the last one is missing."""


def is_stream(content_type: str, body: bytes) -> bool:
    """Return whether a body is a stream of events, or a document with the end of one behind it."""
    text = body.strip()
    if text.startswith(b"<"):  # a page, whatever it is called
        return False
    ends = text.startswith(b"{") and text.endswith(b"[DONE]")
    return "event-stream" in content_type.lower() or text.startswith(_STARTS) or ends


def stream_document(body: bytes) -> dict[str, Any]:
    """Return the document that a stream of events makes, as the service gives it unstreamed."""
    events, is_over = _events(body)
    return merged_document(events, is_over=is_over)


def merged_document(events: list[dict[str, Any]], *, is_over: bool) -> dict[str, Any]:
    """Return the document that pieces of one make; ``is_over``: the service said that there are no more."""
    failed = next((event for event in events if event.get("error")), None)
    if failed is not None:
        return failed
    if any(isinstance(event.get("choices"), list) for event in events):
        document, ends = _completion(events)
    elif any(event.get("type") == "message_start" for event in events):
        document, ends = _message(events)
    elif any("candidates" in event or "usageMetadata" in event for event in events):
        document, ends = _candidates(events)
    elif len(events) == 1:
        document, ends = events[0], True
    else:
        raise BrokenStream("its events are of no kind that is known" if events else "it has none")
    if not (ends or is_over):
        raise BrokenStream("it ended early")
    return document


def _events(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    events: list[dict[str, Any]] = []
    pending: list[str] = []
    is_over = False
    text = body.decode("utf-8", "replace").lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for line in (*text.split("\n"), ""):
        if line.startswith("data:"):
            pending.append(line.removeprefix("data:").removeprefix(" "))
        elif line.startswith("{"):
            pending += [part for part in line.partition("data: [DONE]")[::2] if part.strip()]
            is_over = is_over or line.rstrip().endswith("data: [DONE]")
        elif not line.strip() and pending:
            done = [text for text in pending if text.strip() == "[DONE]"]
            is_over = is_over or bool(done)
            events += _documents([text for text in pending if text not in done])
            pending = []
    return events, is_over


def _documents(lines: list[str]) -> Iterable[dict[str, Any]]:
    """Yield the objects in the lines of an event: one over all of them, or one each."""
    try:
        found = [json.loads("\n".join(lines))] if lines else []
    except (ValueError, RecursionError):
        try:
            found = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            raise BrokenStream("an event is no JSON") from None
    for document in found:
        if not isinstance(document, dict):
            raise BrokenStream("an event is no JSON object")
        yield document


def _last(events: Iterable[Mapping[str, Any]], name: str) -> Any:  # noqa: ANN401 - any JSON
    return next((event[name] for event in reversed(list(events)) if event.get(name) is not None), None)


def _completion(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a chat completion, and whether its first choice is over."""
    choices: dict[int, dict[str, Any]] = {}
    for event in events:
        for entry in event.get("choices") or ():
            index = entry.get("index") or 0
            choice = choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            for name in ("finish_reason", "error", "native_finish_reason"):
                if entry.get(name):
                    choice[name] = entry[name]
            _add(choice["message"], entry.get("delta") or entry.get("message") or {})
    document = {"choices": [choices[index] for index in sorted(choices)]}
    for name in ("model", "usage"):
        document[name] = _last(events, name)
    first = document["choices"][0] if choices else {}
    return document, bool(first.get("finish_reason") or first.get("error"))


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, piece in delta.items():
        known: Any = message.get(name)
        if name != "role" and type(known) is type(piece) and type(known) in (str, list):
            message[name] = known + piece
        elif piece is not None:
            message[name] = piece


def _message(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a message of Anthropic's form, and whether it is over."""
    begun = next(event for event in events if event.get("type") == "message_start")["message"]
    usage = dict(begun.get("usage") or {})
    document = {**begun, "content": [], "usage": usage}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event.get("type") == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            for name in ("text", "thinking"):
                if isinstance(delta.get(name), str):
                    block[name] = block.get(name, "") + delta[name]
            block["json"] += delta.get("partial_json") or ""
        elif event.get("type") == "message_delta":
            document |= {name: value for name, value in event["delta"].items() if value is not None}
            usage |= {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
    for _, block in sorted(blocks.items()):
        text = block.pop("json")
        if text:
            try:
                block["input"] = json.loads(text)
            except (ValueError, RecursionError):
                block["input"] = text
        document["content"].append(block)
    return document, any(event.get("type") == "message_stop" for event in events)


def _candidates(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return a generateContent response, and whether its candidate is over, or the prompt was blocked."""
    candidate: dict[str, Any] = {}
    parts: list[Any] = []
    for event in events:
        for entry in (event.get("candidates") or ())[:1]:
            candidate |= entry
            parts += (entry.get("content") or {}).get("parts") or []
    document = {
        name: value
        for name in ("promptFeedback", "usageMetadata", "modelVersion")
        if (value := _last(events, name)) is not None
    }
    if candidate:
        document["candidates"] = [{**candidate, "content": {"parts": parts}}]
    return document, bool(candidate.get("finishReason") or "promptFeedback" in document)
