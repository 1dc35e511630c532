"""Answers and faults from files: for the command line, and for tests that rather read than compute."""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.values import Own
from .answers import Answer, Given
from .asked import Asked, Protocol
from .faults import BadRequestFault, ErrorFault, Fault, concerns, known_faults
from .serving import Handler, Outcome, smallest

# Which faults strike, decided by hashes: the same questions meet the same faults in every run.


@dataclass(frozen=True)
class FaultPlan:
    """Injects faults at given rates.

    What a model says is bound to the question (a refusal stays one however often it is asked); errors and
    deliveries are drawn anew for every attempt, so that a client that asks again gets through.

    Raises:
        ValueError: a rate is negative, or a group's rates add to more than 1.
    """

    seed: int = 0  # another seed, other questions
    # fault -> share of questions, or of attempts, that it strikes; the shares of each of the two groups add
    # to at most 1
    rates: Mapping[Fault, float] = field(default_factory=dict)
    # faults that strike every question they concern, before any is drawn; for those that concern some only,
    # such as ``TooLong(limit=8192)``
    always: tuple[Fault, ...] = ()
    # attempts at a question after which only faults of content strike it; None: never
    calm_after: int | None = 3

    def __post_init__(self) -> None:
        for content in (True, False):
            total = sum(rate for fault, rate in self.rates.items() if fault.content == content)
            if total > 1 + 1e-9:
                raise ValueError(f"rates of one group of faults add to {total:g}, which is more than 1")
        if any(rate < 0 for rate in self.rates.values()):
            raise ValueError("a rate is negative")

    def __call__(self, asked: Asked) -> tuple[Fault, ...]:
        """Return the faults that strike a question; none for most."""
        first = next((fault for fault in self.always if concerns(fault, asked)), None)
        return self.decide(asked.key, asked.attempt) if first is None else (first,)

    def decide(self, key: str, attempt: int) -> tuple[Fault, ...]:
        """Return the faults that strike an attempt at the question of a key.

        A slow answer still says what the question meets in every run, so both faults may strike together.
        """
        delivery = None
        if self.calm_after is None or attempt <= self.calm_after:
            delivery = self._drawn(f"{self.seed}|{key}|{attempt}", content=False)
        if isinstance(delivery, ErrorFault):
            return (delivery,)
        content = self._drawn(f"{self.seed}|{key}", content=True)
        return tuple(fault for fault in (content, delivery) if fault is not None)

    def _drawn(self, text: str, *, content: bool) -> Fault | None:
        mark = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
        for fault, rate in self.rates.items():
            if fault.content == content:
                mark -= rate
                if mark < 0:
                    return fault
        return None


T = TypeVar("T")


class When(Own):
    """Which questions an entry answers: those for which all that is given holds."""

    contains: str | tuple[str, ...] = Field(default=(), description="Texts that the question contains.")
    schema_name: str | None = Field(default=None, alias="schema", description="The reply schema's name.")
    model: str | None = None
    protocol: Protocol | None = None
    attempt: int | None = Field(default=None, description="The n-th time that this very question is asked.")
    call: int | None = Field(default=None, description="The n-th question for which the rest holds.")

    def fits(self, asked: Asked) -> bool:
        """Return whether all but ``call`` holds."""
        texts = (self.contains,) if isinstance(self.contains, str) else self.contains
        wanted = (
            (self.schema_name, asked.schema_name),
            (self.model, asked.model),
            (self.protocol, asked.protocol),
            (self.attempt, asked.attempt),
        )
        return all(text in asked.text for text in texts) and all(
            value is None or value == found for value, found in wanted
        )


class Entry(Own):
    """One entry of a script; without answer, reply and fault it gives the smallest reply to the schema."""

    when: When = When()
    answer: str | dict[str, Any] | list[Any] | None = Field(default=None, description="Text, or JSON for it.")
    reply: dict[str, Any] | None = Field(default=None, description="The fields of an Answer.")
    fault: str | dict[str, Any] | None = Field(default=None, description="A fault by name, or with fields.")


def scripted(path: Path) -> Handler:
    """Return a handler that answers from a script: a YAML list, or JSON lines, of entries.

    The first entry whose ``when`` fits answers; a question that fits none gets status 400.
    """
    entries = [_entry(document, f"{path}: entry {n}") for n, document in enumerate(_documents(path), 1)]
    seen: Counter[int] = Counter()

    def handler(asked: Asked) -> Outcome:
        for index, (when, outcome) in enumerate(entries):
            if not when.fits(asked):
                continue
            seen[index] += 1
            if when.call is None or when.call == seen[index]:
                return smallest(asked) if outcome is None else outcome
        name = asked.schema_name or "no schema"
        return BadRequestFault(message=f"no entry of the script fits this question ({name})")

    return handler


def read_plan(path: Path) -> FaultPlan:
    """Return the fault plan of a YAML or JSON file with ``seed``, ``calm_after``, ``always`` and ``rates``.

    ``always`` lists faults; ``rates`` lists objects with ``fault`` and ``rate``.
    """
    documents = _documents(path)
    document = documents[0] if len(documents) == 1 else documents
    shape = "an object with seed, calm_after, always and rates"
    if not isinstance(document, dict) or not document.keys() <= {"seed", "calm_after", "always", "rates"}:
        raise ConfigError(str(path), expected=shape, found=_short(document), fix="write it as documented")
    try:
        rates = {read_fault(entry["fault"], str(path)): entry["rate"] for entry in document.get("rates", ())}
        always = tuple(read_fault(entry, str(path)) for entry in document.get("always", ()))
        rest = {name: document[name] for name in ("seed", "calm_after") if name in document}
        return FaultPlan(rates=rates, always=always, **rest)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            str(path), expected=shape, found=repr(error), fix="write it as documented"
        ) from None


def read_fault(document: Json, where: str) -> Fault:
    """Return the fault of a name such as ``rate_limited``, or of an object with ``name`` and its fields."""
    about = {"name": document} if isinstance(document, str) else dict(document)
    name, kinds = about.pop("name", None), known_faults()
    if name not in kinds:
        raise ConfigError(
            where,
            expected=f"a fault among {', '.join(sorted(kinds))}",
            found=repr(name),
            fix="correct its name",
        )
    return _made(kinds[name], about, where)


def _entry(document: Json, where: str) -> tuple[When, Outcome | None]:
    try:
        entry = Entry.model_validate(document)
    except ValidationError as error:
        wanted = "an object with when, and one of answer, reply and fault"
        raise ConfigError(where, expected=wanted, found=_first(error), fix="correct the entry") from None
    outcome: Given | None = entry.answer if entry.reply is None else _made(Answer, entry.reply, where)
    if entry.fault is None:
        return entry.when, outcome
    return entry.when, dataclasses.replace(read_fault(entry.fault, where), answer=outcome)


def _made(kind: type[T], given: Mapping[str, Json], where: str) -> T:
    """Return a dataclass made from JSON, its fields' types checked."""
    types = get_type_hints(kind)
    fields = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    try:
        if not given.keys() <= fields:
            raise ValueError(f"no field {', '.join(sorted(given.keys() - fields))}")
        values = {name: TypeAdapter(types[name]).validate_python(value) for name, value in given.items()}
    except ValueError as error:
        wanted = f"fields of {kind.__name__}: {', '.join(sorted(fields))}"
        raise ConfigError(where, expected=wanted, found=_first(error), fix="correct the fields") from None
    return kind(**values)


def _documents(path: Path) -> list[Json]:
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        found = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(
            str(path),
            expected="a readable YAML, JSON or .jsonl file",
            found=_first(error),
            fix="correct the file",
        ) from None
    return found if isinstance(found, list) else [found]


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        about: Mapping[str, Any] = error.errors()[0]
        return f"{'.'.join(map(str, about['loc']))}: {about['msg']}".lstrip(": ")
    return " ".join(str(error).split())


def _short(document: Json) -> str:
    text = repr(document)
    return text if len(text) <= 80 else text[:77] + "..."
