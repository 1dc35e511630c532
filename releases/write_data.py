"""The data files of a release, written while the bundles of a run stream by."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ..schemas.canonical import Json, canonical_bytes, sha256_bytes
from .composition import PARTS, Counted
from .layout import ANNOTATIONS, JSONL_FILES, PRODUCERS, RECORD_IDS, SPLIT_FILES, VARIANTS
from .parquet import TableWriter
from .reviews import Reviews
from .run_folder import FinishedRun
from .selection import Selection
from .tables import record_rows, variant_row

Hashes = dict[str, dict[str, str]]


@dataclass(slots=True)
class DataFiles:
    """What was counted and hashed while the data files were written.

    Attributes:
        counted: counts over the public records.
        hidden: counts of the hidden-test stories.
        public_hashes: JSONL file -> record id -> SHA-256 of its canonical JSON; ``hidden_hashes`` likewise.
        rows: Parquet path -> number of rows.
    """

    counted: Counted
    hidden: Counter[str] = field(default_factory=Counter)
    public_hashes: Hashes = field(default_factory=dict)
    hidden_hashes: Hashes = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def write_data(
    run: FinishedRun,
    selection: Selection,
    folders: tuple[Path, Path],
    reviews: Reviews,
    license_id: str,
) -> DataFiles:
    """Write the JSONL files of both folders and the Parquet tables of the public one.

    A record that reviewers accepted gets the status that its review gives it; one that states no licence
    gets the one given.

    Args:
        run: the run that is packed.
        selection: which stories go where.
        folders: the public folder and the hidden one.
        reviews: what people said of the stories.
        license_id: SPDX id of the licence of the release.
    """
    from ..validators.statistics import StatisticsCollector

    public, hidden = folders
    data = DataFiles(Counted(StatisticsCollector()))
    with ExitStack() as stack:
        writer = stack.enter_context(TableWriter(public))
        open_files = stack.enter_context(_Lines(public))
        secret_files = stack.enter_context(_Lines(hidden)) if selection.hidden else None
        for bundle in run.bundles():
            bundle["record"] = reviews.reviewed(bundle["record"])
            story_id, provenance = bundle["record"]["story_id"], bundle["record"]["provenance"]
            provenance["dataset_license"] = provenance["dataset_license"] or license_id
            if story_id in selection.public:
                _count_public(data.counted, bundle)
                for table, row in record_rows(bundle["record"]):
                    writer.add(table, SPLIT_FILES[bundle["record"]["split"]], row)
                open_files.add(bundle)
            elif story_id in selection.hidden and secret_files is not None:
                _count_hidden(data, bundle)
                secret_files.add(bundle)
        data.public_hashes = open_files.finish()
        data.hidden_hashes = secret_files.finish() if secret_files is not None else {}
        for variant in open_files.variants():
            table, row = variant_row(variant)
            writer.add(table, SPLIT_FILES[selection.public[variant["base_story_id"]]], row)
    data.rows = writer.counts
    return data


def _count_public(counted: Counted, bundle: Json) -> None:
    record = bundle["record"]
    counted.add_record(record)
    counted.add_producers(bundle["producers"])
    counted.composition.add_checks(bundle["checks"])
    for variant in bundle["variants"]:
        counted.add_variant(record["split"], variant)


def _count_hidden(data: DataFiles, bundle: Json) -> None:
    record = bundle["record"]
    data.hidden.update({"stories": 1, **{part: len(record[part]) for part in PARTS}})
    data.hidden["variants"] += len(bundle["variants"])


class _Lines:
    """The three JSONL files of one folder.

    Records come in id order and are written at once. Variants are held as bytes until the end, because their
    ids need not sort as those of their stories do.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._variants: dict[str, bytes] = {}
        self._hashes: Hashes = {name: {} for name in JSONL_FILES}

    def __enter__(self) -> Self:
        self._files = {name: (self._folder / name).open("wb") for name in (ANNOTATIONS, PRODUCERS)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, bundle: Json) -> None:
        """Write one story and its producers, and keep its variants."""
        record = bundle["record"]
        self._write(ANNOTATIONS, record)
        self._write(PRODUCERS, {"id": record["story_id"], "fields": bundle["producers"]})
        for variant in bundle["variants"]:
            self._variants[variant["variant_id"]] = canonical_bytes(variant)

    def finish(self) -> Hashes:
        """Write the variants, sorted by id, and return the hashes of all records."""
        with (self._folder / VARIANTS).open("wb") as file:
            for variant_id in sorted(self._variants):
                content = self._variants[variant_id]
                file.write(content + b"\n")
                self._hashes[VARIANTS][variant_id] = sha256_bytes(content)
        return self._hashes

    def variants(self) -> Iterator[Json]:
        """Yield the variants in id order, freeing each."""
        for variant_id in sorted(self._variants):
            yield json.loads(self._variants.pop(variant_id))

    def _write(self, name: str, record: Json) -> None:
        content = canonical_bytes(record)
        self._files[name].write(content + b"\n")
        self._hashes[name][record[RECORD_IDS[name]]] = sha256_bytes(content)
