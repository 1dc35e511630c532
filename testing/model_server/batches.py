"""Files and batches of the three services: kept in memory, answered as scripted, wrong as scripted."""

import base64
import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs

from ...schemas.canonical import Json
from .answers import Problem
from .wire import BadRequest, HttpRequest, form_of

End: TypeAlias = Literal["completed", "expired", "cancelled", "failed"]
Kind: TypeAlias = Literal["answered", "errored", "expired", "cancelled"]
Provider: TypeAlias = Literal["openai", "google", "anthropic"]
BatchStep: TypeAlias = Literal["upload", "make", "list", "look", "fetch", "cancel"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a batch."""

    looks: int = 1  # how often it is said to be under way before it is over
    end: End = "completed"  # how it ends by itself
    # share of its requests that are answered by then, the first of them; the rest expires or is cancelled
    # with it, and where it is ``completed`` is not mentioned at all
    done: float = 1.0
    word: str | None = None  # what is said as its state instead of the truth
    torn: int = 0  # how often results are given with their last line cut; -1: always
    # whether Google calls it partially succeeded where some requests were not answered
    partial_word: bool = False
    problem: tuple[str, str] | None = None  # code and text of why it failed, where it did
    slow_cancel: int = 1  # looks at it between a request to cancel it and its end
    forgotten: bool = False  # whether the service no longer knows it once it was made


@dataclass(slots=True)
class Line:
    """One request of a batch, and what became of it: HTTP status and body of what a single call would get."""

    name: str
    body: Mapping[str, Any]
    kind: Kind = "answered"
    status: int = 200
    answer: Json = None


@dataclass(slots=True)
class Made:
    """A batch that the service has."""

    id: str  # the service's
    provider: Provider  # whose
    model: str  # the model's name where the batch has it
    tag: str  # what the client named it
    lines: list[Line]  # its requests
    fate: Fate  # what becomes of it
    created: float  # when it was made, in seconds since 1970
    looks: int  # how often it is still said to be under way
    cancelling: bool = False  # whether it was asked to stop
    over: End | None = None  # how it ended; None while it has not
    fetched: int = 0  # how often its results were fetched

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its requests."""
        return tuple(line.name for line in self.lines)

    def counts(self) -> dict[Kind, int]:
        """Return how many requests ended how; none has before the batch is over."""
        kinds: tuple[Kind, ...] = ("answered", "errored", "expired", "cancelled")
        return {kind: sum(line.kind == kind for line in self.lines) if self.over else 0 for kind in kinds}


Answering: TypeAlias = Callable[[str, Mapping[str, Any], HttpRequest], tuple[int, Json]]
"""Gives status and body of the response to a request inside a batch: its path, its body, and what asked."""
Fates: TypeAlias = Callable[[Made], Fate] | Sequence[Fate] | Fate | None


@dataclass(frozen=True, slots=True)
class Served:
    """A response: a body of JSON or bytes with headers, or a problem instead."""

    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: Problem | None = None


def missing(what: str) -> Served:
    """Return the response where something is not there."""
    return Served(problem=Problem("no_such_model", f"{what} was not found", status=404))


class Store:
    """What the services keep: files and batches.

    Args:
        answer: answers a request inside a batch.
        fates: what becomes of batches: one fate for all, a list for the first, or a function of the batch.
    """

    def __init__(self, answer: Answering, fates: Fates = None) -> None:
        self._answer = answer
        self.fates = fates
        self.files: dict[str, tuple[str, bytes]] = {}
        self.made: dict[str, Made] = {}
        self._number = 0

    def new_id(self, before: str) -> str:
        """Return an id that nothing else has."""
        self._number += 1
        return f"{before}{self._number:06d}"

    def keep(self, name: str, data: bytes, before: str = "file-") -> str:
        """Keep a file; return its id."""
        file = self.new_id(before)
        self.files[file] = (name, data)
        return file

    def make(self, provider: Provider, about: tuple[str, str, str], lines: list[Line]) -> Made:
        """Make a batch."""
        before, model, tag = about
        made = Made(self.new_id(before), provider, model, tag, lines, Fate(), time.time(), 0)
        made.fate = self._fate(made)
        made.looks = made.fate.looks
        self.made[made.id] = made
        return made

    def _fate(self, made: Made) -> Fate:
        fates = self.fates
        if isinstance(fates, Sequence):
            return fates[len(self.made)] if len(self.made) < len(fates) else Fate()
        return (fates(made) if callable(fates) else fates) or Fate()

    def known(self, batch: str) -> Made | None:
        """Return a batch that was made and not forgotten."""
        made = self.made.get(batch)
        return None if made is None or made.fate.forgotten else made

    def look(self, made: Made, path: str, request: HttpRequest) -> None:
        """Let a batch go on by one look."""
        if made.over is not None:
            return
        if made.looks > 0:
            made.looks -= 1
            return
        end: End = "cancelled" if made.cancelling else made.fate.end
        share = 0.0 if end == "failed" else made.fate.done
        answered = round(share * len(made.lines))
        for number, line in enumerate(made.lines):
            if number < answered:
                line.status, line.answer = self._answer(path, with_files(line.body, self.files), request)
                line.kind = "answered" if line.status == 200 else "errored"
            else:
                line.kind = "expired" if end in ("expired", "completed") else "cancelled"
        made.over = end

    def cancel(self, made: Made) -> None:
        """Ask a batch to stop."""
        if made.over is None and not made.cancelling:
            made.cancelling, made.looks = True, made.fate.slow_cancel

    def results(self, made: Made, lines: Sequence[Json]) -> bytes:
        """Return the file of some results, in another order, and torn where that is its fate."""
        shown = list(lines)
        random.Random(made.id).shuffle(shown)
        data = "".join(json.dumps(line) + "\n" for line in shown).encode("ascii")
        made.fetched += 1
        if made.fate.torn < 0 or made.fetched <= made.fate.torn:
            return data[: -max(20, len(data) // 20)]
        return data


def with_files(body: Any, files: Mapping[str, tuple[str, bytes]]) -> Any:  # noqa: ANN401 - any JSON
    """Return the body of a request with the pictures that it names by file in it, as in a single call."""
    if isinstance(body, list):
        return [with_files(entry, files) for entry in body]
    if not isinstance(body, dict):
        return body
    if "fileData" in body:
        about = body["fileData"]
        data = files["files/" + about["fileUri"].rpartition("/")[2]][1]
        return {"inlineData": {"mimeType": about["mimeType"], "data": base64.b64encode(data).decode()}}
    if body.get("type") == "file" and "file_id" in body:
        name, data = files[body["file_id"]]
        return {"type": "base64", "media_type": name, "data": base64.b64encode(data).decode()}
    return {name: with_files(value, files) for name, value in body.items()}


def _page(request: HttpRequest, entries: Sequence[Made], size: str, after: str) -> tuple[list[Made], bool]:
    """Return a page of a list, newest first, and whether there are more."""
    query = parse_qs(request.target.partition("?")[2])
    most = int(query.get(size, ["20"])[0])
    newest = list(reversed(entries))
    last = query.get(after, [None])[0]
    start = next((n + 1 for n, made in enumerate(newest) if made.id == last), 0)
    return newest[start : start + most], start + most < len(newest)


# How each of the three services speaks of batches and their files.

Routes = tuple[tuple[str, str, BatchStep], ...]
"""Method and pattern of a path -> what it does."""
_ID = re.compile(r"/(?:batches|files)/(?:(?:output-of|errors-of|results)-)?([^/:]+)")


class Form:
    """How a service speaks of batches."""

    provider: Provider
    routes: Routes
    before = ""  # what stands before the id in a path to make the batch's name
    paging: tuple[str, str]  # what a request for a list calls the size of a page, and the entry before it

    def step(self, request: HttpRequest) -> BatchStep | None:
        """Return what a request does; None where it is not about batches or their files."""
        return next((step for method, pattern, step in self.routes
                     if method == request.method and re.search(pattern, request.path)), None)  # fmt: skip

    def serve(self, step: BatchStep, request: HttpRequest, store: Store) -> Served:
        """Do it, and return the body of the response, or the problem."""
        if step in ("upload", "list"):
            return (self.upload if step == "upload" else self.listing)(request, store)
        if step == "make":
            made = self.make(json.loads(request.body or b"{}"), request, store)
            return made if isinstance(made, Served) else Served(self.view(made, request))
        found = _ID.search(request.path)
        known = None if found is None else store.known(self.before + found[1])
        if known is None or (step == "fetch" and known.over is None):
            return missing("the batch or its file")
        if step == "fetch":
            lines = [line for line in known.lines if _told(known, line) and self.is_in(line, request)]
            return Served(store.results(known, [self.result(known, line) for line in lines]))
        if step == "look":
            store.look(known, self.path(known), request)
            return Served(self.view(known, request))
        return self.cancel(known, request, store)

    def listing(self, request: HttpRequest, store: Store) -> Served:
        """List batches, newest first."""
        mine = [made for made in store.made.values() if made.provider == self.provider]
        mine = [made for made in mine if not made.fate.forgotten]
        for made in mine if self.provider == "anthropic" else ():  # time goes on, though nobody looks at them
            store.look(made, self.path(made), request)
        some, more = _page(request, mine, *self.paging)
        ids = [made.id for made in some]
        return Served(self.listed([self.view(made, request) for made in some], ids, more=more))

    def cancel(self, made: Made, request: HttpRequest, store: Store) -> Served:
        """Ask a batch to stop."""
        store.cancel(made)
        return Served(self.view(made, request))

    def is_in(self, line: Line, request: HttpRequest) -> bool:
        """Return whether the file that is asked for has what became of a request."""
        return True

    def path(self, made: Made) -> str:
        """Return where each of its requests would go by itself."""
        raise NotImplementedError

    def upload(self, request: HttpRequest, store: Store) -> Served:
        """Keep a file."""
        raise NotImplementedError

    def make(self, document: dict[str, Any], request: HttpRequest, store: Store) -> Made | Served:
        """Make a batch, or return what is wrong."""
        raise NotImplementedError

    def listed(self, views: Json, ids: Sequence[str], *, more: bool) -> Json:
        """Return a list of batches."""
        raise NotImplementedError

    def result(self, made: Made, line: Line) -> Json:
        """Return what became of a request, as a line of a file of results."""
        raise NotImplementedError

    def view(self, made: Made, request: HttpRequest) -> Json:
        """Return how far a batch is."""
        raise NotImplementedError


def _told(made: Made, line: Line) -> bool:
    """Whether results mention a request: a batch that says it is complete keeps silent about some."""
    return not (made.over == "completed" and line.kind in ("expired", "cancelled"))


def _lines(data: bytes, name: str, body: str) -> list[Line]:
    """Return the requests in a file of JSON lines, by the names that the service has for their members."""
    rows = [json.loads(row) for row in data.splitlines() if row.strip()]
    return [Line(str(row[name]), row[body]) for row in rows]


class OpenAIForm(Form):
    """``/v1/files`` and ``/v1/batches``."""

    provider: Provider = "openai"
    routes: Routes = (
        ("POST", r"/v1/files$", "upload"),
        ("GET", r"/v1/files/[^/]+/content$", "fetch"),
        ("POST", r"/v1/batches$", "make"),
        ("GET", r"/v1/batches$", "list"),
        ("POST", r"/v1/batches/[^/]+/cancel$", "cancel"),
        ("GET", r"/v1/batches/[^/]+$", "look"),
    )
    paging = ("limit", "after")

    def path(self, made: Made) -> str:
        return "/v1/chat/completions"

    def is_in(self, line: Line, request: HttpRequest) -> bool:
        return (line.kind != "answered") == ("/errors-of-" in request.path)

    def cancel(self, made: Made, request: HttpRequest, store: Store) -> Served:
        if made.over is not None:
            return Served(problem=Problem("bad_request", "the batch is over", status=409))
        return super().cancel(made, request, store)

    def upload(self, request: HttpRequest, store: Store) -> Served:
        fields = form_of(request)
        if fields.get("purpose") != "batch":
            raise BadRequest("purpose must be batch")
        name = re.search(rb'filename="([^"]*)"', request.body)
        file = store.keep("" if name is None else name[1].decode(), fields["file"][0].data)
        about = {"object": "file", "created_at": 0, "purpose": "batch", "status": "processed"}
        size = len(fields["file"][0].data)
        return Served({"id": file, "filename": store.files[file][0], "bytes": size, **about})

    def make(self, document: dict[str, Any], request: HttpRequest, store: Store) -> Made | Served:
        if document.get("endpoint") != "/v1/chat/completions" or document.get("completion_window") != "24h":
            raise BadRequest("endpoint and completion_window are not what this server takes")
        file = store.files.get(str(document.get("input_file_id")))
        if file is None:
            return missing("the input file")
        lines = _lines(file[1], "custom_id", "body")
        if len({line.name for line in lines}) != len(lines):
            raise BadRequest("two requests have one custom_id")
        tag = str((document.get("metadata") or {}).get("fabula", ""))
        return store.make(self.provider, ("batch_", lines[0].body["model"], tag), lines)

    def listed(self, views: Json, ids: Sequence[str], *, more: bool) -> Json:
        return {"object": "list", "data": views, "has_more": more}

    def result(self, made: Made, line: Line) -> Json:
        about = {"id": f"batch_req_{line.name[-8:]}", "custom_id": line.name}
        if line.kind in ("expired", "cancelled"):
            error = {"code": f"batch_{line.kind}", "message": f"This request was {line.kind} with its batch."}
            return {**about, "response": None, "error": error}
        response = {"status_code": line.status, "request_id": made.id, "body": line.answer}
        return {**about, "response": response, "error": None}

    def view(self, made: Made, request: HttpRequest) -> Json:
        counts, fate = made.counts(), made.fate
        word = made.over or ("cancelling" if made.cancelling else "in_progress")
        view: dict[str, Json] = {
            "id": made.id, "object": "batch", "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "input_file_id": "file-input", "created_at": int(made.created), "metadata": {"fabula": made.tag},
            "status": made.fate.word or word,
            "output_file_id": None, "error_file_id": None, "errors": None,
            "request_counts": {"total": len(made.lines), "completed": counts["answered"],
                               "failed": counts["errored"]},
        }  # fmt: skip
        if made.over == "failed":
            code, text = fate.problem or ("invalid_request", "a line is not valid")
            data = {"code": code, "message": text, "line": None, "param": None}
            view["errors"] = {"object": "list", "data": [data]}
        elif made.over is not None:
            shown = [line.kind == "answered" for line in made.lines if _told(made, line)]
            if any(shown):
                view["output_file_id"] = f"output-of-{made.id}"
            if not all(shown):
                view["error_file_id"] = f"errors-of-{made.id}"
        return view


class AnthropicForm(Form):
    """``/v1/messages/batches``."""

    provider: Provider = "anthropic"
    routes: Routes = (
        ("POST", r"/v1/files$", "upload"),
        ("POST", r"/v1/messages/batches$", "make"),
        ("GET", r"/v1/messages/batches$", "list"),
        ("GET", r"/v1/messages/batches/[^/]+/results$", "fetch"),
        ("POST", r"/v1/messages/batches/[^/]+/cancel$", "cancel"),
        ("GET", r"/v1/messages/batches/[^/]+$", "look"),
    )
    paging = ("limit", "after_id")

    def step(self, request: HttpRequest) -> BatchStep | None:
        step = super().step(request)
        return None if step == "upload" and "anthropic-version" not in request.headers else step

    def path(self, made: Made) -> str:
        return "/v1/messages"

    def upload(self, request: HttpRequest, store: Store) -> Served:
        picture = form_of(request)["file"][0]
        file = store.keep(picture.media_type, picture.data, "file_")
        about = {"type": "file", "filename": "picture", "mime_type": picture.media_type}
        created = {"size_bytes": len(picture.data), "created_at": "2026-01-01T00:00:00Z"}
        return Served({"id": file, **about, **created})

    def make(self, document: dict[str, Any], request: HttpRequest, store: Store) -> Made:
        lines = [Line(str(entry["custom_id"]), entry["params"]) for entry in document["requests"]]
        if not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", line.name) for line in lines):
            raise BadRequest("a custom_id has a form that the service does not take")
        return store.make(self.provider, ("msgbatch_", str(lines[0].body["model"]), ""), lines)

    def listed(self, views: Json, ids: Sequence[str], *, more: bool) -> Json:
        ends: list[str | None] = [*ids] or [None]
        return {"data": views, "has_more": more, "first_id": ends[0], "last_id": ends[-1]}

    def result(self, made: Made, line: Line) -> Json:
        if line.kind == "answered":
            result: Json = {"type": "succeeded", "message": line.answer}
        elif line.kind == "errored":
            result = {"type": "errored", "error": line.answer}
        else:
            result = {"type": "canceled" if line.kind == "cancelled" else "expired"}
        return {"custom_id": line.name, "result": result}

    def view(self, made: Made, request: HttpRequest) -> Json:
        word = "ended" if made.over else "canceling" if made.cancelling else "in_progress"
        names = {"answered": "succeeded", "errored": "errored", "expired": "expired", "cancelled": "canceled"}
        told = {names[kind]: count for kind, count in made.counts().items()}
        results = f"http://{request.headers.get('host')}/v1/messages/batches/{made.id}/results"
        created = datetime.fromtimestamp(made.created, UTC).isoformat()
        return {
            "id": made.id, "type": "message_batch", "processing_status": made.fate.word or word,
            "request_counts": {"processing": 0 if made.over else len(made.lines), **told},
            "created_at": created, "expires_at": created, "ended_at": None, "archived_at": None,
            "cancel_initiated_at": None, "results_url": results if made.over else None,
        }  # fmt: skip


class GoogleForm(Form):
    """``/upload/v1beta/files``, ``/v1beta/files`` and ``/v1beta/batches``."""

    provider: Provider = "google"
    routes: Routes = (
        ("POST", r"/upload/v1beta/files", "upload"),
        ("POST", r"/models/[^/:]+:batchGenerateContent$", "make"),
        ("GET", r"/v1beta/batches$", "list"),
        ("POST", r"/v1beta/batches/[^/:]+:cancel$", "cancel"),
        ("GET", r"/v1beta/batches/[^/:]+$", "look"),
        ("GET", r"/v1beta/files/results-[^/:]+:download$", "fetch"),
    )
    before = "batches/"
    paging = ("pageSize", "pageToken")

    def path(self, made: Made) -> str:
        return f"/v1beta/models/{made.model}:generateContent"

    def cancel(self, made: Made, request: HttpRequest, store: Store) -> Served:
        store.cancel(made)
        return Served({})

    def upload(self, request: HttpRequest, store: Store) -> Served:
        command = request.headers.get("x-goog-upload-command", "")
        if command == "start":
            about = json.loads(request.body or b"{}").get("file") or {}
            name = str(about.get("displayName") or about.get("display_name") or "")
            number = store.keep(name, b"", "files/f").partition("/")[2]
            where = f"http://{request.headers.get('host')}/upload/v1beta/files?upload_id={number}"
            return Served({}, {"x-goog-upload-url": where, "x-goog-upload-status": "active"})
        if "finalize" not in command:
            raise BadRequest("this server takes a file in one piece")
        file = f"files/{request.target.partition('upload_id=')[2]}"
        if file not in store.files:
            return missing("the upload")
        name = store.files[file][0]
        store.files[file] = (name, request.body)
        view = {"name": file, "displayName": name, "uri": f"http://x/v1beta/{file}", "state": "ACTIVE"}
        return Served({"file": view}, {"x-goog-upload-status": "final"})

    def make(self, document: dict[str, Any], request: HttpRequest, store: Store) -> Made | Served:
        batch = document.get("batch") or {}
        config = batch.get("inputConfig") or batch.get("input_config") or {}
        file = store.files.get(str(config.get("fileName") or config.get("file_name")))
        if file is None:
            return missing("the input file")
        model = request.path.rpartition("/models/")[2].partition(":")[0]
        tag = str(batch.get("displayName") or batch.get("display_name") or "")
        return store.make(self.provider, ("batches/b", model, tag), _lines(file[1], "key", "request"))

    def listed(self, views: Json, ids: Sequence[str], *, more: bool) -> Json:
        return {"operations": views, **({"nextPageToken": ids[-1]} if more else {})}

    def result(self, made: Made, line: Line) -> Json:
        if line.kind in ("expired", "cancelled"):
            code, text = (4, "deadline") if line.kind == "expired" else (1, "cancelled")
            error = {"code": code, "message": f"The request was {line.kind} ({text})."}
            return {"key": line.name, "error": error}
        if line.kind == "errored":
            body: Mapping[str, Any] = line.answer if isinstance(line.answer, dict) else {}
            return {"key": line.name, "error": body.get("error", body)}
        return {"key": line.name, "response": line.answer}

    def view(self, made: Made, request: HttpRequest) -> Json:
        counts, fate = made.counts(), made.fate
        words = {"completed": "SUCCEEDED", "expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}
        word = words[made.over] if made.over else "CANCELLING" if made.cancelling else "RUNNING"
        answered, whole = counts["answered"], len(made.lines)
        if made.over == "completed" and fate.partial_word and answered < whole:
            word = "PARTIALLY_SUCCEEDED"
        about: dict[str, Json] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{made.model}", "displayName": made.tag,
            "state": made.fate.word or f"BATCH_STATE_{word}", "name": made.id,
            "createTime": datetime.fromtimestamp(made.created, UTC).isoformat(),
            "batchStats": {"requestCount": str(whole), "successfulRequestCount": str(answered),
                           "failedRequestCount": str(counts["errored"])},
        }  # fmt: skip
        view: dict[str, Json] = {"name": made.id, "metadata": about, "done": made.over is not None}
        if made.over == "failed":
            code, text = fate.problem or ("3", "a line is not valid")
            view["error"] = {"code": int(code) if code.isdecimal() else 3, "message": text}
        elif made.over is not None:
            about["output"] = view["response"] = {
                "responsesFile": f"files/results-{made.id.partition('/')[2]}"
            }
        return view


FORMS: tuple[Form, ...] = (AnthropicForm(), OpenAIForm(), GoogleForm())
"""All of them."""
