"""A table of a study: its number in the paper, what it needs, and the function that makes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...evaluation.report.formats import Table
from ...schemas.values import Score
from .results import Part, StudyResults


class NoTable(Exception):
    """There is nothing to fill a table with; the message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class StudyTable:
    """One table.

    Attributes:
        number: in the KathaTrace paper, such as ``52`` or ``55 and 75``; empty for one of ours.
        name: of the table in data and files; also what it is chosen by.
        title: for readers.
        group: section of the page that it stands in.
        needs: parts of the study without which there is no table.
        make: makes it; raises :class:`NoTable` where there is nothing to fill it with.
    """

    number: str
    name: str
    title: str
    group: str
    needs: tuple[Part, ...]
    make: Callable[[StudyResults], Table]

    @property
    def caption(self) -> str:
        """The title, with the table of the paper that it follows."""
        tables = "Tables" if len(self.numbers) > 1 else "Table"
        return f"{self.title} (after {tables} {self.number})" if self.number else self.title

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers, each by itself."""
        return tuple(self.number.split(" and ")) if self.number else ()


@dataclass(frozen=True, slots=True)
class MadeTables:
    """The tables of a study.

    Attributes:
        tables: name -> table, in order.
        absent: name -> why there is no such table.
    """

    tables: Mapping[str, Table]
    absent: Mapping[str, str]


def unmeasured(reason: str) -> Score:
    """Return the score of a column of the paper that nothing here can fill."""
    return Score(value=None, status="undefined", reason=reason)


NO_RATINGS = "no person has rated it"
"""Why columns of people's ratings are empty."""
