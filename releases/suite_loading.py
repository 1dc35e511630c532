"""Reading a released prompt suite as typed records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.events import Suite, SuiteRecord
from ..validators.suite_statistics import prompt_statistics, suite_statistics
from . import loading
from .entity_loading import EntityRelease, load_entity_release
from .hub.fetch import release_folder
from .layout import ENTITIES, EVENTS, PROMPTS, SHOTS, SUITE
from .loading import Release, kind_of, read_release_document, read_rows, repeated
from .shot_loading import ShotRelease, load_shot_release
from .suites import load_suite


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


def statistics_of_suite(path: Path) -> dict[str, Json] | None:
    """Return counts over a suite: a file in the official form, or a run or release of events.

    Returns:
        None where the path is nothing of the kind.

    Raises:
        InputError: it is, and cannot be read; every problem is listed.
    """
    if path.is_file() and path.suffix == ".json":
        return prompt_statistics(load_suite(path).prompts.values())
    if not (path / PROMPTS).is_file() or not (path / SUITE).is_file():
        return None
    problems: list[UserError] = []
    records = tuple(read_rows(path / PROMPTS, SuiteRecord, problems))
    if problems:
        raise InputError(problems)
    return suite_statistics(records)


def load(path: str | Path) -> Release | SuiteRelease | EntityRelease | ShotRelease:
    """Load a release of any kind: stories, a prompt suite, episodes, or shot scripts.

    Args:
        path: its folder, or a version on a Hub such as ``user/mine@0.2.0``, which is fetched first.

    Raises:
        InputError: as :func:`.loading.load`. For a version on a Hub, the errors of :func:`.hub.fetch.fetch`.
    """
    folder = release_folder(path)
    kind = kind_of(folder)
    if kind == ENTITIES:
        return load_entity_release(folder)
    if kind == SHOTS:
        return load_shot_release(folder)
    return load_suite_release(folder) if kind == EVENTS else loading.load(folder)
