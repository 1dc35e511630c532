"""Google's batches of generateContent: a file of requests goes ahead, a file of results comes back.

The tag is the batch's display name. All goes through the SDK's HTTP client, and is read as it comes: the SDK
itself takes a state that it does not know for one of a batch under way, and drops why one failed.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from ..chat import CallFault, ChatRequest, Image
from ..edge import text_or_none
from ..faults import headers_of
from ..google_chat import API_VERSION, GOOGLE, GoogleChat, close_google, google_client, pick, read_reply
from ..keys import Redactor, find_key
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
    with_stored,
)

if TYPE_CHECKING:
    import httpx2

STATES: Mapping[str, BatchState] = {
    **dict.fromkeys(("PENDING", "QUEUED", "RUNNING", "CANCELLING", "UPDATING"), "running"),
    **dict.fromkeys(("SUCCEEDED", "PARTIALLY_SUCCEEDED", "CANCELLED", "EXPIRED"), "ended"),
    "FAILED": "failed",
}
"""What stands behind ``BATCH_STATE_`` or ``JOB_STATE_``."""
_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""Code of an error inside a batch, as gRPC numbers them -> status of HTTP."""
_ENDED = {1: "cancelled", 4: "expired"}


class GoogleBatches(BatchService):
    """Batches of a Gemini model."""

    most_requests = 20_000
    keeps_pictures = 20 * 3600.0  # it deletes files after 48 hours, and a batch may wait for 24
    most_bytes = 90_000_000  # the service takes files of 2 GB
    _read = staticmethod(read_reply)

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        patient = options.model_copy(update={"call_timeout": max(options.call_timeout, PATIENT)})
        self._client, self._http = google_client(spec, patient, redactor, LONGEST_RESULTS)
        self._root = (options.base_url or GOOGLE).rstrip("/")
        self._model = spec.name if "/" in spec.name else f"models/{spec.name}"
        own = headers_of(spec, options, redactor)
        self._headers = {**own, "x-goog-api-key": find_key(spec, options, redactor)}

    async def close(self) -> None:
        await close_google(self._client, self._http)

    def encode(self, name: str, request: ChatRequest, stored: Mapping[str, str] | None = None) -> bytes:
        """Return a line of the file."""
        known = stored or {}

        def swap(part: Mapping[str, Any]) -> dict[str, Any] | None:
            inline = part.get("inlineData")
            if not isinstance(inline, dict) or inline.get("data") not in known:
                return None
            return {"fileData": {"mimeType": inline["mimeType"], "fileUri": known[inline["data"]]}}

        body = GoogleChat.rest_body(request)
        line = {"key": name, "request": with_stored(body, swap) if known else body}
        return json.dumps(line).encode("ascii")

    async def upload(self, order: Order) -> str:
        """Send the file; return its name."""
        data = b"\n".join(order.lines) + b"\n"
        return str((await self._uploaded(order.tag, data, "application/jsonl"))["name"])

    async def store(self, picture: Image, name: str) -> str:
        """Send a picture to the store of files; return its address."""
        address = (await self._uploaded(name, picture.data, picture.media_type)).get("uri")
        if not isinstance(address, str) or not address:
            raise CallFault("broken_reply", "the service does not say where the picture is", status=200)
        return address

    async def _uploaded(self, name: str, data: bytes, media_type: str) -> dict[str, Any]:
        """Send a file, in two requests; return what the service says of it."""
        about = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(data)),
            "X-Goog-Upload-Header-Content-Type": media_type,
        }
        where = f"{self._root}/upload/{API_VERSION}/files"
        begun = await self._sent("POST", where, about, json.dumps({"file": {"displayName": name}}).encode())
        upload_at = urlsplit(begun.headers.get("x-goog-upload-url", ""))
        if not upload_at.query:
            raise CallFault("broken_reply", "the service does not say where the file is to go", status=200)
        # The key goes along, so that no other host is believed.
        target = urlunsplit((*urlsplit(self._root)[:2], *upload_at[2:4], ""))
        rest = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        done = self._object((await self._sent("POST", target, rest, data)).content)
        file = done.get("file")
        if not isinstance(file, dict) or not isinstance(file.get("name"), str):
            raise CallFault("broken_reply", "the service names no file", status=200)
        return file

    async def create(self, order: Order, file: str) -> BatchView:
        body = {"batch": {"displayName": order.tag, "inputConfig": {"fileName": file}}}
        return self._clean(_view(await self._post(f"{self._model}:batchGenerateContent", body)))

    async def find(self, order: Order) -> BatchView | None:
        """Return the batch whose display name is the tag."""
        token = ""
        for _ in range(MOST_PAGES):
            query = urlencode({"pageSize": 100, **({"pageToken": token} if token else {})})
            page = await self._get(f"batches?{query}")
            for entry in page.get("operations") or ():
                if isinstance(entry, dict) and pick(_about(entry), "displayName") == order.tag:
                    return self._clean(_view(entry))
            token = text_or_none(pick(page, "nextPageToken")) or ""
            if not token:
                return None
        return None

    async def look(self, remote: str) -> BatchView:
        return self._clean(_view(await self._get(remote)))

    async def cancel(self, remote: str) -> None:
        """Ask the service to stop a batch."""
        try:
            await self._post(f"{remote}:cancel", {})
        except CallFault as fault:
            if fault.status not in (400, 409):  # it is over
                raise

    async def results(self, view: BatchView, requests: Mapping[str, ChatRequest]) -> Results:
        outcomes: dict[str, Outcome] = {}
        torn = False
        for file in view.outputs:
            where = f"{self._root}/{API_VERSION}/{file}:download?alt=media"
            lines, broken = json_lines_of((await self._sent("GET", where)).content)
            torn = torn or broken
            for line in lines:
                name = line.get("key")
                if isinstance(name, str) and name in requests:
                    outcomes.setdefault(name, self._outcome(requests[name], line))
        return Results(outcomes, torn)

    def _outcome(self, request: ChatRequest, line: Mapping[str, Any]) -> Outcome:
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict):
            return self._answer(request, 200, response)
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, int) and code in _ENDED:
            return NotDone("cancelled" if code == 1 else "expired")
        status = _STATUS.get(code, code) if isinstance(code, int) else 500
        return self._answer(request, status if 400 <= status < 600 else 500, {"error": error})

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        where, content = f"{self._root}/{API_VERSION}/{path}", json.dumps(body).encode("ascii")
        return self._object((await self._sent("POST", where, content=content)).content)

    async def _get(self, path: str) -> dict[str, Any]:
        return self._object((await self._sent("GET", f"{self._root}/{API_VERSION}/{path}")).content)

    async def _sent(
        self, method: str, where: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> "httpx2.Response":
        """Return the response of status 200 to a request through the SDK's own HTTP client."""
        import httpx2

        try:
            sent = {
                **({"content-type": "application/json"} if content else {}),
                **self._headers,
                **(headers or {}),
            }
            response = await self._http.request(method, where, headers=sent, content=content)
            if response.is_success:
                return response
            failure: Exception = httpx2.HTTPStatusError(
                f"status {response.status_code}", request=response.request, response=response
            )
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        raise self._fault(failure)


def _about(document: Mapping[str, Any]) -> Mapping[str, Any]:
    about = document.get("metadata")
    return about if isinstance(about, dict) else document


def _view(document: Mapping[str, Any]) -> BatchView:
    about = _about(document)
    remote, state = document.get("name"), pick(about, "state")
    if not isinstance(remote, str) or not isinstance(state, str):
        raise CallFault("broken_reply", "the answer describes no batch", status=200, maybe_paid=True)
    word = state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    stats = pick(about, "batchStats")
    stats = stats if isinstance(stats, dict) else {}
    output = pick(about, "output")
    file = pick(output, "responsesFile") if isinstance(output, dict) else None
    error = document.get("error") or about.get("error")
    problem = str(error.get("message") or error) if isinstance(error, dict) else ""
    answered, failed = (pick(stats, f"{name}RequestCount") for name in ("successful", "failed"))
    return BatchView(
        remote, STATES.get(word, "unknown"), word, count_or_none(answered), count_or_none(failed),
        (file,) if isinstance(file, str) else (), problem,
    )  # fmt: skip
