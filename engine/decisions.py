"""What expands and gathers left in the journal: their lists of items, and what a gather decided last."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..schemas.canonical import Json
from .codec import decode
from .journal import Head, Journal

Listing = list[list[str]]
"""What an expand or gather brought forth, in order: item id and key of its result."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a gather decided: the list of items with their keys, and the fields of each."""

    listing: Listing
    fields: Mapping[str, dict[str, Json]]


def read_listing(journal: Journal, table: Head, name: str = "items") -> Listing:
    """Return a list of a table: ``items``, or for a gather also ``kept``, the items that have gone since."""
    listing: Listing = decode(journal.blobs([table.seq])[table.seq])[name]
    return listing


def read_decisions(journal: Journal, table: Head, known: Mapping[str, Head]) -> Decisions:
    """Return what a gather decided in a table for every item that it ever saw, those now gone included.

    Args:
        journal: the journal.
        table: the gather's table.
        known: key -> result, of the gather.
    """
    listing = [*read_listing(journal, table), *read_listing(journal, table, "kept")]
    blobs = journal.blobs(known[key].seq for _, key in listing)
    return Decisions(listing, {item: decode(blobs[known[key].seq]) for item, key in listing})


def decisions(folder: Path, stage: str) -> dict[str, dict[str, Json]]:
    """Return what a gather stage last decided for every item that it ever saw: item id -> fields.

    Items that failed since, or whose source has gone, are there too. Empty before the stage's first time.
    Reads only; works while another process works on the run.

    Raises:
        RunError: the folder has no journal, or one that cannot be read.
    """
    with Journal.open(Path(folder), writable=False) as journal:
        tables = list(journal.heads(stage, part="table"))
        if not tables:
            return {}
        known = {head.key: head for head in journal.heads(stage)}
        return dict(read_decisions(journal, tables[-1], known).fields)
