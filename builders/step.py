"""A step: one drafted field of a record, and the one way in which every such field comes about.

What the author gave stands; else the rules draft it, or a model is asked once, as the settings of the step
say, and its reply is read back or sent back once. A step is a stage of the engine: it has the face that
:mod:`fabula.engine.stage` describes. A pipeline names it as ``module:NAME``, or its
module where it is called ``STEP``.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ..engine.stage import UNUSABLE, Item, Made, NoAnswer, Outcome, Rejected, StageSpec, Tools
from ..errors import ConfigError
from ..models.spec import ModelSettings
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.plugins import plugins
from .replies import Drafted, ask

PLANNERS = ("rules", "model")
"""Names that a planner setting may have."""
GROUP = "fabula.steps"
"""Entry points of this group add steps, or say who drafts one of ours; the object is a :class:`Step`."""
ADDED = "added_steps.jsonl"
"""File of a run: what the steps that packages add drafted, one line for each item."""
RULES = "rules@1"
"""The producer of what our rules draft."""


class Worded(ModelSettings):
    """Settings of a stage whose prompts may be asked in words of the user."""

    prompts: Mapping[str, str] = Field(
        default_factory=dict,
        exclude_if=lambda prompts: not prompts,
        description="Id of a prompt -> the whole file that is asked with in its place; see --prompts.",
    )


class PlannerSettings(Worded):
    """Settings of a step: who drafts. A model is asked only where ``planner`` says so."""

    planner: Literal["rules", "model", "rehearsal"] = "rules"

    @field_validator("planner")
    @classmethod
    def _model_is_named(cls, planner: str, info: ValidationInfo) -> str:
        if planner == "model" and info.data.get("model", "") is None:
            raise PydanticCustomError(
                "model_missing",
                "rules, or model together with a model spec in the setting model of this stage",
            )
        if planner == "rehearsal":
            raise PydanticCustomError("planner_unknown", "rules or model; a rehearsal is never a build")
        return planner

    @property
    def rehearsed(self) -> bool:
        """Whether a model's draft is only to be stood in for, in number and length; nothing of it is kept."""
        return self.planner == "rehearsal"

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks: none for the rules."""
        return super().models() if self.planner == "model" else ()


def check_planner(name: str) -> None:
    """Check the name of a planner."""
    if name not in PLANNERS:
        raise ConfigError(
            f"planner {name}", what="there is no such planner",
            fix="use --planner rules, or --planner model with --model",
        )  # fmt: skip


class Unfit(Exception):
    """Nothing can be drafted for an item: one of the reject codes of the step, and the reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


S = TypeVar("S")
T = TypeVar("T", bound=PlannerSettings)


def _nothing(sketch: Any, settings: Any) -> Json:  # noqa: ANN401 - the face of a step's functions
    return None


def _as_drafted(drafted: Json, sketch: Any, settings: Any) -> Json:  # noqa: ANN401
    return drafted


@dataclass(frozen=True)
class Step(Generic[S, T]):
    """One drafted field of one kind of record, and the stage that drafts it.

    All functions take ``(sketch, settings)``: the record as far as it is drafted, and the step's settings.
    They are pure; any but ``read`` may raise :class:`Unfit`.
    """

    id: str  # kind and name of the step, such as ``shots/plan_shots``; its name is that of its stage
    version: int  # of the stage: to be raised whenever the code changes what can come out
    writes: tuple[str, ...]  # the drafted field; or several, of which the value then is a mapping
    reads: tuple[str, ...]  # fields of the item that the sketch is made of
    sketch: Callable[[Item], S]  # makes it
    rules: Callable[[S, T], Json]  # what can be drafted without a model; None where that is nothing
    # the inputs of the prompt; None where there is nothing to ask, and the rules know all there is
    show: Callable[[S, T], Mapping[str, Json] | None] = _nothing
    # ``read(reply, sketch, settings)``: the value of a reply that satisfies the prompt's schema; raises
    # :class:`~fabula.engine.stage.BadReply` with words that the model can act on
    read: Callable[[Json, S, T], Json] = _as_drafted
    # what the author gave, if that is all of it; None where something is left to draft. What an earlier step
    # drafted together with other fields comes as :class:`~.replies.Drafted`.
    given: Callable[[S, T], Json] = _nothing
    # ``settle(drafted, sketch, settings)``: the value that is kept of what was drafted, with what the author
    # gave of it; not called for what ``given`` returns
    settle: Callable[[Json, S, T], Json] = _as_drafted
    # for a step that asks several questions, in place of ``show`` and ``read``
    ask: Callable[[Tools, S], Awaitable[Drafted[Json]]] | None = None
    by: str = ""  # the field that says who drafted it; null where nobody did
    asks: tuple[str, ...] = ()  # ids of its prompts, if they are not the one of its own id
    # the type of its settings
    settings: type[T] = PlannerSettings  # type: ignore[assignment]
    # what it may raise Unfit with, and what each code means
    reject_codes: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)  # code -> what keeps such an item
    libraries: tuple[str, ...] = ()  # distributions whose version is part of the result's key
    prompts: tuple[str, ...] = ()  # prompts that the rules use, too
    maker: str = RULES  # whose rules they are, as producers name them
    # whether later steps can do without a model's draft: where its replies are of no use, the step has what
    # rules draft, the item goes on, and the run says so
    spare: bool = False

    @property
    def SPEC(self) -> StageSpec:  # noqa: N802 - the face of a stage
        """The declaration of its stage."""
        return StageSpec(
            name=self.id.rpartition("/")[2],
            version=self.version,
            shape="map",
            reads=self.reads,
            writes=(*self.writes, self._by),
            libraries=self.libraries,
            reject_codes=self.reject_codes,
            keep=self.keep,
            settings=self.settings,
            prompts=self.prompts,
            asks=self._asks,
        )

    @property
    def _asks(self) -> tuple[str, ...]:
        asking = self.ask is not None or self.show is not _nothing
        return self.asks or ((self.id,) if asking else ())

    @property
    def _by(self) -> str:
        return self.by or f"{self.writes[0]}_by"

    async def run(self, item: Item, tools: Tools) -> Outcome:
        """Return the field and who drafted it; the function of its stage."""
        settings, missed = tools.own(self.settings), None
        try:
            sketch = self.sketch(item)
            value, maker = self.given(sketch, settings), None
            if isinstance(value, Drafted):
                value, maker = value.value, value.maker or None
            elif value is None:
                try:
                    drafted = await self.draft(sketch, tools)
                except NoAnswer as none:
                    if not self.spare or none.code not in UNUSABLE:
                        raise
                    drafted, missed = self._ruled(sketch, settings, self.maker), none
                value, maker = self.settle(drafted.value, sketch, settings), drafted.maker or None
        except Unfit as unfit:
            return Rejected(unfit.code, unfit.reason)
        fields = {self.writes[0]: value} if len(self.writes) == 1 else value
        return Made({**fields, self._by: maker}, missed)

    async def draft(self, sketch: S, tools: Tools) -> Drafted[Json]:
        """Return what is drafted, by whom the settings name; the maker of nothing (None) is ""."""
        settings = tools.own(self.settings)
        maker = self.maker
        if settings.planner == "model" and self._asks:
            if self.ask is not None:
                return await self.ask(tools, sketch)
            shown = self.show(sketch, settings)
            if shown is not None:
                return await ask(
                    tools, self._asks[0], lambda reply: self.read(reply, sketch, settings), **shown
                )
            maker = f"{settings.model}"
        return self._ruled(sketch, settings, maker)

    def _ruled(self, sketch: S, settings: T, maker: str) -> Drafted[Json]:
        value = self.rules(sketch, settings)
        return Drafted(value, "" if value is None else maker)


@cache
def package_steps(kind: str) -> Mapping[str, tuple[str, Step[Any, Any]]]:
    """Return name -> place and value of the steps that installed packages have for a kind."""
    steps: dict[str, tuple[str, Step[Any, Any]]] = {}
    for entry in plugins(GROUP):
        of, _, name = entry.name.partition("/")
        if of != kind:
            continue
        step, package = entry.load(), "" if entry.dist is None else entry.dist.name
        if not isinstance(step, Step) or step.id != entry.name or package not in step.libraries:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}",
                what=f"it is no Step with this id, or {package} is not among the Step's libraries",
                fix=f"correct {entry.value}; CONTRIBUTING.md shows how",
            )
        steps[name] = (entry.value, step)
    return steps


def with_packages(kind: str, stages: Sequence[str], before: str) -> tuple[str, ...]:
    """Return the places of a kind's stages with those of packages.

    A step of the name of one of ours takes its place; others come before the stage named.
    """
    steps = {name: address for name, (address, _) in package_steps(kind).items()}
    places = {stage.replace(":", ".").rpartition(".")[2].lower(): stage for stage in stages}
    added = [address for name, address in steps.items() if name not in places]
    at = list(places).index(before)
    kept = [steps.get(name, address) for name, address in places.items()]
    return (*kept[:at], *added, *kept[at:])


def added_fields(kind: str, stages: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that steps of packages write beside ours."""
    names = {stage.replace(":", ".").rpartition(".")[2].lower() for stage in stages}
    added = (step for name, (_, step) in package_steps(kind).items() if name not in names)
    return tuple(written for step in added for written in step.SPEC.writes)


def keeping_added(folder: Path, items: Iterable[Item], added: Sequence[str]) -> Iterator[Item]:
    """Yield the items of a finished run; in the end write what packages' steps drafted, if there are any."""
    rows: list[Json] = []
    for item in items:
        rows.append({"id": item.id, **{name: item[name] for name in added}})
        yield item
    if added:
        write_atomic(folder / ADDED, jsonl_lines(rows))
