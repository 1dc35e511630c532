"""Tables of statistics: rows of one value per tier, each with its convention and what the paper printed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...schemas.canonical import Json
from .measures import Measures
from .numbers import Value, value_json
from .published import PUBLISHED

Groups = Mapping[str, Sequence[Measures]]
"""Tier -> the measures of its episodes; the last one holds all of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        key: its name in JSON.
        label: what it says, for people.
        convention: how it is counted, where that needs saying.
        values: tier -> value.
        published: tier -> what the paper prints for its own data; empty where it prints nothing.
    """

    key: str
    label: str
    convention: str
    values: Mapping[str, Value]
    published: Mapping[str, str]

    def as_json(self) -> Json:
        """Return the row as plain JSON."""
        return {
            "label": self.label,
            "convention": self.convention,
            "values": {tier: value_json(value) for tier, value in self.values.items()},
            "published": dict(self.published),
        }


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``key`` is its name in JSON."""

    key: str
    title: str
    rows: tuple[Row, ...]

    def as_json(self) -> Json:
        """Return the table as plain JSON."""
        return {"title": self.title, "rows": {row.key: row.as_json() for row in self.rows}}


class TableMaker:
    """Puts a table together row by row.

    Args:
        key: name of the table, under which what the paper printed stands.
        title: what the table is.
        groups: the episodes.
    """

    def __init__(self, key: str, title: str, groups: Groups) -> None:
        self._key, self._title, self._groups = key, title, groups
        self._rows: list[Row] = []

    def row(
        self, key: str, label: str, count: Callable[[Sequence[Measures]], Value], convention: str = ""
    ) -> None:
        """Add a row whose values are counted over the episodes of each tier."""
        values = {tier: count(episodes) for tier, episodes in self._groups.items()}
        published = PUBLISHED.get(self._key, {}).get(key, {})
        self._rows.append(Row(key, label, convention, values, published))

    def table(self) -> Table:
        """Return the table."""
        return Table(self._key, self._title, tuple(self._rows))
