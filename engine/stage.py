"""What a stage is: its declaration, what it is given and makes, and how it asks a language model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ..models.chat import ChatRequest, Reply
from ..schemas.canonical import Json
from ..schemas.values import Own

T = TypeVar("T")
P = ParamSpec("P")

PROGRESS = "progress"
"""The part of ``Tools.work`` that is removed when a run is finished."""

UNAVAILABLE = "unavailable"
"""Code of an item that failed because a model or shared files could not be reached: it runs again."""
REHEARSED = "rehearsed"
"""Code of a question in a rehearsal, which nobody answers (see :mod:`.rehearsal`)."""
UNASKED = "unasked"
"""Code of a question that was not asked yet, where only known replies are used (see :mod:`.replay`)."""


UNUSABLE = frozenset({"refused", "blocked", "truncated", "empty", "malformed"})
"""Codes of questions that a model was asked, and answered with nothing of use: they may be asked again."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came back for a question, as it came."""

    reply: Reply  # the raw reply
    cost: float | None  # USD that the run paid for it; None where the price is not known


class BadReply(ValueError):
    """A reply has the right shape and says something that cannot be; the text tells the model what.

    ``what``: the name under which such a reply is counted; None for that of the shape that was asked for.
    """

    what: str | None = None


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


MOST_REPAIRS = 2
"""More requests after a malformed reply of somebody who drafts."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One question to a model."""

    request: ChatRequest  # what is asked; connection settings are added behind the asker
    # makes the value that the stage wants from the reply, which is JSON that satisfies the schema (or the
    # text, where there is no schema); raises BadReply where it cannot be right
    read: Callable[[Json], T]
    prompt: str  # the prompt it was made from, as ``id@version#hash``
    # how many more requests, each quoting the last reply and its problem, may be sent for a malformed reply;
    # 0 for judges, of whom the first reply counts
    repairs: int = MOST_REPAIRS
    sample: int = 0  # which answer to take; answers to the same request with other numbers are asked anew
    # most attempts while none gives a usable answer; None for as many as the run allows
    attempts: int | None = None
    # whether a reply that breaks the schema is malformed; else ``read`` gets the JSON as it came, and keeps
    # of it what can be used
    strict: bool = True
    # by how much each further attempt raises the temperature, as some public evaluators do
    warmer: float = 0.0
    plain: bool = False  # whether ``read`` gets the reply's text as it came, however long: a picture is in it


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a model answered."""

    value: T  # what ``read`` made of it
    # ``json_repaired`` where the JSON had to be mended, ``asked_again`` where a repair was sent,
    # ``attempt_2`` where the first attempt gave nothing of use; before them, that a stand-in answered
    notes: tuple[str, ...] = ()
    receipt: Receipt | None = None  # the reply that it was read from; None from an asker that asks nobody
    missed: tuple[NoAnswer, ...] = ()  # the attempts at the same question before this one


class Asker(Protocol):
    """Answers questions; one for each item and stage."""

    async def ask(self, ask: Ask[T]) -> Answer[T]:
        """Return the model's answer.

        Raises:
            NoAnswer: there is no usable one.
        """
        ...


S = TypeVar("S", bound=Own)
Shape = Literal["expand", "map", "gather", "group"]


class NoSettings(Own):
    """Settings of a stage that has none."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """The declaration of a stage."""

    name: str  # that of the module or function, ``verb_noun``
    version: int  # to be raised whenever the code changes what can come out
    shape: Shape = "map"  # ``expand``, ``map``, ``gather`` or ``group``
    reads: tuple[str, ...] = ()  # fields of the item that ``run`` may look at; nothing else is passed
    writes: tuple[str, ...] = ()  # fields that it produces, all of them in every Made outcome
    libraries: tuple[str, ...] = ()  # distributions whose version is part of the result's key
    # those of them that only some items need; the stage itself asks for what an item lacks
    optional: tuple[str, ...] = ()
    # the codes that it may reject with, and what each means
    reject_codes: Mapping[str, str] = field(default_factory=dict)
    # code -> what keeps an item that would be rejected with it: an option, a setting, or what to do instead
    keep: Mapping[str, str] = field(default_factory=dict)
    settings: type[Own] = NoSettings  # the type of its own settings slice
    stateful: bool = False  # a gather stage that is also given what it decided before (``tools.previous``)
    # ids of the prompts that it uses; the hash of each file is part of the result's key
    prompts: tuple[str, ...] = ()
    # ids of the prompts that it asks a model with; they count only where the settings name a model
    asks: tuple[str, ...] = ()
    # how many times the usual limit one item may take, where items are as long as a film
    patience: float = 1.0
    # whether what it makes depends on ``tools.created_at``: then its results are taken over only by a run
    # that was created at the same time
    dated: bool = False
    repairs: float = 0.0  # how many more questions, that follow from answers, it asks about a usual item


@dataclass(frozen=True, slots=True)
class OneStage:
    """A stage that shares its module with others: its declaration, and the function that does its work.

    A pipeline names it as ``module:name``. Called, it does what its function does.
    """

    SPEC: StageSpec
    run: Callable[..., Any]

    def __call__(self, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - as the function
        return self.run(*given, **more)


@dataclass(frozen=True, slots=True)
class BatchStage(OneStage):
    """The same of a stage whose function takes several items at once."""

    @property
    def run_batch(self) -> Callable[..., Any]:
        return self.run


Declaring: TypeAlias = Callable[P, Callable[[Callable[..., Any]], OneStage]]


def _declaring(spec: Callable[Concatenate[str, P], StageSpec], kind: type[OneStage]) -> Declaring[P]:
    """Return what makes a stage of the function below it, which lends it its name; given the other fields."""

    def declare(*fields: P.args, **more: P.kwargs) -> Callable[[Callable[..., Any]], OneStage]:
        return lambda run: kind(spec(run.__name__, *fields, **more), run)

    return declare


stage, batch_stage = _declaring(StageSpec, OneStage), _declaring(StageSpec, BatchStage)


@dataclass(frozen=True, slots=True)
class Item:
    """What a stage is given: an id and the fields that it reads."""

    id: str
    fields: Mapping[str, Json]

    def __getitem__(self, name: str) -> Json:
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class Made:
    """The stage produced its fields."""

    fields: Mapping[str, Json]
    # what it had no usable answer to, and did without; what was made so is made again where failures are
    missed: NoAnswer | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The item does not qualify; not an error. ``code`` is one of the stage's ``reject_codes``."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The stage could not do its work on the item.

    Codes of the engine itself: ``exception``, ``crashed`` (the worker died), ``timeout``.
    """

    code: str
    reason: str
    evidence: str | None = None


Outcome: TypeAlias = Made | Rejected | Failed


@dataclass(frozen=True, slots=True)
class Child:
    """One item that an expand stage brings forth."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Tools:
    """What a stage may use besides its item."""

    settings: Own  # the stage's own settings slice, of its ``settings`` type
    created_at: str  # when the run was created (RFC 3339, UTC); the only clock there is
    seed: int = 42  # the run's master seed
    # for a stateful gather, what it last decided: item id -> fields
    previous: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    # for the first stage, the input files and folders, in the order of its ``sources`` field
    paths: tuple[Path, ...] = ()
    asker: Asker | None = None  # where the stage's settings name a model, what answers its questions
    rehearsed: bool = False  # whether questions are only written down: what models drafted before is missing
    # a folder of the run for files that fields name by their hash, made by whoever writes first; None where
    # there is no run folder. What it holds can be made again from the sources.
    store: Path | None = None
    # a folder of the run for what is no result, made by whoever writes first: where sources are, and in
    # :data:`PROGRESS` what is known of parts of long items; None where there is no run folder
    work: Path | None = None

    def of_role(self, item: Item, role: str) -> list[Path]:
        """Return the input files and folders that hold something, for the first stage; in order."""
        both = zip(item["sources"], self.paths, strict=True)
        return [path for source, path in both if source["role"] == role]

    def own(self, kind: type[S]) -> S:
        """Return the stage's settings as the type that they have."""
        assert isinstance(self.settings, kind)
        return self.settings
