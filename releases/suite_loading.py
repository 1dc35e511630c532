"""Reading a released prompt suite as typed records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.events import Suite, SuiteRecord
from . import loading
from .layout import EVENTS, PROMPTS
from .loading import Release, kind_of, read_release_document, read_rows, repeated


@dataclass(frozen=True)
class SuiteRelease:
    """A released prompt suite in memory: frozen, typed records in order of their names.

    Attributes:
        path: its folder.
        info: the content of its ``release.json``.
        records: the prompts with their history.
    """

    path: Path
    info: Mapping[str, Json] = field(repr=False)
    records: tuple[SuiteRecord, ...] = field(repr=False)

    @property
    def version(self) -> str:
        """Its semantic version."""
        return str(self.info["version"])

    @cached_property
    def suite(self) -> Suite:
        """The suite, as the official file has it."""
        return Suite({record.unit: record.entry for record in self.records})

    @cached_property
    def by_id(self) -> dict[str, SuiteRecord]:
        """File name of the video -> its record."""
        return {record.unit: record for record in self.records}

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[SuiteRecord]:
        return iter(self.records)


def load_suite_release(path: str | Path) -> SuiteRelease:
    """Load a released prompt suite.

    Raises:
        InputError: the folder is no such release, or has lines that cannot be read; all of them are listed.
    """
    folder = Path(path)
    info = read_release_document(folder, EVENTS)
    problems: list[UserError] = []
    records = tuple(read_rows(folder / PROMPTS, SuiteRecord, problems))
    problems.extend(repeated(folder / PROMPTS, [record.unit for record in records]))
    if problems:
        raise InputError(problems)
    return SuiteRelease(folder, info, records)


def load(path: str | Path) -> Release | SuiteRelease:
    """Load a release of any kind: stories, or a prompt suite.

    Raises:
        InputError: as :func:`.loading.load`.
    """
    return load_suite_release(path) if kind_of(Path(path)) == EVENTS else loading.load(path)
