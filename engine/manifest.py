"""``run.json``: what a run is, written when it is created and whenever its settings or sources change."""

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
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
from ..errors import ConfigError, FabulaError, InputError, RunError, UserError
from ..schemas.canonical import digest, pretty_bytes, sha256_bytes, sha256_file, write_atomic
from ..schemas.plain_files import parse_json, read_plain, reason_of
from ..schemas.text import quoted
from ..schemas.values import Own
from ..version import __version__
from .config import MODELS, RUN, RunConfig, config_from, models_of, parse_set
from .journal import Journal
from .journal_file import unwritable
from .pipeline import LoadedPipeline, Shard, library_versions, prompt_hashes

# -- What a run is made from: its source files and folders, known by their content

EDITS, EDITS_ROLE = "edits.jsonl", "edits"
_NOWHERE = "a link that leads nowhere"
_NO_FILE = "neither a file nor a folder"
_UNREADABLE = "a file that cannot be read"


@dataclass(frozen=True, slots=True)
class Source:
    role: str  # what it holds: ``stories``, ``records``, ``answers`` or ``edits``
    path: Path  # a file or a folder
    # when it was added to a run that was there already, RFC 3339; None for one of the first
    added_at: str | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A source and the digest of its content."""

    role: str
    name: str
    path: Path
    sha256: str
    added_at: str | None = None

    def field(self) -> dict[str, str]:
        """Return what the first stage sees of it: no path, so that moving a file changes nothing."""
        return source_field(self.role, self.name, self.sha256, self.added_at)

    def as_json(self, folder: Path) -> dict[str, str]:
        """Return what ``run.json`` in that folder says of it."""
        return {**self.field(), "path": path_from(folder, self.path)}


def path_from(folder: Path, path: Path) -> str:
    """Return a path relative to a folder, so that both can be moved together.

    Links on the way to both are followed, as ``..`` means another folder behind them. On another drive of
    Windows, the path stays as it is.
    """
    inside = Path(os.path.realpath(path.absolute().parent), path.name)
    try:
        return Path(os.path.relpath(inside, os.path.realpath(folder))).as_posix()
    except ValueError:
        return str(path)


def path_in(folder: Path, path: str) -> Path:
    """Return where :func:`path_from` points to; earlier versions wrote some paths as they were, absolute."""
    return Path(os.path.normpath(Path(os.path.realpath(folder), path)))


def source_field(role: str, name: str, sha256: str, added_at: str | None) -> dict[str, str]:
    """Return what the first stage sees of a source; ``added_at`` only of one that was added later."""
    field = {"role": role, "name": name, "sha256": sha256}
    return field if added_at is None else {**field, "added_at": added_at}


def fingerprint(source: Source) -> Fingerprint:
    """Read a source and return its fingerprint.

    A folder's digest covers the names and contents of all files below it, except hidden ones. Of a link that
    leads nowhere, of a pipe or device, and of a file that may not be read, it covers the name: whether that
    matters is for the stage that opens it.
    """
    path = Path(source.path).absolute()
    if path.is_dir():
        listing = [
            [file.relative_to(path).as_posix(), _content(file)]
            for folder, names, files in os.walk(path)
            if not _prune(names)
            for file in (Path(folder) / name for name in files)
            if not file.name.startswith(".")
        ]
        sha256 = digest(sorted(_printable(name, sha) for name, sha in listing))
    else:
        sha256 = sha256_file(path)
    return Fingerprint(source.role, _printable(path.name, "")[0], path, sha256, source.added_at)


def _content(file: Path) -> str:
    if file.is_file():
        try:
            return sha256_file(file)
        except OSError:
            return _UNREADABLE
    return _NO_FILE if file.exists() else _NOWHERE


def _prune(names: list[str]) -> bool:
    """Leave hidden folders out of the walk; always False."""
    names[:] = [name for name in names if not name.startswith(".")]
    return False


def _printable(name: str, sha256: str) -> list[str]:
    """Return a file name, which need not be valid UTF-8, as text that can be stored."""
    return [name.encode("utf-8", "backslashreplace").decode("utf-8"), sha256]


def with_edits(sources: tuple[Source, ...], folder: Path) -> tuple[Source, ...]:
    """Return the sources with the run's own edits last, if there are any now."""
    own = Source(EDITS_ROLE, folder.absolute() / EDITS)
    others = tuple(source for source in sources if place_of(source)[1] != place_of(own)[1])
    return (*others, own) if own.path.exists() else others


def with_added(sources: tuple[Source, ...], known: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources that are named, and behind them those that the run was extended with.

    What a run was extended with stays part of it, at the time when it was added, named again or not.
    """
    if not sources:
        return known
    times = {place_of(source): source.added_at for source in known}
    named = [replace(source, added_at=source.added_at or times.get(place_of(source))) for source in sources]
    places = {place_of(source) for source in named}
    missing = (source for source in known if source.added_at is not None)
    return (*named, *(source for source in missing if place_of(source) not in places))


def relocated(
    known: Sequence[Mapping[str, str]], sources: tuple[Source, ...], given: Sequence[Path]
) -> tuple[Source, ...]:
    """Return the sources of a run, those that have moved at their new places."""
    moved = list(sources)
    for base in given:
        listed = [base, *(base / entry["name"] for entry in known)] if base.is_dir() else [base]
        try:
            prints = {
                fingerprint(Source("", path)).sha256: path for path in listed if path == base or path.exists()
            }
        except OSError as error:
            raise InputError([unreadable(base, error)]) from error
        here = [number for number, entry in enumerate(known) if entry["sha256"] in prints]
        if not here:
            raise ConfigError(
                f"--sources {base}", what="no source of the run is there as it was",
                fix=f"the run was made from {', '.join(entry['name'] for entry in known)}",
            )  # fmt: skip
        for number in here:
            moved[number] = replace(moved[number], path=prints[known[number]["sha256"]])
    return tuple(moved)


def place_of(source: Source) -> tuple[str, str]:
    """Return role and place of a source, however its path is written."""
    return source.role, os.path.realpath(source.path)


def fingerprints(sources: tuple[Source, ...], folder: Path) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of a run's sources, with the run's own edits last, if there are any."""
    prints, problems = [], []
    for source in with_edits(sources, folder):
        try:
            str(source.path.absolute()).encode("utf-8")
            prints.append(fingerprint(source))
        except OSError as error:
            run = folder if (folder / "run.json").exists() else None
            problems.append(unreadable(source.path, error, run))
        except UnicodeEncodeError:
            problems.append(_unwritable_name(source.path))
    if problems:
        raise InputError(problems)
    return tuple(prints)


def _unwritable_name(path: Path) -> UserError:
    return UserError(
        ascii(str(path)), what="the name is not text in this locale",
        fix="rename the file or folder, or move it elsewhere",
    )  # fmt: skip


def unreadable(path: Path, error: OSError, run: Path | None = None) -> UserError:
    """Return the error for a source that cannot be read; of a run that is there, it may have moved."""
    retry = f"fabula run retry {quoted(run)} --sources PATH" if run else ""
    return UserError(
        str(path),
        what=f"cannot be read: {reason_of(error)}",
        fix="check the path and its permissions" + (f"; if it has moved: {retry}" if retry else ""),
    )  # fmt: skip


# --

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


# -- With what the results of a stage are made, beyond what their keys hold: for whoever compares two runs
#
# Whatever made something is noted in the journal, each once: a run that was continued with other libraries
# says both. Results that are taken over, merged or kept from earlier bring theirs along.

FACT = "made with:"
"""What the name of a fact starts with that says with what a stage worked; a digest of it follows."""
_ROOT = Path(__file__).resolve().parents[1]
_PATIENCE, _SHOWN = 20, 12


def note_made_with(journal: Journal, stage: str, settings: object) -> None:
    """Note with what a stage works: our version and commit, Python, and what its settings say of networks.

    Settings that name networks have a method ``networks``: their device, precision and libraries.
    """
    named: dict[str, Any] = getattr(settings, "networks", dict)()
    source = {"fabula": __version__, "commit": commit(), "python": platform.python_version()}
    made = {"stage": stage, "source": source, "networks": named}
    journal.note(f"{FACT}{digest(made)}", made)


def copy_made_with(journal: Journal, other: Journal, stage: str) -> None:
    """Note with what another run's stage worked, whose results are taken over."""
    for name, made in other.facts(FACT):
        if made["stage"] == stage:
            journal.note(name, made)


def made_with(journal: Journal) -> dict[str, Any]:
    """Return ``source`` and, by stage, ``networks``, of all that was noted; several values with commas."""
    noted = [made for _, made in journal.facts(FACT)]
    if not noted:
        return {}
    stages = sorted({made["stage"] for made in noted if made["networks"]})
    networks = {name: joined(made["networks"] for made in noted if made["stage"] == name) for name in stages}
    return {"source": joined(made["source"] for made in noted), "networks": networks}


def joined(values: Iterable[Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return documents of one form as one; where they differ, every value in order."""
    listed = [value for value in values if value not in (None, {})]
    if listed and all(isinstance(value, Mapping) for value in listed):
        names = sorted({name for value in listed for name in value})
        return {name: joined(value.get(name) for value in listed) for name in names}
    return ", ".join(sorted({part for value in listed for part in str(value).split(", ")})) or None


@cache
def commit() -> str | None:
    """Return the commit of the code that runs, with a hash of what was changed since; None where unknown."""
    if (_ROOT / ".git").exists():
        lines = list(_git("rev-parse", "HEAD"))
        changed = next(_git("diff", "HEAD"), b"")
        head = lines[0].decode().strip() if lines else None
        return head and (f"{head}+{sha256_bytes(changed)[:_SHOWN]}" if changed else head)
    try:
        recorded = distribution("fabula").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = None if recorded is None else parse_json(recorded.encode())
    found = url.get("vcs_info", {}).get("commit_id") if isinstance(url, dict) else None
    return None if found is None else str(found)


def _git(*arguments: str) -> Iterator[bytes]:
    """Yield what git prints about the checkout; nothing where it cannot say."""
    command = ["git", "-C", str(_ROOT), *arguments]
    try:
        yield subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE).stdout
    except (OSError, subprocess.SubprocessError):
        return
