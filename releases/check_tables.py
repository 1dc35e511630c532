"""Whether the Parquet tables hold what the JSONL files say: the columns, every row, and nothing else."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json, sha256_file
from ..schemas.issue import Issue
from .form import ReleaseForm
from .layout import DATA, files_in, parquet_path
from .pack.documents import tools
from .parquet import TableWriter, arrow_schema, batches, open_table
from .tables import Table
from .verify.read_back import Digests, digest_of, expected_rows

_WRITTEN = {b"ARROW:schema"}
"""What the writer says about a file, beside its rows."""
_CURE = "pack the run again"


def check_tables(folder: Path, form: ReleaseForm) -> Iterator[Issue]:
    """Yield every Parquet table of a release that is not what the JSONL files ask for; only pyarrow reads.

    Args:
        folder: the release.
        form: that of its kind.
    """
    expected = expected_rows(folder, form.rows)
    wanted = {parquet_path(table, split): (table, split) for table, split in expected}
    there = {path for path in files_in(folder) if path.startswith(f"{DATA}/")}
    for path in sorted(there - wanted.keys()):
        yield _issue(path, "no record belongs into this file")
    for path in sorted(wanted.keys() - there):
        yield _issue(path, "the file is missing, and records belong into it")
    tables = {table.name: table for table in form.tables}
    for path, (name, split) in sorted(wanted.items()):
        if path in there:
            yield from _check_table(folder / path, path, tables[name], expected[name, split])


def check_table_bytes(folder: Path, document: Mapping[str, Any], form: ReleaseForm) -> Iterator[Issue]:
    """Yield the tables whose bytes are not those that packing writes, where the same pyarrow wrote them.

    Rows may be right and the file hold more: between its parts, or in what it says of them.

    Args:
        folder: the release.
        document: its ``release.json``.
        form: that of its kind.
    """
    stated, ours = document.get("tools"), tools()
    if not isinstance(stated, dict) or any(stated.get(name) != ours[name] for name in ("fabula", "pyarrow")):
        return
    with tempfile.TemporaryDirectory(prefix="fabula-tables-") as name:
        draft = Path(name)
        with TableWriter(draft) as writer:
            for split, table, row in form.rows(folder):
                writer.add(table, split, row)
        for path in sorted(writer.counts):
            if (folder / path).is_file() and sha256_file(folder / path) != sha256_file(draft / path):
                yield _issue(path, "the file differs from what packing writes for these rows")


def count_rows(expected: Digests) -> dict[str, int]:
    """Return Parquet path -> number of rows, of the rows that :func:`.read_back.expected_rows` found."""
    return {parquet_path(table, split): len(rows) for (table, split), rows in expected.items()}


def _check_table(file: Path, path: str, table: Table, wanted: list[bytes]) -> Iterator[Issue]:
    try:
        with open_table(file, plain=True) as found:
            if _columns(found.schema_arrow) != _columns(arrow_schema(table)):
                yield _issue(path, "the columns are not those that packing writes")
                return
            if set(found.metadata.metadata or {}) - _WRITTEN or _has_notes(found.schema_arrow):
                yield _issue(path, "it has metadata that packing does not write")
            if found.metadata.num_rows != len(wanted):
                yield _issue(path, f"{found.metadata.num_rows} rows; the JSONL files have {len(wanted)}")
                return
        yield from _check_rows(file, path, table, wanted)
    except (ValueError, OSError) as error:  # pyarrow's errors about damaged files are such
        yield _issue(path, f"pyarrow cannot read it: {' '.join(str(error).split())[:300]}")


def _check_rows(file: Path, path: str, table: Table, wanted: list[bytes]) -> Iterator[Issue]:
    with open_table(file) as found:
        rows = (row for batch in batches(found, file.stat().st_size) for row in batch.to_pylist())
        for number, (row, digest) in enumerate(zip(rows, wanted, strict=True)):
            if digest_of(row) != digest:
                yield _issue(path, f"row {number} ({_key(row, table)}) differs from the JSONL files")
                return


def _columns(schema: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - pyarrow has no types
    # Versions of pyarrow name the elements of a list "item" or "element".
    return [(field.name, str(field.type).replace("<element:", "<item:")) for field in schema]


def _has_notes(schema: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(schema.metadata or any(field.metadata for field in schema))


def _key(row: dict[str, Json], table: Table) -> str:
    return ", ".join(f"{name} {str(row.get(name))[:80]!r}" for name in table.key)


def _issue(path: str, message: str) -> Issue:
    return Issue(path, "$", "table", message, _CURE)
