"""A pipeline: the order of stages, loaded and checked before the first item."""

import hashlib
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import Field, model_validator

from ..errors import ConfigError, MissingRequirement
from ..models.spec import ModelSettings
from ..schemas.values import Own
from .stage import BatchStage, Item, Shape, StageSpec

# -- Shards of a run: the items that one of several machines works on, chosen by a hash of their ids

WAITS = "waits for fabula run merge: the stage needs the items of all shards"
"""Why an item of a shard stops at a gather stage."""
NOT_CHOSEN = "not chosen to run"
"""Why an item stops that the options left out."""
STATE = "shard"
"""The fact in a shard's journal that says whether all that a shard can do is done."""
_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class Shard(Own):
    """Which part of a run's items: ``number`` of ``of``, from 1."""

    number: int = Field(ge=1)
    of: int = Field(ge=1)

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.number > self.of:
            raise ValueError("number must not be above of")
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard that ``i/n`` names."""
        match = _FORM.fullmatch(text)
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of:
            raise ConfigError(
                f"--shard {text}", expected="i/n with 1 <= i <= n", found=text,
                fix="the first of eight shards is --shard 1/8, the last one --shard 8/8",
            )  # fmt: skip
        return cls(number=number, of=of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, name: str) -> bool:
        """Whether the items of a name belong to it: SHA-256 of the name, modulo the number of shards."""
        sha256 = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(sha256[:8], "big") % self.of == self.number - 1


def check_same_shard(where: str, known: Shard | None, wanted: Shard | None) -> None:
    """Refuse a shard that is not the one that a run folder holds."""
    if known == wanted:
        return
    held = "a whole run" if known is None else f"shard {known}"
    asked = "the whole run" if wanted is None else f"shard {wanted}"
    raise ConfigError(
        f"--out {where}", what=f"the folder holds {held}, and {asked} is asked for",
        fix="choose another folder with --out; shards become one run by `fabula run merge SHARD... --out RUN`"
        if known is None else f"add --shard {known}, or choose another folder with --out",
    )  # fmt: skip


# --

SOURCES = "sources"
"""The id of the first item, the name of its field, and of the pseudo stage that makes it."""

_EXTRA = re.compile(r"extra == .([\w-]+)")
_NAME = re.compile(r"[^\w.-]")
PROMPT = "prompt "
"""What the name of a prompt starts with among the libraries that a result depends on."""
MODEL = "model "
"""The same for what in a model's settings changes its answers."""

Finish = Callable[[Path, Iterable[Item]], object]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a builder runs."""

    name: str  # kind of run, such as ``katha``
    # what implements each stage, in order: ``package.module``, or ``package.module:attribute``
    stages: tuple[str, ...]
    # ``module:function``, called as ``finish(folder, items)`` when all is done: it writes the outputs into
    # the run folder, directly. Items come sorted by id with the fields that the last stage writes and
    # ``final_fields``. Calling it twice with the same items must write the same bytes.
    finish: str
    final_fields: tuple[str, ...] = ()  # more fields that ``finish`` needs
    # ``module:function``, called with the fields that the first stage wrote: what makes an item the same
    # item, wherever its source is; None for one that comes from settings. Without it, a run's sources may be
    # replaced by any.
    identity: str | None = None
    adding: str | None = None  # how items are added to a run of this kind, with ``{folder}`` for the run
    private: bool = False  # its runs hold what must not be published, and are for their owner's eyes only
    # ``module:function``, called with an item's id: the name that its shard is chosen by. Items about which
    # the same is asked get the same name; without it, each goes by its own id.
    together: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that has been loaded: where it is, its declaration, and its function."""

    path: str  # where it is
    spec: StageSpec  # its declaration
    run: Callable[..., Any]  # its function, ``run`` or ``run_batch``
    batched: bool = False  # whether that is ``run_batch``, which takes several items at once

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_async(self) -> bool:
        """Whether it is a model stage."""
        return inspect.iscoroutinefunction(self.run)


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline whose stages have been loaded and checked."""

    pipeline: Pipeline  # the declaration
    stages: tuple[Stage, ...]  # the stages, in order
    finish: Finish  # the function that writes the outputs
    outputs: tuple[str, ...]  # the fields that ``finish`` gets, sorted

    @property
    def name(self) -> str:
        return self.pipeline.name

    def names(self) -> tuple[str, ...]:
        """Return the stages' names, in order."""
        return tuple(stage.name for stage in self.stages)

    def others(self, shard: Shard, items: Iterable[str]) -> set[str]:
        """Return those of some items, as the first stage makes them, that belong to other shards."""
        together = self.pipeline.together
        name = str if together is None else load_object(together)
        return {item for item in items if not shard.holds(name(item))}

    def needed_after(self, index: int) -> frozenset[str]:
        """Return the fields that stages after the given one, or ``finish``, still read."""
        later = (name for stage in self.stages[index + 1 :] for name in stage.spec.reads)
        return frozenset((*later, *self.outputs))


def load_stage(path: str) -> Stage:
    """Import one stage, ``package.module`` or ``package.module:attribute``; of a module with a STEP, that."""
    stage = load_object(path)
    if hasattr(stage, "STEP"):
        path, stage = f"{path}:STEP", stage.STEP
    spec, batched = getattr(stage, "SPEC", None), hasattr(stage, "run_batch")
    run = getattr(stage, "run_batch" if batched else "run", None)
    both = batched and hasattr(stage, "run") and not isinstance(stage, BatchStage)
    if not isinstance(spec, StageSpec) or not callable(run) or both or (batched and spec.shape != "map"):
        raise ConfigError(
            f"stage {path}", expected="a SPEC and a function run, or of a map stage run_batch",
            found="both functions" if both else "something else",
            fix="see CONTRIBUTING.md, how to add a stage",
        )  # fmt: skip
    return Stage(path, spec, run, batched)


def load_object(path: str) -> Any:  # noqa: ANN401 - whatever the path names
    """Return the module or attribute that ``module`` or ``module:attribute`` names."""
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise ConfigError(
            path, expected="an importable module", found=f"no module {error.name}", fix="check the spelling"
        ) from error
    if not attribute:
        return module
    if not hasattr(module, attribute):
        raise ConfigError(
            path,
            expected=f"an attribute {attribute} of {module_name}",
            found="none",
            fix="check the spelling",
        )
    return getattr(module, attribute)


def load_pipeline(pipeline: Pipeline) -> LoadedPipeline:
    """Import all stages of a pipeline and check that they fit together."""
    stages = tuple(load_stage(path) for path in pipeline.stages)
    if not stages:
        raise ConfigError(
            f"pipeline {pipeline.name}", expected="at least one stage", found="none", fix="name its stages"
        )
    available: set[str] = {SOURCES}
    written: set[str] = {SOURCES}
    names: set[str] = {SOURCES}
    depth = 0
    for stage in stages:
        _check(pipeline.name, stage, names, available, written)
        depth += {"expand": 1, "group": -1}.get(stage.spec.shape, 0)
        if stage.spec.shape == "group" and depth < 1:
            where = f"stage {stage.name}"
            raise _misfit(pipeline.name, where, "two expands or more before a group", "too few of them")
        names.add(stage.name)
        written.update(stage.spec.writes)
        # The children of an expand are new items, and so is what a group makes of them: each starts with
        # what the stage gave it.
        fresh = stage.spec.shape in ("expand", "group")
        available = set(stage.spec.writes) | (set() if fresh else available)
    outputs = tuple(sorted({*stages[-1].spec.writes, *pipeline.final_fields}))
    missing = sorted(set(outputs) - available)
    if missing:
        raise _misfit(pipeline.name, "final_fields", "fields that a stage writes", ", ".join(missing))
    return LoadedPipeline(pipeline, stages, load_object(pipeline.finish), outputs)


def _check(pipeline: str, stage: Stage, names: set[str], available: set[str], written: set[str]) -> None:
    spec, where = stage.spec, f"stage {stage.name}"
    if spec.name in names:
        raise _misfit(pipeline, where, "a name of its own", "a name used twice")
    if spec.shape not in get_args(Shape):
        raise _misfit(pipeline, where, f"one of the shapes {', '.join(get_args(Shape))}", repr(spec.shape))
    unknown = sorted(set(spec.reads) - available)
    if unknown:
        raise _misfit(pipeline, where, "fields written by an earlier stage", ", ".join(unknown))
    again = sorted(set(spec.writes) & written)
    if again or not spec.writes or len(set(spec.writes)) != len(spec.writes):
        text = f"{', '.join(again)}, written before" if again else f"writes {spec.writes}"
        raise _misfit(pipeline, where, "fields that no other stage writes", text)
    _check_asking(pipeline, stage)
    if spec.stateful and spec.shape != "gather":
        raise _misfit(pipeline, where, "stateful gathers only", f"a stateful {spec.shape}")


def _check_asking(pipeline: str, stage: Stage) -> None:
    spec, where = stage.spec, f"stage {stage.name}"
    if stage.is_async:
        if spec.shape != "map" or not issubclass(spec.settings, ModelSettings):
            expected = "async run in map stages with ModelSettings only"
            raise _misfit(pipeline, where, expected, f"an async {spec.shape} with {spec.settings.__name__}")
    elif spec.asks:
        raise _misfit(pipeline, where, "async run in a stage that asks", "asks, and a plain run")


def _misfit(pipeline: str, where: str, expected: str, found: str) -> ConfigError:
    return ConfigError(
        f"pipeline {pipeline}, {where}", expected=expected, found=found,
        fix="correct the stage's SPEC or the order of the stages",
    )  # fmt: skip


def stages_through(pipeline: Pipeline, name: str) -> tuple[str, ...]:
    """Return the names of the stages up to and with the given one, for ``Options.stages``."""
    names = load_pipeline(pipeline).names()
    if name not in names:
        raise unknown_stage(f"--stage {name}", names)
    return names[: names.index(name) + 1]


def unknown_stage(where: str, names: Iterable[str]) -> ConfigError:
    """Return the error for a stage name that the pipeline does not have."""
    return ConfigError(
        where, what=f"there is no such stage; there are: {', '.join(names)}", fix="use one of these names"
    )


def dependencies(spec: StageSpec, *, asks: bool = False) -> dict[str, str]:
    """Return what a stage's results depend on besides its code: its libraries' versions, its prompts' hashes.

    A prompt stands there as ``prompt`` and its id; one that it asks a model with only where it ``asks``.
    """
    prompts = {f"{PROMPT}{name}": sha256 for name, sha256 in prompt_hashes(spec, asks=asks).items()}
    return {**library_versions(spec), **prompts}


def prompt_hashes(spec: StageSpec, *, asks: bool = False) -> dict[str, str]:
    """Return the SHA-256 of the file of each prompt that a stage uses, by the prompt's id."""
    names = (*spec.prompts, *spec.asks) if asks else spec.prompts
    if not names:
        return {}
    from ..prompts.loader import load_prompt, prompt_ids

    hashes = {}
    for name in sorted(names):
        try:
            hashes[name] = load_prompt(name).sha256
        except KeyError as error:
            raise ConfigError(
                f"stage {spec.name}", expected=f"a prompt: {', '.join(prompt_ids())}", found=name,
                fix="correct the prompts in the stage's SPEC",
            ) from error  # fmt: skip
    return hashes


def library_versions(spec: StageSpec) -> dict[str, str]:
    """Return the installed version of each distribution that a stage declares."""
    versions = {}
    for name in sorted(spec.libraries):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError as error:
            if name in spec.optional:
                versions[name] = "not installed"
                continue
            raise MissingRequirement(
                f"stage {spec.name}", what=f"the library {name} is not installed",
                fix=f"pip install {extra_with(name)}",
            ) from error  # fmt: skip
    return versions


def extra_with(library: str) -> str:
    """Return the first extra of the package that brings a library, as pip takes it; else the library."""
    for line in importlib.metadata.requires("fabula") or ():
        named, _, marker = line.partition(";")
        extra = _EXTRA.search(marker)
        if extra is not None and _NAME.split(named.strip(), maxsplit=1)[0] == library:
            return f"'fabula[{extra[1]}]'"
    return library
