"""Bringing sets of episodes in and out: the official tree, and a folder like that of a finished run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engine.manifest import SourceEntry, creation_time
from ...errors import InputError, UserError
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.entities import EpisodeRecord
from ...schemas.text import tallies
from ...schemas.values import Issue
from ...validators.entities.view import BLOCKING
from ...validators.report import ValidationReport
from ..target import require_free, require_outside, staged, write_imported_run
from .form import tiers_by_split
from .tree import EPISODES, FOLDER, IMPORTED_ENTITIES, EntitySet, read_entity_set, write_tree

ROLE = "episodes"
GIVEN = "given"
"""Who made what was imported."""


@dataclass(frozen=True)
class ImportedEpisodes:
    """A set of episodes that was brought in."""

    out: Path  # the new folder
    entity_set: EntitySet  # what was written
    report: ValidationReport  # everything that is wrong with the source

    @property
    def lost(self) -> tuple[Issue, ...]:
        """The findings because of which a file was not taken, or an episode cannot be released."""
        return tuple(issue for issue in self.report.issues if issue.code in BLOCKING)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON: counts by code, and the findings that cost something."""
        return {
            "out": str(self.out),
            "sha256": self.entity_set.sha256,
            "written": self.entity_set.counts(),
            "counts": dict(self.report.counts),
            "lost": [issue.as_dict() for issue in self.lost],
        }

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, without the findings."""
        yield self.report.summary()
        counts = tallies(self.entity_set.counts())
        yield f"{self.out}: {counts}"
        yield f"next: fabula validate {self.out}, or fabula stats {self.out}"


def import_episodes(source: Path, out: Path, created_at: str | None = None) -> ImportedEpisodes:
    """Copy a set of episodes into a new folder that is used like that of a finished run.

    Files stay the same byte for byte. A file that cannot be used stays out; the report says so.

    ``source``: a folder with ``scripts`` and ``splits``, the one above it, or a folder of scripts.
    """
    time = creation_time(created_at)
    require_free(out)
    entity_set, report = read_entity_set(source)
    require_outside(out, source)
    if not entity_set.episodes:
        first = report.issues[0]
        problem = UserError(
            f"{source} {first.where}",
            what=f"no episode can be used: {first.message}",
            fix=first.cure,
        )
        raise InputError([problem])
    with staged(out.absolute()) as (draft,):
        write_tree(draft / FOLDER, entity_set)
        write_atomic(draft / EPISODES, jsonl_lines(_records(source, entity_set)))
        path = _printable(str(source.absolute()))
        entry = SourceEntry(role=ROLE, name=_name(source), path=path, sha256=entity_set.sha256)
        write_imported_run(draft, IMPORTED_ENTITIES, entry, EPISODES, time)
    return ImportedEpisodes(out, entity_set, report)


def export_episodes(entity_set: EntitySet, out: Path) -> dict[str, int]:
    """Write the official tree of a set into a new folder: ``scripts`` and ``splits``, byte for byte.

    Returns:
        What was written.
    """
    require_free(out)
    with staged(out.absolute()) as (draft,):
        write_tree(draft, entity_set)
    return entity_set.counts()


def _records(source: Path, entity_set: EntitySet) -> Iterator[dict[str, Any]]:
    tiers = tiers_by_split(entity_set)
    for episode in entity_set.episodes:
        yield EpisodeRecord(
            episode_id=episode.episode_id,
            tiers=tiers[episode.episode_id],
            entry=episode.script,
            source=_name(source),
            producers={"$": GIVEN},
        ).as_json()


def _name(source: Path) -> str:
    return _printable(source.absolute().name)


def _printable(path: str) -> str:
    """Return a path, which need not be valid UTF-8, as text that can be stored."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
