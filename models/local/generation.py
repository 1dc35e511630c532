"""One open model in this process: what transformers loads, and how it answers several requests together."""

import asyncio
import io
import json
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import Field, ValidationError

from ...errors import ConfigError, FabulaError, MissingRequirement, ModelUnavailable
from ...schemas.canonical import Json
from ...schemas.plain_files import reason_of
from ...schemas.values import Own
from ..chat import CallFault, ChatRequest, Image, Reply, ReplySchema, Usage
from ..edge import bounded, messages_to_send
from ..faults import one_line
from ..keys import Redactor
from ..options import BYTES, Files, ModelOptions, find_files
from ..spec import ModelSpec
from ..vision.weights import quiet_libraries

COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""How JSON is spaced: one way only, as a model that may choose can write white space without end."""
_GB = 1e9


class Reading(Own):
    """The members of ``extra`` of a model in this process: how it reads what it is asked."""

    template: dict[str, Json] = Field(
        default_factory=dict, description="Variables of the chat template, such as enable_thinking."
    )
    pictures: dict[str, Json] = Field(
        default_factory=dict, description="Settings of its picture processor, such as size."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A request that waits for its reply."""

    request: ChatRequest
    future: "Future[Reply]" = field(default_factory=Future)  # cancelled where nobody waits any more

    @property
    def has_pictures(self) -> bool:
        return any(isinstance(part, Image) for message in self.request.messages for part in message.parts)

    def answer(self, reply: Reply | Exception) -> None:
        """Hand over the reply, or why there is none."""
        with suppress(InvalidStateError):  # given up in this moment
            if isinstance(reply, Exception):
                self.future.set_exception(reply)
            else:
                self.future.set_result(reply)


@dataclass(slots=True)
class _Row:
    """One reply under way."""

    question: Question
    most: int  # tokens that it may have
    matcher: Any = None  # what knows which tokens keep to the schema; None for free text
    random: Any = None  # a generator of its own, where tokens are drawn
    tokens: list[int] = field(default_factory=list)
    ended: bool = False  # by a token that ends a reply

    @property
    def is_over(self) -> bool:
        return self.ended or len(self.tokens) >= self.most or self.question.future.cancelled()


class LocalModel:
    """A model with its processor, loaded.

    The sampling that its authors recommend is not used: a request says its temperature, and at 0 the
    likeliest token is taken. Above 0 each reply draws with a generator of its own, made from the request's
    seed, so that neighbours in a batch change nothing but rounding.
    """

    def __init__(self, spec: ModelSpec, options: ModelOptions, files: Files) -> None:
        self.spec, self._reading = spec, reading(spec, options)
        sys.stderr.write(f"{room(spec, options, files)}\n")
        with _quiet():
            self._load(options, files)
        self._grammars: Any = None

    def _load(self, options: ModelOptions, files: Files) -> None:
        import torch
        import transformers
        from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, AutoConfig

        file = {"gguf_file": files.gguf} if files.gguf else {}
        here: dict[str, Any] = {"local_files_only": True, **file}
        config = AutoConfig.from_pretrained(files.folder, **here)
        self.sees = files.gguf is None and type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        kind = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
        reader = transformers.AutoProcessor if self.sees else transformers.AutoTokenizer
        self._processor: Any = reader.from_pretrained(files.folder, **here, **self._reading.pictures)
        self._tokenizer: Any = self._processor.tokenizer if self.sees else self._processor
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        dtype: Any = "auto" if options.dtype == "auto" else getattr(torch, options.dtype)
        self._model: Any = kind.from_pretrained(
            files.folder, dtype=dtype, use_safetensors=True, **here,
            device_map="auto" if options.device == "auto" else {"": options.device},
        ).eval()  # fmt: skip
        ends = self._model.generation_config.eos_token_id
        several = ends if isinstance(ends, list) else [ends]
        self._ends = sorted({int(end) for end in (*several, self._tokenizer.eos_token_id) if end is not None})
        text = config.get_text_config()
        self._context = int(getattr(text, "max_position_embeddings", 0) or sys.maxsize)
        self._vocabulary = int(text.vocab_size)
        name = self.spec.public.partition(":")[2].partition("@")[0]
        self.name = f"{name}@{options.weights} ({str(self._model.dtype).removeprefix('torch.')})"

    def answer(self, questions: Sequence[Question]) -> None:
        """Answer requests together; where memory does not suffice for that, in halves."""
        import torch

        waiting = [question for question in questions if not question.future.cancelled()]
        try:
            for question, reply in self._replies(waiting):
                question.answer(reply)
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            if len(waiting) == 1:
                said = f"the memory of the device does not suffice for it: {str(error).splitlines()[0]}"
                waiting[0].answer(CallFault("too_long", said))
                return
            middle = len(waiting) // 2
            self.answer(waiting[:middle])
            self.answer(waiting[middle:])

    def _replies(self, questions: Sequence[Question]) -> list[tuple[Question, Reply | CallFault]]:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        answered: list[tuple[Question, Reply | CallFault]] = []
        rows: list[_Row] = []
        for question in questions:
            try:
                rows.append(self._row(question))
            except CallFault as fault:
                answered.append((question, fault))
        if not rows:
            return answered
        inputs = self._read([row.question.request for row in rows])
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        fitting = [row for row, length in zip(rows, lengths, strict=True) if length < self._context]
        if len(fitting) < len(rows):
            said = f"the model reads at most {self._context:,} tokens; the prompt has "
            answered += [
                (row.question, CallFault("too_long", f"{said}{length:,}"))
                for row, length in zip(rows, lengths, strict=True)
                if length >= self._context
            ]
            return answered + self._replies([row.question for row in fitting])
        for row, length in zip(rows, lengths, strict=True):
            row.most = min(row.most, self._context - length)
        with torch.inference_mode(), _quiet():
            self._model.generate(
                **inputs.to(self._model.device),
                generation_config=GenerationConfig(
                    do_sample=False, max_new_tokens=max(row.most for row in rows),
                    eos_token_id=self._ends, pad_token_id=self._tokenizer.pad_token_id,
                ),
                logits_processor=LogitsProcessorList([_Steering(rows)]),
                stopping_criteria=StoppingCriteriaList([_Over(rows, self._ends)]),
            )  # fmt: skip
        return answered + [
            (row.question, self._reply(row, length)) for row, length in zip(rows, lengths, strict=True)
        ]

    def _row(self, question: Question) -> _Row:
        import torch

        request = question.request
        if question.has_pictures and not self.sees:
            raise CallFault("unsupported", f"{self.spec.public} is a model of text alone")
        row = _Row(question, request.max_tokens)
        if request.schema is not None and request.structured != "prompt":
            row.matcher = self._matcher(request.schema, free=request.structured == "json")
        if request.temperature:
            seed = torch.seed() if request.seed is None else request.seed
            row.random = torch.Generator("cpu").manual_seed(seed)
        return row

    def _matcher(self, schema: ReplySchema, *, free: bool) -> Any:  # noqa: ANN401 - an LLMatcher
        from llguidance import LLMatcher
        from llguidance.hf import from_tokenizer

        if self._grammars is None:
            self._grammars = from_tokenizer(self._tokenizer, n_vocab=self._vocabulary, eos_token=self._ends)
        # In the order of the schema: what is written first is thought of first.
        wanted = json.dumps({"type": "object"} if free else bounded(schema.schema))
        grammar = LLMatcher.grammar_from_json_schema(wanted, overrides=COMPACT)
        matcher = LLMatcher(self._grammars, grammar)
        if matcher.is_error():
            raise CallFault("unsupported", f"the schema {schema.name}: {matcher.get_error()}")
        return matcher

    def _read(self, requests: Sequence[ChatRequest]) -> Any:  # noqa: ANN401 - a BatchFeature of tensors
        """Return requests as the model reads them, padded on the left."""
        if self._processor.chat_template is None:
            raise MissingRequirement(
                f"model {self.spec}", what="it has no chat template: it completes texts, and answers nothing",
                fix="choose a model that is made for chat (names often end in Instruct, Chat or it)",
            )  # fmt: skip
        padding = {"padding": True}
        more = {"processor_kwargs": padding} if self.sees else padding
        asked = [[self._message(message.role, message.parts) for message in messages_to_send(request)]
                 for request in requests]  # fmt: skip
        try:
            return self._rendered(asked, more)
        except Exception as error:  # templates raise what they like
            joined = [_system_joined(messages) for messages in asked]
            if joined == asked:
                raise
            try:
                return self._rendered(joined, more)
            except Exception:  # noqa: BLE001 - the same
                raise error from None

    def _rendered(self, asked: list[list[dict[str, Any]]], more: Mapping[str, Any]) -> Any:  # noqa: ANN401 - see _read
        return self._processor.apply_chat_template(
            asked, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt",
            sanitize_control_tokens=True, **more, **self._reading.template,
        )  # fmt: skip

    def _message(self, role: str, parts: Sequence[str | Image]) -> dict[str, Any]:
        if not self.sees:
            return {"role": role, "content": "".join(part for part in parts if isinstance(part, str))}
        return {"role": role, "content": [_part(part) for part in parts]}

    def _reply(self, row: _Row, length: int) -> Reply:
        usage = Usage(length, len(row.tokens) + row.ended)
        text = self._tokenizer.decode(row.tokens, skip_special_tokens=True)
        if not row.ended:
            return Reply("truncated", text, f"cut off at {row.most} tokens", "length", self.name, usage)
        outcome: Literal["ok", "empty"] = "ok" if text.strip() else "empty"
        detail = None if outcome == "ok" else "the model ended its reply at once"
        return Reply(outcome, text, detail, "stop", self.name, usage)


@contextmanager
def _quiet() -> Iterator[None]:
    import transformers  # noqa: F401 - so that it is quiet, too

    with quiet_libraries():
        yield


def _part(part: str | Image) -> dict[str, Any]:
    from PIL import Image as Pictures

    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "image": Pictures.open(io.BytesIO(part.data)).convert("RGB")}


def _system_joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages for templates that know no system message: it begins the user's first."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first = messages[0]["content"], messages[1]["content"]
    if isinstance(first, str):
        return [{**messages[1], "content": f"{system}\n\n{first}"}, *messages[2:]]
    return [{**messages[1], "content": [*system, {"type": "text", "text": "\n\n"}, *first]}, *messages[2:]]


class _Steering:
    """Leaves a reply only the next token that may come: those that its schema allows, or the one drawn."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def __call__(self, _ids: Any, scores: Any) -> Any:  # noqa: ANN401 - tensors
        """Return the scores of the next tokens, shape (rows, vocabulary)."""
        import torch

        for row, kept in zip(self._rows, scores, strict=True):
            if row.is_over:
                continue
            if row.matcher is not None:
                bits = torch.frombuffer(bytearray(row.matcher.compute_bitmask()), dtype=torch.uint8)
                allowed = bits[:, None].bitwise_and(2 ** torch.arange(8, dtype=torch.uint8)).ne(0).flatten()
                kept[: allowed.numel()].masked_fill_(~allowed[: kept.numel()].to(kept.device), -torch.inf)
                kept[allowed.numel() :] = -torch.inf
            if row.random is not None:
                chances = torch.softmax(kept.float().cpu() / row.question.request.temperature, dim=-1)
                drawn = int(torch.multinomial(chances, 1, generator=row.random))
                kept.fill_(-torch.inf)
                kept[drawn] = 0.0
        return scores


class _Over:
    """Notes the last token of each reply, and says which replies are over."""

    def __init__(self, rows: Sequence[_Row], ends: Sequence[int]) -> None:
        self._rows, self._ends = rows, frozenset(ends)

    def __call__(self, ids: Any, _scores: Any, **_more: object) -> Any:  # noqa: ANN401 - tensors
        """Return for each row whether it is over, shape (rows,)."""
        import torch

        for row, token in zip(self._rows, ids[:, -1].tolist(), strict=True):
            if row.is_over:
                continue
            row.ended = token in self._ends
            if not row.ended:
                row.tokens.append(token)
                if row.matcher is not None:
                    row.matcher.consume_token(token)
        return torch.tensor([row.is_over for row in self._rows], device=ids.device)


def room(spec: ModelSpec, options: ModelOptions, files: Files) -> str:
    """Return where a model goes, and what memory it takes there; raise where it cannot fit."""
    import psutil
    import torch

    parameters, size, precision = files.size(options.dtype)
    places = {"memory": psutil.virtual_memory().available}
    if options.device != "cpu" and torch.cuda.is_available():
        named = [torch.device(options.device).index or 0] if options.device.startswith("cuda") else None
        for number in named or range(torch.cuda.device_count()):
            places[f"cuda:{number}"] = torch.cuda.mem_get_info(number)[0]
    free = " and ".join(f"{bytes_ / _GB:.1f} GB of {place}" for place, bytes_ in places.items())
    said = f"{parameters / 1e6:,.0f} million parameters, {size / _GB:.1f} GB in {precision}; free: {free}"
    if size > sum(places.values()):
        raise MissingRequirement(
            f"model {spec}", what=f"it does not fit: {said}",
            fix="choose a smaller or a quantised model, or another machine",
        )  # fmt: skip
    return f"{spec.public} is loaded: {said}"


def reading(spec: ModelSpec, options: ModelOptions) -> Reading:
    """Return how a model reads what it is asked; raise where its settings are wrong."""
    if options.dtype not in ("auto", *BYTES):
        raise ConfigError(
            f'[models."{spec}"] dtype', what=f"there is no precision {options.dtype}",
            fix="auto, float32, float16 or bfloat16",
        )  # fmt: skip
    try:
        return Reading.model_validate(options.extra)
    except ValidationError as error:
        problem = reason_of(error)
    fix = f"it may hold: {', '.join(Reading.model_fields)}"
    raise ConfigError(f'[models."{spec}"] extra', what=problem, fix=fix)


def check_libraries(spec: ModelSpec, *, enforces: bool) -> None:
    """Check that what loads and runs a model is installed; imports nothing.

    ``enforces``: whether replies are held to their schema, which needs one library more.
    """
    wanted = ["torch", "transformers", "accelerate", *(["llguidance"] if enforces else ())]
    missing = [name for name in wanted if find_spec(name) is None]
    if not missing:
        return
    loss = (
        f'; or without it: structured = "prompt" under [models."{spec}"], where nothing holds the model to a'
        " schema, and a small one rarely keeps to it"
    )
    raise MissingRequirement(
        f"model {spec}", what=f"the library {missing[0]} is not installed",
        fix=f"pip install 'fabula[local]'{loss if missing == ['llguidance'] else ''}",
    )  # fmt: skip


# -- Adapter for open models that transformers runs in this process: ``hf:ORG/NAME``, a folder or a file
#
# One thread loads the model and answers together whatever waits, so that the event loop stays free.

GATHERING = 0.02
"""Seconds in which the thread takes others along after the first request of a batch."""


class InProcess:
    """A model of this process, loaded when it is first asked.

    As many requests as ``concurrency`` allows are answered together, those with pictures apart from those
    without.

    ``spec``: its name is ``ORG/NAME[@REVISION]`` of the Hub's cache, a folder, or a GGUF file. ``options``:
    its settings; ``extra`` holds :class:`.generation.Reading`. ``redactor``: takes secrets out of error
    texts.

    Raises ConfigError: a setting is wrong. Raises MissingRequirement: a library or the weights are not here.
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
        """Let the model go; what is being answered is given up at the token that it is at.

        The thread is waited for: Python that ends while a thread is inside a library is aborted by it.
        """
        for question in self._open:
            question.future.cancel()
        self._arrived.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

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

    def _fault(self, error: Exception, model: LocalModel | None) -> CallFault | FabulaError:
        said = one_line(self._redactor.redact(f"{type(error).__name__}: {error}"))
        if model is None:
            return ModelUnavailable(
                f"model {self._spec}", what=f"transformers cannot load it: {said}",
                fix="see whether its files are whole and of a kind that transformers reads",
            )  # fmt: skip
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
