"""Reading released shot scripts as typed records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.shots import ShotRecord
from .layout import SHOT_SCRIPTS, SHOTS
from .loading import read_release_document, read_rows, repeated
from .shot_tree import ShotSet, read_shot_set


@dataclass(frozen=True)
class ShotRelease:
    """Released shot scripts in memory: frozen, typed records in order of their ids.

    Attributes:
        path: its folder.
        info: the content of its ``release.json``.
        records: the scripts with their history.
        shot_set: scripts and reference images, as the official files have them.
    """

    path: Path
    info: Mapping[str, Json] = field(repr=False)
    records: tuple[ShotRecord, ...] = field(repr=False)
    shot_set: ShotSet = field(repr=False)

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @cached_property
    def by_id(self) -> dict[str, ShotRecord]:
        """Story id -> its record."""
        return {record.story_id: record for record in self.records}

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[ShotRecord]:
        return iter(self.records)


def load_shot_release(path: str | Path) -> ShotRelease:
    """Load released shot scripts.

    Raises:
        InputError: the folder is no such release, or has lines that cannot be read; all of them are listed.
    """
    folder = Path(path)
    info = read_release_document(folder, SHOTS)
    problems: list[UserError] = []
    records = tuple(read_rows(folder / SHOT_SCRIPTS, ShotRecord, problems))
    problems.extend(repeated(folder / SHOT_SCRIPTS, [record.story_id for record in records]))
    if problems:
        raise InputError(problems)
    return ShotRelease(folder, info, records, read_shot_set(folder)[0])
