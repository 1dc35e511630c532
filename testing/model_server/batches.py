"""Files and batches of the three services: kept in memory, answered as scripted, wrong as scripted."""

import base64
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from ...schemas.canonical import Json
from .answers import Problem
from .wire import HttpRequest

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
    # what is said as its state instead of the truth, for ever or with ``word_looks`` so often
    word: str | None = None
    word_looks: int | None = None  # how often the word is said; None: for ever
    shuffled: bool = True  # whether results come in another order than the requests
    torn: int = 0  # how often results are given with their last line cut; -1: always
    # whether Google calls it partially succeeded where some requests were not answered
    partial_word: bool = False
    problem: tuple[str, str] | None = None  # code and text of why it failed, where it did
    bad_lines: tuple[int, ...] = ()  # numbers of the requests, from 1, that are said to be why it failed
    slow_cancel: int = 1  # looks at it between a request to cancel it and its end
    strange_result: bool = False  # whether a result has a type that nobody knows (Anthropic)
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
    said: int = 0  # how often the strange word was said

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its requests."""
        return tuple(line.name for line in self.lines)

    def counts(self) -> dict[Kind, int]:
        """Return how many requests ended how; none has before the batch is over."""
        kinds: tuple[Kind, ...] = ("answered", "errored", "expired", "cancelled")
        return {kind: sum(line.kind == kind for line in self.lines) if self.over else 0 for kind in kinds}

    def strange_word(self) -> str | None:
        """Return the word that is said instead of the state, where one is said now."""
        fate = self.fate
        if fate.word is None or (fate.word_looks is not None and self.said >= fate.word_looks):
            return None
        self.said += 1
        return fate.word


Answering: TypeAlias = Callable[[str, Mapping[str, Any], HttpRequest], tuple[int, Json]]
"""Gives status and body of the response to a request inside a batch: its path, its body, and what asked."""
Fates: TypeAlias = Callable[[Made], Fate] | Sequence[Fate] | Fate | None


class Form(Protocol):
    """How a service speaks of batches."""

    provider: Provider

    def step(self, request: HttpRequest) -> BatchStep | None:
        """Return what a request does; None where it is not about batches or their files."""
        ...

    def serve(self, step: BatchStep, request: HttpRequest, store: "Store") -> "Served":
        """Do it, and return the body of the response, or the problem."""
        ...


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
        """Return the file of some results, in another order and torn where that is its fate."""
        shown = list(lines)
        if made.fate.shuffled:
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


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def page(request: HttpRequest, entries: Sequence[Made], size: str, after: str) -> tuple[list[Made], bool]:
    """Return a page of a list, newest first, and whether there are more."""
    from urllib.parse import parse_qs

    query = parse_qs(request.target.partition("?")[2])
    most = int(query.get(size, ["20"])[0])
    newest = list(reversed(entries))
    last = query.get(after, [None])[0]
    start = next((n + 1 for n, made in enumerate(newest) if made.id == last), 0)
    return newest[start : start + most], start + most < len(newest)
