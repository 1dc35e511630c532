"""Results, stored files and replies that other runs hold, by what they were made from.

A result's key says all that it depends on, so a result with the same key is the same result, whichever run
made it. It is copied into the journal of the run that takes it over, with the replies that it was made from,
as ones that cost nothing here, and with the files of the store that its fields name. The other run may then
go.
"""

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Self

from ...errors import RunError
from ...media.kept_files import bring_files
from ...models.spec import ModelSettings
from ...schemas.canonical import link_or_copy
from ...schemas.paths import STORE as SHARED
from ...schemas.plain_files import unzipped
from .. import journal_file
from ..calls import call_row, calls_of
from ..journal import Encoded, Entry, Head, Journal, Known, Listing, read_listing
from ..journal_file import Statement
from ..manifest import NAME as MANIFEST
from ..manifest import read_manifest
from ..stage import StageSpec

_TOGETHER = 200
_STORED = re.compile(rb'"([\w-]*[0-9a-f]{64}[\w.-]*)"')
"""What may be the name of a stored file in a result's fields."""


@dataclass(frozen=True, slots=True)
class Held:
    """A result that another run holds, without its fields."""

    head: Head
    run: "_Run"
    spec: StageSpec


@dataclass(frozen=True, slots=True)
class _Run:
    """Another run: its journal, its stored files, and when it was created; None where nothing says."""

    journal: Journal
    store: Path
    created_at: str | None


class Reused:
    """Other runs, open for reading. Use it in a ``with`` block.

    ``folders``: of the runs; of those that hold a result, the first counts. ``store``: where the run that
    takes results over keeps files. ``created_at``: when that run was created.

    Raises RunError: one of them is no run, or cannot be read.
    """

    def __init__(self, folders: Sequence[Path], store: Path, created_at: str) -> None:
        self._store, self._created_at = store, created_at
        self._opened = ExitStack()
        with ExitStack() as opened:
            self._runs = [_open(Path(folder), opened) for folder in folders]
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def results(self, spec: StageSpec, keys: Sequence[str]) -> Iterator[Held]:
        """Yield the results of a stage that are known by some keys, each once."""
        wanted = list(keys)
        for run in self._runs:
            if spec.dated and run.created_at != self._created_at:
                continue
            left = []
            for start in range(0, len(wanted), _TOGETHER):
                some = wanted[start : start + _TOGETHER]
                heads = {head.key: head for head in run.journal.heads_of(some)}
                yield from (Held(head, run, spec) for head in heads.values())
                left += [key for key in some if key not in heads]
            wanted = left

    def listing(self, table: Held, name: str = "items") -> Listing:
        """Return a list of a table that another run holds."""
        return read_listing(table.run.journal, table.head, name)

    def listed(self, table: Held, known: Known) -> Iterator[tuple[int, list[Held]]]:
        """Yield the results that a table's lists name and ``known`` lacks: how many, and those that are held.

        A few at a time.
        """
        lines = chain(self.listing(table), self.listing(table, "kept"))
        lacking = (key for _, key in lines if key not in known)
        while keys := sorted(set(islice(lacking, _TOGETHER))):
            yield len(keys), list(self.results(table.spec, keys))

    def fields(self, known: Held) -> bytes:
        """Return the blob of a result."""
        return known.run.journal.blobs([known.head.seq])[known.head.seq]

    def entry(self, known: Held) -> tuple[Entry, list[Statement]]:
        """Return a result as it is to be written, and what writes the calls that it was made from.

        The files that its fields name are in the store when this returns.
        """
        head, journal = known.head, known.run.journal
        origin = journal.origin(head.seq)
        blob = None if head.status != "made" else self.fields(known)
        if blob is not None:
            self._take_files(blob, known.run.store)
        encoded = Encoded(head.status, head.code, head.reason, journal.evidence(head.seq), head.outputs, blob)
        entry = Entry(
            key=head.key, stage=origin.stage, item=head.item, part=origin.part, version=origin.version,
            settings=origin.settings, libraries=origin.libraries, inputs=origin.inputs, encoded=encoded,
        )  # fmt: skip
        statements: list[Statement] = []
        asks = issubclass(known.spec.settings, ModelSettings)
        for place, call in enumerate(calls_of(journal, head.key) if asks else ()):
            _, row = call_row(replace(call, cost=0.0, attempts=0))
            statements.append((journal_file.KEEP_CALL, row))
            statements.append((journal_file.PUT_ASK, (head.key, place, call.request, call.sample)))
        return entry, statements

    def _take_files(self, blob: bytes, store: Path) -> None:
        for name in stored_names(blob):
            take_file(store / name, self._store / name)


def _open(folder: Path, opened: ExitStack) -> _Run:
    created = read_manifest(folder).created_at if (folder / MANIFEST).exists() else None
    journal = opened.enter_context(Journal.open(folder, writable=False))
    if not journal.holds_anything():
        raise RunError(
            str(folder), what="nothing was made in this run, so there is nothing to take over",
            fix="give the folder of another run, or leave --reuse out",
        )  # fmt: skip
    return _Run(journal, folder / "store", created)


def check_reused(folder: Path) -> None:
    """Refuse a folder that is no run, or one that holds nothing."""
    with ExitStack() as opened:
        _open(folder, opened)


def stored_names(blob: bytes) -> frozenset[str]:
    """Return what may be names of stored files in the fields of a result."""
    with suppress(zlib.error):  # a damaged result is found by whoever reads it
        return frozenset(match.decode("ascii") for match in _STORED.findall(unzipped(blob)))
    return frozenset()


def bring_stored(journal: Journal, store: Path) -> None:
    """Copy files that results name, and that the store of their run lacks, from where files are shared."""
    if os.environ.get(SHARED):
        for blob in journal.all_blobs():
            bring_files((name for name in stored_names(blob) if "." in name), store)


def take_file(source: Path, target: Path) -> None:
    """Take a file of a store over into another one, unless it is there; it is linked where that works."""
    if target.exists() or not source.is_file():
        return
    link_or_copy(source, target)
