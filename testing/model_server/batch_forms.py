"""How each of the three services speaks of batches and their files."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from ...schemas.canonical import Json
from .answers import Problem
from .batches import BatchStep, Form, Line, Made, Provider, Served, Store, json_lines, missing, page
from .wire import BadRequest, HttpRequest, form_of

Routes = tuple[tuple[str, str, BatchStep], ...]
"""Method and pattern of a path -> what it does."""


def _routed(routes: Routes, request: HttpRequest) -> BatchStep | None:
    for method, pattern, step in routes:
        if method == request.method and re.search(pattern, request.path):
            return step
    return None


def _id_in(pattern: str, request: HttpRequest) -> str:
    match = re.search(pattern, request.path)
    return "" if match is None else unquote(match[1])


def _document(request: HttpRequest) -> dict[str, Any]:
    document = json.loads(request.body or b"{}")
    if not isinstance(document, dict):
        raise BadRequest("the body is no JSON object")
    return document


class OpenAIForm:
    """``/v1/files`` and ``/v1/batches``."""

    provider: Provider = "openai"
    path = "/v1/chat/completions"
    _routes: Routes = (
        ("POST", r"/v1/files$", "upload"),
        ("GET", r"/v1/files/[^/]+/content$", "fetch"),
        ("POST", r"/v1/batches$", "make"),
        ("GET", r"/v1/batches$", "list"),
        ("POST", r"/v1/batches/[^/]+/cancel$", "cancel"),
        ("GET", r"/v1/batches/[^/]+$", "look"),
    )

    def step(self, request: HttpRequest) -> BatchStep | None:
        """Return what a request does."""
        return _routed(self._routes, request)

    def serve(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        """Do it."""
        if step == "upload":
            return self._upload(request, store)
        if step == "make":
            return self._make(request, store)
        if step == "list":
            some, more = page(request, _of(store, self.provider), "limit", "after")
            return Served({"object": "list", "data": [self._view(made) for made in some], "has_more": more})
        return self._fetch(request, store) if step == "fetch" else self._one(step, request, store)

    def _one(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        made = store.known(_id_in(r"/batches/([^/]+)", request))
        if made is None:
            return missing("the batch")
        if step == "cancel":
            if made.over is not None:
                return Served(problem=Problem("bad_request", "the batch is over", status=409))
            store.cancel(made)
        else:
            store.look(made, self.path, request)
        return Served(self._view(made))

    def _upload(self, request: HttpRequest, store: Store) -> Served:
        fields = form_of(request)
        if fields.get("purpose") != "batch":
            raise BadRequest("purpose must be batch")
        name = re.search(rb'filename="([^"]*)"', request.body)
        data = fields["file"][0].data
        file = store.keep("" if name is None else name[1].decode(), data)
        about = {
            "object": "file",
            "bytes": len(data),
            "created_at": 0,
            "purpose": "batch",
            "status": "processed",
        }
        return Served({"id": file, "filename": store.files[file][0], **about})

    def _make(self, request: HttpRequest, store: Store) -> Served:
        document = _document(request)
        if document.get("endpoint") != self.path or document.get("completion_window") != "24h":
            raise BadRequest("endpoint and completion_window are not what this server takes")
        file = store.files.get(str(document.get("input_file_id")))
        if file is None:
            return missing("the input file")
        lines = [Line(str(line["custom_id"]), line["body"]) for line in json_lines(file[1])]
        if len({line.name for line in lines}) != len(lines):
            raise BadRequest("two requests have one custom_id")
        tag = str((document.get("metadata") or {}).get("fabula", ""))
        return Served(self._view(store.make(self.provider, ("batch_", lines[0].body["model"], tag), lines)))

    def _fetch(self, request: HttpRequest, store: Store) -> Served:
        file = _id_in(r"/files/([^/]+)/content", request)
        made = store.made.get(file.partition("-of-")[2])
        if made is None or made.over is None:
            return missing("the file")
        errors = file.startswith("errors-")
        lines = [line for line in made.lines if (line.kind != "answered") == errors]
        return Served(store.results(made, [self._result(made, line) for line in lines if _told(made, line)]))

    @staticmethod
    def _result(made: Made, line: Line) -> Json:
        about = {"id": f"batch_req_{line.name[-8:]}", "custom_id": line.name}
        if line.kind in ("expired", "cancelled"):
            error = {"code": f"batch_{line.kind}", "message": f"This request was {line.kind} with its batch."}
            return {**about, "response": None, "error": error}
        response = {"status_code": line.status, "request_id": made.id, "body": line.answer}
        return {**about, "response": response, "error": None}

    @staticmethod
    def _view(made: Made) -> Json:
        counts, fate = made.counts(), made.fate
        word = made.over or ("cancelling" if made.cancelling else "in_progress")
        view: dict[str, Json] = {
            "id": made.id, "object": "batch", "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "input_file_id": "file-input", "created_at": int(made.created), "metadata": {"fabula": made.tag},
            "status": made.strange_word() or word,
            "output_file_id": None, "error_file_id": None, "errors": None,
            "request_counts": {"total": len(made.lines), "completed": counts["answered"],
                               "failed": counts["errored"]},
        }  # fmt: skip
        if made.over == "failed":
            code, text = fate.problem or ("invalid_request", "a line is not valid")
            lines: list[int | None] = [*fate.bad_lines] or [None]
            data = [{"code": code, "message": text, "line": line, "param": None} for line in lines]
            view["errors"] = {"object": "list", "data": data}
        elif made.over is not None:
            shown = [line for line in made.lines if _told(made, line)]
            if any(line.kind == "answered" for line in shown):
                view["output_file_id"] = f"output-of-{made.id}"
            if any(line.kind != "answered" for line in shown):
                view["error_file_id"] = f"errors-of-{made.id}"
        return view


def _of(store: Store, provider: Provider) -> list[Made]:
    return [made for made in store.made.values() if made.provider == provider and not made.fate.forgotten]


def _told(made: Made, line: Line) -> bool:
    """Whether results mention a request: a batch that says it is complete keeps silent about some."""
    return not (made.over == "completed" and line.kind in ("expired", "cancelled"))


class AnthropicForm:
    """``/v1/messages/batches``."""

    provider: Provider = "anthropic"
    path = "/v1/messages"
    _routes: Routes = (
        ("POST", r"/v1/files$", "upload"),
        ("POST", r"/v1/messages/batches$", "make"),
        ("GET", r"/v1/messages/batches$", "list"),
        ("GET", r"/v1/messages/batches/[^/]+/results$", "fetch"),
        ("POST", r"/v1/messages/batches/[^/]+/cancel$", "cancel"),
        ("GET", r"/v1/messages/batches/[^/]+$", "look"),
    )

    def step(self, request: HttpRequest) -> BatchStep | None:
        """Return what a request does."""
        step = _routed(self._routes, request)
        return None if step == "upload" and "anthropic-version" not in request.headers else step

    def serve(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        """Do it."""
        if step == "upload":
            return self._upload(request, store)
        if step == "make":
            lines = [
                Line(str(entry["custom_id"]), entry["params"]) for entry in _document(request)["requests"]
            ]
            if not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", line.name) for line in lines):
                raise BadRequest("a custom_id has a form that the service does not take")
            made = store.make(self.provider, ("msgbatch_", str(lines[0].body["model"]), ""), lines)
            return Served(self._view(made, request))
        if step == "list":
            for one in _of(store, self.provider):  # time goes on, though nobody looks at them singly
                store.look(one, self.path, request)
            some, more = page(request, _of(store, self.provider), "limit", "after_id")
            ids: list[str | None] = [*(made.id for made in some)] or [None]
            views = [self._view(made, request) for made in some]
            return Served({"data": views, "has_more": more, "first_id": ids[0], "last_id": ids[-1]})
        return self._one(step, request, store)

    @staticmethod
    def _upload(request: HttpRequest, store: Store) -> Served:
        picture = form_of(request)["file"][0]
        file = store.keep(picture.media_type, picture.data, "file_")
        about = {"type": "file", "filename": "picture", "mime_type": picture.media_type}
        created = {"size_bytes": len(picture.data), "created_at": "2026-01-01T00:00:00Z"}
        return Served({"id": file, **about, **created})

    def _one(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        made_or_none = store.known(_id_in(r"/batches/([^/]+)", request))
        if made_or_none is None:
            return missing("the batch")
        made = made_or_none
        if step == "fetch":
            if made.over is None:
                return missing("the file of results")
            return Served(
                store.results(made, [self._result(made, line) for line in made.lines if _told(made, line)])
            )
        if step == "cancel":
            store.cancel(made)
        else:
            store.look(made, self.path, request)
        return Served(self._view(made, request))

    @staticmethod
    def _result(made: Made, line: Line) -> Json:
        if made.fate.strange_result and line is made.lines[0]:
            return {"custom_id": line.name, "result": {"type": "postponed"}}
        if line.kind in ("expired", "cancelled"):
            kind = "canceled" if line.kind == "cancelled" else "expired"
            return {"custom_id": line.name, "result": {"type": kind}}
        if line.kind == "errored":
            return {"custom_id": line.name, "result": {"type": "errored", "error": line.answer}}
        return {"custom_id": line.name, "result": {"type": "succeeded", "message": line.answer}}

    @staticmethod
    def _view(made: Made, request: HttpRequest) -> Json:
        counts = made.counts()
        word = "ended" if made.over else "canceling" if made.cancelling else "in_progress"
        names = {"answered": "succeeded", "errored": "errored", "expired": "expired", "cancelled": "canceled"}
        told = {names[kind]: count for kind, count in counts.items()}
        results = f"http://{request.headers.get('host')}/v1/messages/batches/{made.id}/results"
        created = datetime.fromtimestamp(made.created, UTC).isoformat()
        return {
            "id": made.id, "type": "message_batch", "processing_status": made.strange_word() or word,
            "request_counts": {"processing": 0 if made.over else len(made.lines), **told},
            "created_at": created, "expires_at": created, "ended_at": None, "archived_at": None,
            "cancel_initiated_at": None, "results_url": results if made.over else None,
        }  # fmt: skip


class GoogleForm:
    """``/upload/v1beta/files``, ``/v1beta/files`` and ``/v1beta/batches``."""

    provider: Provider = "google"
    _routes: Routes = (
        ("POST", r"/upload/v1beta/files", "upload"),
        ("POST", r"/models/[^/:]+:batchGenerateContent$", "make"),
        ("GET", r"/v1beta/batches$", "list"),
        ("POST", r"/v1beta/batches/[^/:]+:cancel$", "cancel"),
        ("GET", r"/v1beta/batches/[^/:]+$", "look"),
        ("GET", r"/v1beta/files/results-[^/:]+:download$", "fetch"),
    )

    def step(self, request: HttpRequest) -> BatchStep | None:
        """Return what a request does."""
        return _routed(self._routes, request)

    def serve(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        """Do it."""
        if step == "upload":
            return self._upload(request, store)
        if step == "make":
            return self._make(request, store)
        if step == "list":
            some, more = page(request, _of(store, self.provider), "pageSize", "pageToken")
            token = {"nextPageToken": some[-1].id} if more else {}
            return Served({"operations": [self._view(made) for made in some], **token})
        if step == "fetch":
            return self._fetch(request, store)
        return self._one(step, request, store)

    def _one(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        made = store.known(f"batches/{_id_in(r'/batches/([^/:]+)', request)}")
        if made is None:
            return missing("the batch")
        if step == "cancel":
            store.cancel(made)
            return Served({})
        store.look(made, f"/v1beta/models/{made.model}:generateContent", request)
        return Served(self._view(made))

    def _upload(self, request: HttpRequest, store: Store) -> Served:
        command = request.headers.get("x-goog-upload-command", "")
        if command == "start":
            about = _document(request).get("file") or {}
            name = str(about.get("displayName") or about.get("display_name") or "")
            file = store.keep(name, b"", "files/f")
            where = (
                f"http://{request.headers.get('host')}/upload/v1beta/files?upload_id={file.partition('/')[2]}"
            )
            return Served({}, {"x-goog-upload-url": where, "x-goog-upload-status": "active"})
        if "finalize" not in command:
            raise BadRequest("this server takes a file in one piece")
        file = f"files/{request.target.partition('upload_id=')[2]}"
        if file not in store.files:
            return missing("the upload")
        store.files[file] = (store.files[file][0], request.body)
        view = {
            "name": file,
            "displayName": store.files[file][0],
            "uri": f"http://x/v1beta/{file}",
            "state": "ACTIVE",
        }
        return Served({"file": view}, {"x-goog-upload-status": "final"})

    def _make(self, request: HttpRequest, store: Store) -> Served:
        batch = _document(request).get("batch") or {}
        config = batch.get("inputConfig") or batch.get("input_config") or {}
        file = store.files.get(str(config.get("fileName") or config.get("file_name")))
        if file is None:
            return missing("the input file")
        lines = [Line(str(line["key"]), line["request"]) for line in json_lines(file[1])]
        model = _id_in(r"/models/([^/:]+):", request)
        tag = str(batch.get("displayName") or batch.get("display_name") or "")
        return Served(self._view(store.make(self.provider, ("batches/b", model, tag), lines)))

    def _fetch(self, request: HttpRequest, store: Store) -> Served:
        made = store.made.get(f"batches/{_id_in(r'/files/results-([^/:]+):download', request)}")
        if made is None or made.over is None:
            return missing("the file")
        return Served(store.results(made, [self._result(line) for line in made.lines if _told(made, line)]))

    @staticmethod
    def _result(line: Line) -> Json:
        if line.kind in ("expired", "cancelled"):
            code, text = (4, "deadline") if line.kind == "expired" else (1, "cancelled")
            return {
                "key": line.name,
                "error": {"code": code, "message": f"The request was {line.kind} ({text})."},
            }
        if line.kind == "errored":
            body: Mapping[str, Any] = line.answer if isinstance(line.answer, dict) else {}
            return {"key": line.name, "error": body.get("error", body)}
        return {"key": line.name, "response": line.answer}

    @staticmethod
    def _view(made: Made) -> Json:
        counts, fate = made.counts(), made.fate
        words = {"completed": "SUCCEEDED", "expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}
        word = words[made.over] if made.over else "CANCELLING" if made.cancelling else "RUNNING"
        answered, whole = counts["answered"], len(made.lines)
        if made.over == "completed" and fate.partial_word and answered < whole:
            word = "PARTIALLY_SUCCEEDED"
        about: dict[str, Json] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{made.model}", "displayName": made.tag,
            "state": made.strange_word() or f"BATCH_STATE_{word}", "name": made.id,
            "createTime": datetime.fromtimestamp(made.created, UTC).isoformat(),
            "batchStats": {"requestCount": str(whole), "successfulRequestCount": str(answered),
                           "failedRequestCount": str(counts["errored"])},
        }  # fmt: skip
        view: dict[str, Json] = {"name": made.id, "metadata": about, "done": made.over is not None}
        if made.over == "failed":
            code, text = fate.problem or ("3", "a line is not valid")
            view["error"] = {"code": int(code) if code.isdecimal() else 3, "message": text}
        elif made.over is not None:
            about["output"] = {"responsesFile": f"files/results-{made.id.partition('/')[2]}"}
            view["response"] = {"responsesFile": f"files/results-{made.id.partition('/')[2]}"}
        return view


FORMS: tuple[Form, ...] = (AnthropicForm(), OpenAIForm(), GoogleForm())
"""All of them."""
