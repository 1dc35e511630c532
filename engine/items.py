"""Where every item of a run stands: alive with its fields in the journal, or stopped with a reason.

Only places and digests are kept in memory, never contents: about a quarter of a kilobyte per item and field.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .codec import gather_fields
from .journal import Head, Journal
from .pipeline import SOURCES
from .stage import Item
from .worker import Parts

_TOGETHER = 32  # items whose blobs are read at once

Ref = tuple[int, str]
"""Where a field is: ``seq`` of the result that holds it, and the field's digest."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an item went no further."""

    stage: str
    status: str
    code: str | None
    reason: str | None


@dataclass(slots=True)
class Items:
    """The items of a run on their way through the stages.

    Attributes:
        live: ids of the items that are alive, in source order.
        columns: field -> item id -> where it is; only fields that are still needed.
        stops: the items that went no further.
    """

    live: list[str] = field(default_factory=list)
    columns: dict[str, dict[str, Ref]] = field(default_factory=dict)
    stops: dict[str, Stop] = field(default_factory=dict)

    @classmethod
    def root(cls, head: Head) -> "Items":
        """Return the one item that every run starts from."""
        return cls([SOURCES], {SOURCES: {SOURCES: (head.seq, head.outputs[SOURCES])}})

    def digests(self, item: str, fields: Sequence[str]) -> list[str]:
        """Return the digests of an item's fields."""
        return [self.columns[name][item][1] for name in fields]

    def place(self, head: Head) -> None:
        """Take over what a stage made of an item."""
        for name, sha256 in head.outputs.items():
            self.columns.setdefault(name, {})[head.item] = (head.seq, sha256)

    def drop_stopped(self) -> None:
        """Take items that stopped out of the living."""
        self.live = [item for item in self.live if item not in self.stops]

    def keep_columns(self, needed: frozenset[str]) -> None:
        """Forget the fields that nobody reads any more."""
        for name in [name for name in self.columns if name not in needed]:
            del self.columns[name]

    def parts(
        self, journal: Journal, items: Iterable[str], fields: Sequence[str]
    ) -> Iterator[tuple[str, Parts]]:
        """Yield items with the blobs that hold their fields, reading a few at a time."""
        batch: list[str] = []
        for item in items:
            batch.append(item)
            if len(batch) == _TOGETHER:
                yield from self._parts(journal, batch, fields)
                batch = []
        yield from self._parts(journal, batch, fields)

    def _parts(
        self, journal: Journal, batch: Sequence[str], fields: Sequence[str]
    ) -> Iterator[tuple[str, Parts]]:
        places = [_places(self.columns, item, fields) for item in batch]
        blobs = journal.blobs(seq for place in places for seq in place)
        for item, place in zip(batch, places, strict=True):
            yield item, tuple((blobs[seq], tuple(names)) for seq, names in place.items())


def _places(columns: dict[str, dict[str, Ref]], item: str, fields: Sequence[str]) -> dict[int, list[str]]:
    places: dict[int, list[str]] = {}
    for name in fields:
        places.setdefault(columns[name][item][0], []).append(name)
    return places


class LazyItems:
    """Items whose fields are read while one goes through them; may be gone through again."""

    def __init__(self, items: Items, journal: Journal, ids: Sequence[str], fields: Sequence[str]) -> None:
        self._items, self._journal, self._ids, self._fields = items, journal, ids, fields

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Item]:
        for item, parts in self._items.parts(self._journal, self._ids, self._fields):
            yield Item(item, gather_fields(parts))
