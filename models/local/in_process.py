"""Adapter for open models that transformers runs in this process: ``hf:ORG/NAME``, a folder or a file.

One thread loads the model and answers together whatever waits, so that the event loop stays free.
"""

import asyncio
import queue
import threading
import time

from ...errors import FabulaError
from ..chat import CallFault, ChatRequest, Reply
from ..faults import one_line
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec
from .files import find_files
from .generation import LocalModel, Question, check_libraries, reading

GATHERING = 0.02
"""Seconds in which the thread takes others along after the first request of a batch."""


class InProcess:
    """A model of this process, loaded when it is first asked.

    As many requests as ``concurrency`` allows are answered together, those with pictures apart from those
    without.

    Args:
        spec: its name is ``ORG/NAME[@REVISION]`` of the Hub's cache, a folder, or a GGUF file.
        options: its settings; ``extra`` holds :class:`.generation.Reading`.
        redactor: takes secrets out of error texts.

    Raises:
        ConfigError: a setting is wrong.
        MissingRequirement: a library or the weights are not here.
    """

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        check_libraries(spec, enforces=options.structured != "prompt")
        reading(spec, options)
        self._spec, self._options, self._redactor = spec, options, redactor
        self._files = find_files(spec, options)
        self._arrived: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._held: list[Question] = []
        self._open: set[Question] = set()
        self._thread: threading.Thread | None = None

    async def complete(self, request: ChatRequest) -> Reply:
        """Answer once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"model {self._spec}", daemon=True)
            self._thread.start()
        question = Question(request)
        self._open.add(question)
        self._arrived.put(question)
        try:
            # Cancelled with the call: the thread then goes on without it after the token that it is at.
            return await asyncio.wrap_future(question.future)
        finally:
            self._open.discard(question)

    async def close(self) -> None:
        """Let the model go; what is being answered is given up."""
        for question in self._open:
            question.future.cancel()
        self._arrived.put(None)

    def _work(self) -> None:
        model: LocalModel | None = None
        while batch := self._next_batch():
            try:
                if model is None:
                    model = LocalModel(self._spec, self._options, self._files)
                model.answer(batch)
            except Exception as error:  # noqa: BLE001 - adapter boundary
                failure = error if isinstance(error, CallFault | FabulaError) else self._fault(error, model)
                for question in batch:
                    question.answer(failure)

    def _fault(self, error: Exception, model: LocalModel | None) -> CallFault:
        said = one_line(self._redactor.redact(f"{type(error).__name__}: {error}"))
        if model is None:
            return CallFault("unsupported", f"transformers cannot load {self._spec.name}: {said}")
        return CallFault("bad_request", f"the model failed: {said}")

    def _next_batch(self) -> list[Question]:
        """Return the requests that are answered next, waiting for the first; none at the end."""
        first = self._held.pop(0) if self._held else self._arrived.get()
        if first is None:
            return []
        end = time.monotonic() + GATHERING
        while (left := end - time.monotonic()) > 0 and len(self._held) + 1 < self._options.concurrency:
            try:
                question = self._arrived.get(timeout=left)
            except queue.Empty:
                break
            if question is None:
                return []
            self._held.append(question)
        alike = [question for question in self._held if question.has_pictures == first.has_pictures]
        batch = [first, *alike[: self._options.concurrency - 1]]
        self._held = [question for question in self._held if question not in batch]
        return batch
