"""Parquet files with explicit schemas, written row group by row group so that memory stays small.

The bytes depend on the rows and the pyarrow version only: fixed row groups, codec and level, no build time.
A table without rows in a split gets no file: ``datasets`` cannot load an empty one.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..schemas.canonical import Json
from .layout import parquet_path
from .tables import Table

ROW_GROUP = 2000
_CODEC = {"compression": "zstd", "compression_level": 3, "version": "2.6", "data_page_version": "1.0"}


def arrow_schema(table: Table) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the explicit Arrow schema of a table."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "boolean": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "integers": pa.list_(pa.int64()),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in table.columns])


class TableWriter:
    """Writes the flat tables of a release while its records stream by, in id order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[tuple[str, str], tuple[Table, list[dict[str, Json]]]] = {}
        self._writers: dict[tuple[str, str], Any] = {}
        self.counts: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for table, split_file in [(table, key[1]) for key, (table, _) in self._rows.items()]:
                    self._flush(table, split_file)
        finally:
            for writer in self._writers.values():
                writer.close()

    def add(self, table: Table, split_file: str, row: dict[str, Json]) -> None:
        """Add one row to the file of a table and split."""
        _, rows = self._rows.setdefault((table.name, split_file), (table, []))
        rows.append(row)
        if len(rows) == ROW_GROUP:
            self._flush(table, split_file)

    def _flush(self, table: Table, split_file: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        _, rows = self._rows[table.name, split_file]
        if not rows:
            return
        schema = arrow_schema(table)
        path = parquet_path(table.name, split_file)
        writer = self._writers.get((table.name, split_file))
        if writer is None:
            target = self._folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[table.name, split_file] = pq.ParquetWriter(target, schema, **_CODEC)
        group = pa.Table.from_pylist(rows, schema=schema).combine_chunks()
        writer.write_table(group, row_group_size=ROW_GROUP)
        self.counts[path] = self.counts.get(path, 0) + len(rows)
        rows.clear()
