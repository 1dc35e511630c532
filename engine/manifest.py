"""``run.json``: what a run is, written when it is created and whenever its settings or sources change."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from .. import version
from ..errors import ConfigError, FabulaError, RunError
from ..schemas.canonical import pretty_bytes, write_atomic
from ..schemas.plain_files import parse_json, read_plain, reason_of
from ..schemas.values import Own
from .config import MODELS, RUN, RunConfig, config_from, models_of, parse_set
from .journal import Journal
from .journal_file import unwritable
from .machines.shards import Shard
from .pipeline import LoadedPipeline, library_versions, prompt_hashes
from .sources import Source, path_in, relocated, source_field

NAME = "run.json"
FORMAT = 1
EPOCH = "SOURCE_DATE_EPOCH"
"""The variable that gives a new run its creation time where no option does."""
LAST_SEEN = "sources last seen"
"""The fact in a journal that says where the sources were when the run was last worked on."""


def _is_normal(text: str) -> str:
    if _in_utc(text) != text:
        raise ValueError("must be a time in UTC such as 2026-01-31T12:00:00Z")
    return text


class RunPart(Own):
    """The settings of the run itself that stay with it: all but the number of workers.

    One attempt at each question is what every run starts with, and is not written.
    """

    item_timeout: float = Field(gt=0, allow_inf_nan=False)
    threshold: float = Field(ge=0, le=1)
    seed: int = Field(ge=0)
    attempts: int = Field(default=1, ge=1)

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = write(self)
        return {name: value for name, value in document.items() if (name, value) != ("attempts", 1)}


class StageEntry(Own):
    """Name, version and libraries (distribution -> version) of one stage."""

    name: str
    version: int
    libraries: dict[str, str]


class SourceEntry(Own):
    """One source: its role, the name and hash of its content, where it is, and when it was added.

    The path is relative to the run folder. ``added_at`` is null for the sources that a run began with.
    """

    role: str
    name: str
    path: str = Field(pattern=r"^[^\x00]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    added_at: Annotated[str, AfterValidator(_is_normal)] | None = None

    def field(self) -> dict[str, str]:
        """Return what the first stage saw of it."""
        return source_field(self.role, self.name, self.sha256, self.added_at)


class Manifest(Own):
    """The content of ``run.json``."""

    format: Literal[1] = 1  # version of this form
    kind: str  # name of the pipeline
    # when the run was created, RFC 3339 in UTC; everything that needs a time uses it
    created_at: Annotated[str, AfterValidator(_is_normal)]
    fabula_version: str  # version that last worked on the run
    seed: int  # master seed, as in ``run``
    threshold: float  # share of the items not rejected that must be made, as in ``run``
    run: RunPart  # all settings of the run itself but the number of workers
    settings: dict[str, dict[str, Any]]  # stage -> its settings
    stages: tuple[StageEntry, ...]  # name, version and libraries of each stage
    prompts: dict[str, str]  # prompt -> hash of its file, of all prompts that the stages use
    # spec -> its settings, of all models that the stages name; secrets stand there by their name
    models: dict[str, dict[str, Any]] = Field(default_factory=dict)
    # role, name, path and sha256 of each source, and when it was added to the run
    sources: tuple[SourceEntry, ...]
    shard: Shard | None = None  # which part of the run's items this is; a whole run has no such entry

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = write(self)
        return {name: value for name, value in document.items() if (name, value) != ("shard", None)}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.seed, self.threshold) != (self.run.seed, self.run.threshold):
            raise ValueError("seed and threshold must be those in run")
        return self

    @property
    def changed_at(self) -> str:
        """When the run was created, or last extended: the latest time that its records can bear."""
        return max([self.created_at, *(entry.added_at for entry in self.sources if entry.added_at)])

    def source_list(self, folder: Path, moved: Sequence[Path] = ()) -> tuple[Source, ...]:
        """Return the sources that the run in this folder was last made from.

        Where the run has moved and they have not, they are where its journal last saw them.
        """
        paths = [path_in(folder, entry.path) for entry in self.sources]
        if not all(path.exists() for path in paths):
            seen = {path.name: path for path in _last_seen(folder) if path.exists()}
            paths = [path if path.exists() else seen.get(path.name, path) for path in paths]
        listed = tuple(
            Source(entry.role, path, entry.added_at) for entry, path in zip(self.sources, paths, strict=True)
        )
        return relocated([entry.field() for entry in self.sources], listed, moved) if moved else listed

    def config(self, loaded: LoadedPipeline) -> RunConfig:
        """Return the settings that the run was last made with; stages added since get their defaults.

        What a stage's settings name as ``retired`` is left out: earlier versions had it.
        """
        retired = {stage.name: getattr(stage.spec.settings, "retired", ()) for stage in loaded.stages}
        given = {
            name: {key: value for key, value in values.items() if key not in retired[name]}
            for name, values in self.settings.items()
            if name in retired
        }
        return config_from(loaded, {**given, RUN: self.run.as_json(), MODELS: self.models}, where=NAME)

    def with_settings(self, sets: Sequence[str]) -> Self:
        """Return the manifest as it would be with some stages' settings changed, ``stage.key=value`` each."""
        settings = {name: dict(values) for name, values in self.settings.items()}
        for section, key, value in map(parse_set, sets):
            settings.setdefault(section, {})[key] = value
        return self.model_copy(update={"settings": settings})


def _last_seen(folder: Path) -> list[Path]:
    """Return where the sources of a run were when it was last worked on, on this machine."""
    with suppress(FabulaError), Journal.open(folder, writable=False) as journal:
        return [Path(path) for path in journal.fact(LAST_SEEN) or ()]
    return []


def read_manifest(folder: Path) -> Manifest:
    """Read a run folder's manifest."""
    path = Path(folder) / NAME
    try:
        data = read_plain(path, follow=True)
        document = parse_json(data)
    except OSError as error:
        raise RunError(
            str(folder), what=f"this is not a run folder: {NAME} cannot be read ({reason_of(error)})",
            fix="give the folder that a build wrote with --out",
        ) from error  # fmt: skip
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise RunError(
            str(path), what=f"format {version} is of a newer Fabula; this version reads up to {FORMAT}",
            fix="use the version of fabula that made the run, or build into a new folder",
        )  # fmt: skip
    try:
        return Manifest.model_validate_json(data, strict=True)
    except ValidationError as error:
        raise _damaged(path, reason_of(error)) from error


def _damaged(path: Path, found: str) -> RunError:
    return RunError(
        str(path), what=f"this is not the manifest of a run: {found}",
        fix="restore it from a copy, or build into a new folder",
    )  # fmt: skip


def make_manifest(
    loaded: LoadedPipeline,
    config: RunConfig,
    sources: tuple[Mapping[str, str], ...],
    created_at: str,
    shard: Shard | None = None,
) -> Manifest:
    """Return the manifest of a run as it is about to be worked on."""
    specs = [stage.spec for stage in loaded.stages]
    return Manifest(
        kind=loaded.name,
        created_at=created_at,
        fabula_version=version.__version__,
        seed=config.run.seed,
        threshold=config.run.threshold,
        run=RunPart(
            item_timeout=config.run.item_timeout,
            threshold=config.run.threshold,
            seed=config.run.seed,
            attempts=config.run.attempts,
        ),
        settings=config.as_json(),
        stages=tuple(
            StageEntry(name=spec.name, version=spec.version, libraries=library_versions(spec))
            for spec in specs
        ),
        prompts={
            name: sha256
            for spec in specs
            for name, sha256 in prompt_hashes(spec, asks=bool(models_of(config.stages[spec.name]))).items()
        },
        models={
            spec: options.model_dump(mode="json", exclude_defaults=True)
            for spec, options in config.models.items()
        },
        sources=tuple(SourceEntry(**entry) for entry in sources),
        shard=shard,
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``run.json``, whole or not at all; a file that says the same is left alone."""
    path, data = folder / NAME, pretty_bytes(manifest.as_json())
    try:
        with suppress(FileNotFoundError):
            if read_plain(path, follow=True) == data:
                return
        write_atomic(path, [data])
    except OSError as error:
        raise unwritable(path, error) from error


def creation_time(option: str | None) -> str:
    """Return the creation time of a new run, RFC 3339 in UTC, to the second.

    The option wins, then ``SOURCE_DATE_EPOCH``, then the clock; this is the only place that reads it.
    """
    epoch = os.environ.get(EPOCH)
    if option is not None:
        return normal_time(option)
    if not epoch:
        return _format(datetime.now(UTC))
    try:
        return _format(datetime.fromtimestamp(int(epoch), UTC))
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(
            EPOCH,
            what=f"{epoch!r} is not a number of seconds since 1970",
            fix="correct or unset it",
        ) from error


def normal_time(text: str) -> str:
    """Return an RFC 3339 time in UTC, to the second."""
    time = _in_utc(text)
    if time is None:
        raise ConfigError(
            "--created-at", what=f"{text!r} is not a time with its zone",
            fix="write it like 2026-01-31T12:00:00Z",
        )  # fmt: skip
    return time


def _in_utc(text: str) -> str | None:
    """Return a time in UTC, to the second; None if it is none, has no zone, or no year of ours."""
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else _format(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def _format(moment: datetime) -> str:
    # Not strftime: it writes years below 1000 with fewer than four digits on some systems.
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
