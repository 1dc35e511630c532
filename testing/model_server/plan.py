"""Which faults strike, decided by hashes: the same questions meet the same faults in every run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from .asked import Asked
from .faults import ErrorFault, Fault, concerns


@dataclass(frozen=True)
class FaultPlan:
    """Injects faults at given rates.

    What a model says is bound to the question (a refusal stays one however often it is asked); errors and
    deliveries are drawn anew for every attempt, so that a client that asks again gets through.

    Attributes:
        seed: another seed, other questions.
        rates: fault -> share of questions, or of attempts, that it strikes; the shares of each of the two
            groups add to at most 1.
        always: faults that strike every question they concern, before any is drawn; for those that
            concern some only, such as ``TooLong(limit=8192)``.
        calm_after: attempts at a question after which only faults of content strike it; None: never.

    Raises:
        ValueError: a rate is negative, or a group's rates add to more than 1.
    """

    seed: int = 0
    rates: Mapping[Fault, float] = field(default_factory=dict)
    always: tuple[Fault, ...] = ()
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
