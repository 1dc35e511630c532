"""OpenAI's batches of chat completions: a file of requests goes ahead, files of results come back.

The tag stands in the metadata of a batch and in the name of its file. Pictures are part of the requests: chat
completions take no ids of files.
"""

import json
from collections.abc import Mapping
from typing import Any

from ..chat import CallFault, ChatRequest
from ..edge import text_or_none
from ..faults import problem_of
from ..keys import Redactor
from ..openai_models import OpenAIChat, openai_client, read_reply
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
    Order,
    Outcome,
    Results,
    count_or_none,
    json_lines_of,
)

ENDPOINT = "/v1/chat/completions"
KEPT = 10 * 24 * 3600
"""Seconds after which the service deletes our files."""
STATES: Mapping[str, BatchState] = {
    **dict.fromkeys(("validating", "in_progress", "finalizing", "cancelling"), "running"),
    **dict.fromkeys(("completed", "expired", "cancelled"), "ended"),
    "failed": "failed",
}
TAG = "fabula"
"""The name of the metadata that holds our tag."""


class OpenAIBatches(BatchService):
    """Batches of a model behind OpenAI's chat completions."""

    most_requests = 20_000  # the service takes 50,000, in files of 200 MB
    most_bytes = 90_000_000
    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._chat = OpenAIChat(spec, options, redactor)  # makes the bodies; asks nothing
        patient = options.model_copy(update={"call_timeout": max(options.call_timeout, PATIENT)})
        self._client = openai_client(spec, patient, redactor, LONGEST_RESULTS)

    async def close(self) -> None:
        """Close connections."""
        await self._chat.close()
        await self._client.close()

    def encode(self, name: str, request: ChatRequest, stored: Mapping[str, str] | None = None) -> bytes:  # noqa: ARG002
        """Return a line of the file; chat completions take no ids of pictures."""
        line = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": self._chat.body(request)}
        return json.dumps(line).encode("ascii")

    async def upload(self, order: Order) -> str:
        """Send the file; return its id."""
        file = (f"{order.tag}.jsonl", b"\n".join(order.lines) + b"\n", "application/jsonl")
        expires: Any = {"anchor": "created_at", "seconds": KEPT}
        try:
            sent = await self._client.files.create(file=file, purpose="batch", expires_after=expires)
            name = sent.id
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            if isinstance(name, str) and name:
                return name
            failure = CallFault("broken_reply", "the service names no file", status=200)
        raise self._fault(failure)

    async def create(self, order: Order, file: str) -> BatchView:
        """Make a batch of the file."""
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {TAG: order.tag},
        }
        return self._view(await self._document(self._post("/batches", body)))

    async def find(self, order: Order) -> BatchView | None:
        """Return the batch that has the tag; the newest stand first in the list."""
        after: str | None = None
        for _ in range(MOST_PAGES):
            query = "?limit=100" + (f"&after={after}" if after else "")
            page = await self._document(self._get(f"/batches{query}"))
            batches = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            for entry in batches:
                if (entry.get("metadata") or {}).get(TAG) == order.tag:
                    return self._view(entry)
            if not batches or not page.get("has_more"):
                return None
            after = text_or_none(batches[-1].get("id"))
        return None

    async def look(self, remote: str) -> BatchView:
        """Return where a batch is."""
        return self._view(await self._document(self._get(f"/batches/{remote}")))

    async def cancel(self, remote: str) -> None:
        """Ask the service to stop a batch."""
        try:
            await self._document(self._post(f"/batches/{remote}/cancel", {}))
        except CallFault as fault:
            if fault.status not in (400, 409):  # it is over, or being cancelled
                raise

    async def results(self, view: BatchView, requests: Mapping[str, ChatRequest]) -> Results:
        """Return what stands in both files of a batch."""
        outcomes: dict[str, Outcome] = {}
        torn = False
        for file in view.outputs:
            lines, broken = json_lines_of(await self._response(self._get(f"/files/{file}/content")))
            torn = torn or broken
            for line in lines:
                name = line.get("custom_id")
                if isinstance(name, str) and name in requests:
                    outcomes.setdefault(name, self._outcome(requests[name], line))
        return Results(outcomes, torn)

    def _outcome(self, request: ChatRequest, line: Mapping[str, Any]) -> Outcome:
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict):
            status = count_or_none(response.get("status_code"))
            return self._answer(request, 500 if status is None else status, response.get("body"))
        code = str(error.get("code")) if isinstance(error, dict) else ""
        if code == "batch_expired":
            return NotDone("expired")
        if code in ("batch_cancelled", "batch_canceled"):
            return NotDone("cancelled")
        return self._answer(request, 200, {"error": error or "no reason is given"})

    def _view(self, document: Mapping[str, Any]) -> BatchView:
        remote, word = document.get("id"), document.get("status")
        if not isinstance(remote, str) or not isinstance(word, str):
            raise CallFault("broken_reply", "the answer describes no batch", status=200, maybe_paid=True)
        counts = document.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        files = (document.get("output_file_id"), document.get("error_file_id"))
        problems, lines = _problems(document.get("errors"))
        view = BatchView(
            remote, STATES.get(word, "unknown"), word,
            count_or_none(counts.get("completed")), count_or_none(counts.get("failed")),
            tuple(file for file in files if isinstance(file, str) and file),
            problems, lines,
        )  # fmt: skip
        return self._clean(view)


def _problems(errors: object) -> tuple[str, dict[int, str]]:
    """Return why a batch was refused, and what is wrong with which of its requests, counted from 0."""
    data = errors.get("data") if isinstance(errors, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    lines = {
        entry["line"] - 1: str(entry.get("message") or entry.get("code"))
        for entry in entries
        if type(entry.get("line")) is int and entry["line"] > 0
    }
    rest = [problem_of(400, {"error": entry}) for entry in entries if entry.get("line") is None]
    return "; ".join(f"{', '.join(sorted(p.codes))}: {p.text}" for p in rest), lines
