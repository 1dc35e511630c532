"""Anthropic's batches of messages: requests come with the creation, results as one stream of lines.

A batch has no place for a tag. One that may have been made is looked for among those that were made since
then with as many requests; that it is ours shows in the names of its requests, and these only when it is
over.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..anthropic_chat import AnthropicChat, read_reply
from ..chat import CallFault, ChatRequest, Image
from ..edge import text_or_none
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec
from .service import (
    LONGEST_RESULTS,
    MOST_PAGES,
    PATIENT,
    BatchService,
    BatchState,
    BatchView,
    NotDone,
    NotYetKnown,
    Order,
    Outcome,
    Results,
    count_or_none,
    json_lines_of,
    with_stored,
)

BATCHES = "/v1/messages/batches"
STATES: Mapping[str, BatchState] = {"in_progress": "running", "canceling": "running", "ended": "ended"}
CLOCKS = 600.0
"""Seconds by which the service's clock may be behind ours."""
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


class AnthropicBatches(BatchService):
    """Batches of a model behind Anthropic's messages."""

    most_requests = 20_000  # the service takes 100,000, of 256 MB together
    most_bytes = 90_000_000
    keeps_pictures = 20 * 24 * 3600.0
    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        patient = options.model_copy(update={"call_timeout": max(options.call_timeout, PATIENT)})
        self._chat = AnthropicChat(spec, patient, redactor, LONGEST_RESULTS)
        self._client = self._chat.client

    def encode(self, name: str, request: ChatRequest, stored: Mapping[str, str] | None = None) -> bytes:
        """Return one request with its name."""
        known = stored or {}

        def swap(source: Mapping[str, Any]) -> dict[str, Any] | None:
            file = known.get(str(source.get("data"))) if source.get("type") == "base64" else None
            return {"type": "file", "file_id": file} if file else None

        body = self._chat.body(request)
        line = {"custom_id": name, "params": with_stored(body, swap) if known else body}
        return json.dumps(line).encode("ascii")

    async def store(self, picture: Image, name: str) -> str:
        """Send a picture to the store of files; return its id."""
        try:
            sent = await self._client.files.upload(file=(name, picture.data, picture.media_type))
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            if isinstance(sent.id, str) and sent.id:
                return sent.id
            failure = CallFault("broken_reply", "the service names no file", status=200)
        raise self._fault(failure)

    async def create(self, order: Order, file: str) -> BatchView:  # noqa: ARG002 - there is no file here
        body = {"requests": [json.loads(line) for line in order.lines]}
        return self._clean(_view(await self._document(self._post(BATCHES, body))))

    async def find(self, order: Order) -> BatchView | None:
        """Return the batch whose requests have our names, among those that it may be."""
        doubtful = False
        after: str | None = None
        for _ in range(MOST_PAGES):
            query = "?limit=100" + (f"&after_id={after}" if after else "")
            page = await self._document(self._get(f"{BATCHES}{query}"))
            batches = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            recent = [entry for entry in batches if _created(entry) >= order.written - CLOCKS]
            for entry in recent:
                if entry.get("id") in order.known or _size(entry) != len(order.requests):
                    continue
                view = self._clean(_view(entry))
                if view.state != "ended":
                    doubtful = True
                elif await self._is_ours(view, order):
                    return view
            if len(recent) < len(batches) or not batches or not page.get("has_more"):
                break
            after = text_or_none(page.get("last_id")) or text_or_none(batches[-1].get("id"))
        if doubtful:
            raise NotYetKnown
        return None

    async def _is_ours(self, view: BatchView, order: Order) -> bool:
        """Whether the results of a batch that is over bear the names of our requests."""
        try:
            lines, _ = json_lines_of(await self._response(self._get(f"{BATCHES}/{view.remote}/results")))
        except CallFault as fault:
            if fault.status in (400, 403, 404, 410):  # archived, or deleted
                return False
            raise
        return any(line.get("custom_id") in order.requests for line in lines)

    async def look(self, remote: str) -> BatchView:
        return self._clean(_view(await self._document(self._get(f"{BATCHES}/{remote}"))))

    async def cancel(self, remote: str) -> None:
        """Ask the service to stop a batch."""
        try:
            await self._document(self._post(f"{BATCHES}/{remote}/cancel", {}))
        except CallFault as fault:
            if fault.status not in (400, 409):  # it is over
                raise

    async def results(self, view: BatchView, requests: Mapping[str, ChatRequest]) -> Results:
        outcomes: dict[str, Outcome] = {}
        lines, torn = json_lines_of(await self._response(self._get(f"{BATCHES}/{view.remote}/results")))
        for line in lines:
            name = line.get("custom_id")
            if isinstance(name, str) and name in requests:
                outcomes.setdefault(name, self._outcome(requests[name], line.get("result")))
        return Results(outcomes, torn)

    def _outcome(self, request: ChatRequest, result: object) -> Outcome:
        result = result if isinstance(result, dict) else {}
        kind = result.get("type")
        if kind == "succeeded":
            return self._answer(request, 200, result.get("message"))
        if kind in ("canceled", "expired"):
            return NotDone("expired" if kind == "expired" else "cancelled")
        if kind == "errored":
            error = result.get("error")
            inner = error.get("error") if isinstance(error, dict) else None
            inner = inner if isinstance(inner, dict) else error if isinstance(error, dict) else {}
            return self._answer(request, 200, {"error": inner or "no reason is given"})
        shown = self._shown(str(kind))[:40]
        text = f"the result has the type {shown!r}, of which this version knows nothing"
        return CallFault("bad_request", text, status=200, maybe_paid=True)


def _size(document: Mapping[str, Any]) -> int:
    """Return how many requests a batch has."""
    counts = document.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    return sum(count_or_none(counts.get(name)) or 0 for name in _COUNTS)


def _created(document: Mapping[str, Any]) -> float:
    """Return when a batch was made, in seconds since 1970; endlessly late where it does not say."""
    try:
        return datetime.fromisoformat(str(document.get("created_at")).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return float("inf")


def _view(document: Mapping[str, Any]) -> BatchView:
    remote, word = document.get("id"), document.get("processing_status")
    if not isinstance(remote, str) or not isinstance(word, str):
        raise CallFault("broken_reply", "the answer describes no batch", status=200, maybe_paid=True)
    counts = document.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    return BatchView(
        remote, STATES.get(word, "unknown"), word,
        count_or_none(counts.get("succeeded")), count_or_none(counts.get("errored")),
    )  # fmt: skip
