"""``run.json``: what a run is, written when it is created and whenever its settings or sources change."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigError, RunError
from ..schemas.canonical import pretty_bytes, write_atomic
from .config import RunConfig, config_from
from .journal_file import unwritable
from .pipeline import LoadedPipeline, library_versions
from .sources import Source

NAME = "run.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of ``run.json``.

    Attributes:
        kind: name of the pipeline.
        created_at: when the run was created, RFC 3339 in UTC; everything that needs a time uses it.
        fabula_version: version that last worked on the run.
        seed: master seed.
        threshold: share of the items not rejected that must be made.
        settings: stage -> its settings.
        stages: name, version and libraries of each stage.
        sources: role, name, path and sha256 of each source.
    """

    kind: str
    created_at: str
    fabula_version: str
    seed: int
    threshold: float
    settings: Mapping[str, Any]
    stages: tuple[Mapping[str, Any], ...]
    sources: tuple[Mapping[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``run.json`` holds."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "created_at": self.created_at,
            "fabula_version": self.fabula_version,
            "seed": self.seed,
            "threshold": self.threshold,
            "settings": dict(self.settings),
            "stages": [dict(stage) for stage in self.stages],
            "sources": [dict(source) for source in self.sources],
        }

    def source_list(self, folder: Path) -> tuple[Source, ...]:
        """Return the sources that the run in this folder was last made from."""
        return tuple(Source(entry["role"], folder / entry["path"]) for entry in self.sources)

    def config(self, loaded: LoadedPipeline) -> RunConfig:
        """Return the settings that the run was last made with; stages added since get their defaults.

        Raises:
            ConfigError: a stage no longer knows one of them.
        """
        names = loaded.names()
        given = {name: values for name, values in self.settings.items() if name in names}
        config = config_from(loaded, given, where=NAME)
        return replace(config, run=replace(config.run, seed=self.seed, threshold=self.threshold))


def read_manifest(folder: Path) -> Manifest:
    """Read a run folder's manifest.

    Raises:
        RunError: there is none, it is damaged, or a newer version of Fabula wrote it.
    """
    path = Path(folder) / NAME
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RunError(
            str(folder), expected=f"a run folder with {NAME}", found=error.strerror or str(error),
            fix="give the folder that a build wrote with --out",
        ) from error  # fmt: skip
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, int) and found > FORMAT:
        raise RunError(
            str(path), expected=f"format {FORMAT} or older", found=f"format {found}, of a newer fabula",
            fix="use the version of fabula that made the run, or build into a new folder",
        )  # fmt: skip
    try:
        return Manifest(
            kind=document["kind"],
            created_at=document["created_at"],
            fabula_version=document["fabula_version"],
            seed=document["seed"],
            threshold=document["threshold"],
            settings=document["settings"],
            stages=tuple(document["stages"]),
            sources=tuple(document["sources"]),
        )
    except (KeyError, TypeError) as error:
        raise _damaged(path, f"no usable {error}") from error


def _damaged(path: Path, found: str) -> RunError:
    return RunError(
        str(path), expected="the manifest of a run", found=found,
        fix="restore it from a copy, or build into a new folder",
    )  # fmt: skip


def make_manifest(
    loaded: LoadedPipeline, config: RunConfig, sources: tuple[Mapping[str, str], ...], created_at: str
) -> Manifest:
    """Return the manifest of a run as it is about to be worked on."""
    from .. import __version__

    return Manifest(
        kind=loaded.name,
        created_at=created_at,
        fabula_version=__version__,
        seed=config.run.seed,
        threshold=config.run.threshold,
        settings=config.as_json(),
        stages=tuple(
            {"name": stage.name, "version": stage.spec.version, "libraries": library_versions(stage.spec)}
            for stage in loaded.stages
        ),
        sources=sources,
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``run.json``, whole or not at all; a file that says the same is left alone.

    Raises:
        TargetError: it cannot be written.
    """
    path, data = folder / NAME, pretty_bytes(manifest.as_json())
    try:
        with suppress(FileNotFoundError):
            if path.read_bytes() == data:
                return
        write_atomic(path, [data])
    except OSError as error:
        raise unwritable(path, error) from error


def creation_time(option: str | None) -> str:
    """Return the creation time of a new run, RFC 3339 in UTC, to the second.

    The option wins, then ``SOURCE_DATE_EPOCH``, then the clock; this is the only place that reads it.

    Raises:
        ConfigError: the option or the variable is not a time.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if option is not None:
        return normal_time(option)
    if not epoch:
        return _format(datetime.now(UTC))
    try:
        return _format(datetime.fromtimestamp(int(epoch), UTC))
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(
            "SOURCE_DATE_EPOCH", expected="seconds since 1970", found=repr(epoch), fix="correct or unset it"
        ) from error


def normal_time(text: str) -> str:
    """Return an RFC 3339 time in UTC, to the second.

    Raises:
        ConfigError: it is not a time with a zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            "--created-at", expected="a time with its zone", found=repr(text),
            fix="write it like 2026-01-31T12:00:00Z",
        )  # fmt: skip
    return _format(moment.astimezone(UTC))


def _format(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
