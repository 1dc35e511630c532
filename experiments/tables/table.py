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
        number: in the KathaTrace paper; empty for one of ours.
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
        return f"{self.title} (after Table {self.number})" if self.number else self.title


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
