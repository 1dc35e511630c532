"""Reading released episodes as typed records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.entities import EpisodeRecord
from .entity_tree import EntitySet, read_entity_set
from .layout import ENTITIES, EPISODES
from .loading import read_release_document, read_rows, repeated


@dataclass(frozen=True)
class EntityRelease:
    """Released episodes in memory: frozen, typed records in order of their ids.

    Attributes:
        path: its folder.
        info: the content of its ``release.json``.
        records: the episodes with their history.
        entity_set: the episodes and splits, as the official files have them.
    """

    path: Path
    info: Mapping[str, Json] = field(repr=False)
    records: tuple[EpisodeRecord, ...] = field(repr=False)
    entity_set: EntitySet = field(repr=False)

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @cached_property
    def by_id(self) -> dict[str, EpisodeRecord]:
        """Id of an episode -> its record."""
        return {record.episode_id: record for record in self.records}

    @cached_property
    def tiers(self) -> dict[str, tuple[str, ...]]:
        """Tier -> ids of its episodes, ``all`` last."""
        return self.entity_set.tiers()

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[EpisodeRecord]:
        return iter(self.records)


def load_entity_release(path: str | Path) -> EntityRelease:
    """Load released episodes.

    Raises:
        InputError: the folder is no such release, or has lines that cannot be read; all of them are listed.
    """
    folder = Path(path)
    info = read_release_document(folder, ENTITIES)
    problems: list[UserError] = []
    records = tuple(read_rows(folder / EPISODES, EpisodeRecord, problems))
    problems.extend(repeated(folder / EPISODES, [record.episode_id for record in records]))
    if problems:
        raise InputError(problems)
    return EntityRelease(folder, info, records, read_entity_set(folder, rules=False)[0])
