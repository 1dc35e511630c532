"""How a stage asks a language model: what it hands over, what it gets back, and what can go wrong.

A stage that may ask is written ``async def run(item, tools)`` and asks through ``tools.asker``. Behind it are
budget, retries, limits and the journal: the same question is answered from the journal, free of charge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..models.chat import ChatRequest, Reply
from ..schemas.canonical import Json

T = TypeVar("T")

UNAVAILABLE = "unavailable"
"""Code of an item that failed because the model could not be reached: nothing was paid, so it runs again."""
REHEARSED = "rehearsed"
"""Code of a question in a rehearsal, which nobody answers (see :mod:`.rehearsal`)."""
UNASKED = "unasked"
"""Code of a question that was not asked yet, where only known replies are used (see :mod:`.replay`)."""


UNUSABLE = frozenset({"refused", "blocked", "truncated", "empty", "malformed"})
"""Codes of questions that a model was asked, and answered with nothing of use: they may be asked again."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came back for a question, as it came.

    Attributes:
        reply: the raw reply.
        cost: USD that the run paid for it; None where the price is not known.
    """

    reply: Reply
    cost: float | None


class BadReply(ValueError):
    """A reply has the right shape and says something that cannot be; the text tells the model what."""


class NoAnswer(Exception):
    """No usable reply; if the stage does not catch it, the item fails with this code.

    Codes: ``refused``, ``blocked``, ``truncated``, ``empty``, ``malformed``, ``too_long``, ``bad_request``,
    ``unavailable``. What failed with ``unavailable`` is run again next time; the others are kept, and those
    in :data:`UNUSABLE` are asked again where the run allows more attempts (see :mod:`.attempts`).

    Attributes:
        code: what happened.
        reason: the same for people, in one line.
        evidence: the raw reply, if there was one.
        receipt: the same with everything about it.
        missed: the attempts at the same question before this one.
    """

    def __init__(
        self, code: str, reason: str, evidence: str | None = None, receipt: Receipt | None = None
    ) -> None:
        super().__init__(code, reason, evidence)
        self.code, self.reason, self.evidence, self.receipt = code, reason, evidence, receipt
        self.missed: tuple[NoAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One question to a model.

    Attributes:
        request: what is asked; connection settings are added behind the asker.
        read: makes the value that the stage wants from the reply, which is JSON that satisfies the schema (or
            the text, where there is no schema); raises BadReply where it cannot be right.
        prompt: the prompt it was made from, as ``id@version#hash``.
        repair: whether one more request, quoting the problem, may be sent for a malformed reply.
        sample: which answer to take; answers to the same request with other numbers are asked anew.
        attempts: most attempts while none gives a usable answer; None for as many as the run allows.
    """

    request: ChatRequest
    read: Callable[[Json], T]
    prompt: str
    repair: bool = True
    sample: int = 0
    attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a model answered.

    Attributes:
        value: what ``read`` made of it.
        notes: ``json_repaired`` where the JSON had to be mended, ``asked_again`` where a repair was sent,
            ``attempt_2`` where the first attempt gave nothing of use.
        receipt: the reply that it was read from; None from an asker that asks nobody.
        missed: the attempts at the same question before this one.
    """

    value: T
    notes: tuple[str, ...] = ()
    receipt: Receipt | None = None
    missed: tuple[NoAnswer, ...] = ()


class Asker(Protocol):
    """Answers questions; one for each item and stage."""

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        """Return the model's answer.

        Raises:
            NoAnswer: there is no usable one.
        """
        ...
