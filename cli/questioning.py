"""How ``fabula models check`` asks one model, and what it found."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..models.chat import CallFault, ChatRequest, Reply, Structured, Usage
from ..models.limits import Clock
from ..models.options import ModelOptions
from ..models.spec import ModelSpec

if TYPE_CHECKING:
    from ..models.client import ModelClient

SEED = 42
Use: TypeAlias = Literal["drafting", "judging"]
"""What a model can be used for: drafting fields of records, or judging pictures."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at."""

    name: str  # what it is
    status: Literal["ok", "warning", "failed"]  # ``ok``, ``warning`` (works, with a loss), ``failed``
    detail: str  # what was found
    fix: str = ""  # what to do, if anything


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What a check of one model found."""

    model: str  # its spec
    steps: tuple[Step, ...]  # everything looked at, in order
    seconds: float  # time that the call took
    usage: Usage | None = None  # tokens of the call, where the service tells
    # USD of all calls, where the price is known; at most that, where tokens are not
    cost: float | None = None
    # what the model is fit for; None where only the short check was made
    fit: tuple[Use, ...] | None = None

    @property
    def passed(self) -> bool:
        """Whether a builder can work with the model."""
        if self.fit is not None:
            return bool(self.fit)
        return all(step.status != "failed" for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Return the check as plain JSON."""
        return {**asdict(self), "passed": self.passed}

    def lines(self) -> Iterator[str]:
        """Yield the check as lines for people."""
        for step in self.steps:
            yield f"{step.status:9}{step.name:8}{step.detail}"
            if step.fix:
                yield f"{'':9}fix: {step.fix}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one call: a reply, or why there is none."""

    request: ChatRequest  # as the settings want it asked
    reply: Reply | None
    fault: CallFault | None
    seconds: float  # from when it was sent


class Questioning:
    """Asks one model, each question once: who checks wants to see a fault, not wait until it has passed."""

    def __init__(self, spec: ModelSpec, options: ModelOptions, clock: Clock) -> None:
        self.spec, self.options = spec, options
        self._clock = clock
        self._client: ModelClient

    async def __aenter__(self) -> "Questioning":
        """Open the model."""
        from ..models.client import ModelClient
        from ..models.keys import Redactor
        from ..models.registry import open_model

        once = self.options.model_copy(update={"attempts": 1})
        self._client = ModelClient(open_model(self.spec, once, Redactor()), once)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the model."""
        await self._client.close()

    async def ask(self, request: ChatRequest, structured: Structured | None = None) -> Heard:
        """Ask a question; ``structured``: who enforces its schema, if not whom the settings say."""
        changed = {} if structured is None else {"structured": structured}
        asked = self.options.model_copy(update=changed).apply(request)
        started = self._clock.monotonic()

        def send() -> None:  # loading the service's library takes longer than many a reply
            nonlocal started
            started = self._clock.monotonic()

        reply = fault = None
        try:
            reply = (await self._client.call(asked, on_send=send)).reply
        except CallFault as why:
            fault = why
        return Heard(asked, reply, fault, self._clock.monotonic() - started)
