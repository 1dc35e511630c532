"""Reading a release the way its users will, and comparing every row with the JSONL files.

Runs as a program of its own (``python -m fabula.releases.verify.read_back FOLDER``), to which
:mod:`.findings` hands tables and rows of the kind, pickled, through its standard input: ``datasets``
and its friends read their settings when they are imported, and what they cache, print and keep ends
with the process.
"""

import hashlib
import json
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...schemas.canonical import Json, canonical_bytes
from ...schemas.paths import CROISSANT, README, files_in
from ...schemas.plain_files import open_plain, read_text
from ...schemas.text import tallied
from ...schemas.values import Issue
from ..parquet import (
    PlacedRow,
    Table,
    TooLarge,
    as_stated,
    batches,
    features_of,
    open_table,
    parse_front_matter,
)

Rows = Callable[[Path], Iterator[PlacedRow]]
"""Folder -> every row that its JSONL files ask for."""
Digests = dict[tuple[str, str], list[bytes]]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""What the environment must say before the libraries are imported."""

_MOST_MEMORY, _TIMES_THE_FILES = 4 << 30, 20
_REPAIR = "pack the release again"


def expected_rows(folder: Path, rows: Rows, *, pictures: bool = True) -> Digests:
    """Return ``(table, split file)`` -> the digest of each row that the JSONL files ask for, in order."""
    digests: Digests = {}
    for split_file, table, row in rows(folder):
        kept = row if pictures else {name: row[name] for name in row if name not in table.pictures}
        digests.setdefault((table.name, split_file), []).append(digest_of(kept))
    return digests


def read_with_datasets(
    folder: Path, expected: Digests, cache: Path, tables: Sequence[Table]
) -> Iterator[Issue]:
    """Load every configuration and split with ``datasets``, and yield every difference."""
    import datasets

    card = parse_front_matter(read_text(folder / README))
    configs = {config["config_name"]: config for config in card["configs"]}
    for table in tables:
        wanted = {split: rows for (name, split), rows in expected.items() if name == table.name}
        if not wanted and table.name not in configs:
            continue
        try:
            loaded = datasets.load_dataset(str(folder), table.name, cache_dir=str(cache))
        except Exception as error:  # noqa: BLE001 - decoder boundary: any failure of the library is a finding
            yield _unread("datasets", table.name, error)
            continue
        for split in sorted(set(wanted) ^ set(loaded)):
            yield _different("datasets", table.name, f"split {split} is only on one side")
        for split in sorted(set(wanted) & set(loaded)):
            yield from _check_features(datasets, table, loaded[split])
            rows = _batched_rows(loaded[split], table, datasets)
            yield from _compare("datasets", f"{table.name}/{split}", rows, wanted[split], table)


def read_with_croissant(folder: Path, expected: Digests, tables: Sequence[Table]) -> Iterator[Issue]:
    """Read every record set with mlcroissant, and yield every difference.

    It decodes pictures, so that their bytes cannot be compared: ``expected`` is without them, and each must
    have come as a picture.
    """
    import mlcroissant

    dataset: Any = None
    for table in tables:
        # mlcroissant reads the files of a set in the order of their names.
        wanted = [row for (name, _), rows in sorted(expected.items()) if name == table.name for row in rows]
        if not wanted:
            continue
        # A Dataset takes longer to make than to read, but what has been read from can give no rows: what it
        # gives otherwise than wanted is read anew.
        if dataset is not None and not list(_read_record_set(dataset, table, wanted)):
            continue
        try:
            dataset = mlcroissant.Dataset(str(folder / CROISSANT))
        except Exception as error:  # noqa: BLE001 - decoder boundary: any failure of the library is a finding
            yield _unread("mlcroissant", table.name, error)
            continue
        yield from _read_record_set(dataset, table, wanted)


def _read_record_set(dataset: Any, table: Table, wanted: list[bytes]) -> Iterator[Issue]:  # noqa: ANN401 - no types
    try:
        rows = [_plain(table, row) for row in dataset.records(table.name)]
    except Exception as error:  # noqa: BLE001 - decoder boundary: any failure of the library is a finding
        yield _unread("mlcroissant", table.name, error)
        return
    for warning in sorted(dataset.metadata.ctx.issues.warnings):
        yield Issue(CROISSANT, f"$ {table.name}", "croissant-warning", str(warning), _REPAIR, "warning")
    yield from _compare("mlcroissant", table.name, iter(rows), wanted, table)


def _check_features(datasets: Any, table: Table, split: Any) -> Iterator[Issue]:  # noqa: ANN401 - no types
    wanted = datasets.Features.from_dict(features_of(table))
    for name, feature in wanted.items():
        actual = split.features.get(name)
        if actual != feature:
            yield _different("datasets", table.name, f"column {name} is {actual}, not {feature}")


def _batched_rows(split: Any, table: Table, datasets: Any) -> Iterator[dict[str, Json]]:  # noqa: ANN401 - no types
    for name in table.pictures:
        split = split.cast_column(name, datasets.Image(decode=False))
    for batch in split.iter(batch_size=10 if table.pictures else 1000):
        names = list(batch)
        for values in zip(*batch.values(), strict=True):
            yield as_stated(dict(zip(names, values, strict=True)), table)


def _compare(
    reader: str, file: str, rows: Iterator[dict[str, Json]], wanted: list[bytes], table: Table
) -> Iterator[Issue]:
    count = 0
    for row in rows:
        if count >= len(wanted) or digest_of(row) != wanted[count]:
            key = {name: row.get(name) for name in table.key}
            yield _different(reader, file, f"row {count} ({key}) is not what the JSONL files say")
            return
        count += 1
    if count != len(wanted):
        yield _different(reader, file, f"{tallied(count, 'rows')}, not {len(wanted)} as in the JSONL files")


def _plain(table: Table, row: Mapping[str, Any]) -> dict[str, Json]:
    """Return a Croissant record as a plain row: short names, text instead of bytes, no pictures."""
    for name in table.pictures:
        if not getattr(row[f"{table.name}/{name}"], "size", None):
            raise ValueError(f"no picture in the column {name}")
    plain = (column.name for column in table.columns if column.kind != "picture")
    return {name: _decoded(row[f"{table.name}/{name}"]) for name in plain}


def _decoded(value: Any) -> Json:  # noqa: ANN401 - bytes, numbers, arrays
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, list):
        return [_decoded(member) for member in value]
    return value


def digest_of(row: Mapping[str, Json]) -> bytes:
    """Return what tells a row of a table from every other (16 bytes)."""
    return hashlib.blake2b(canonical_bytes(dict(row)), digest_size=16).digest()


def _unread(reader: str, table: str, error: Exception) -> Issue:
    cause = error.__cause__ or error
    message = f"{reader} cannot read it: {type(cause).__name__}: {' '.join(str(cause).split())[:300]}"
    return Issue(table, "$", "read-back", message, _REPAIR)


def _different(reader: str, file: str, what: str) -> Issue:
    return Issue(file, "$", "read-back", f"read with {reader}: {what}", _REPAIR)


def refused_tables(folder: Path) -> Iterator[Issue]:
    """Yield the tables that no library should be given: no plain files, or decoding to far too much.

    What is wrong with a damaged one the libraries say themselves.
    """
    for path in files_in(folder):
        if path.endswith(".parquet"):
            try:
                open_plain(folder / path).close()
                _decode(folder / path)
            except (OSError, TooLarge) as error:
                message = f"not read with the libraries of users: {' '.join(str(error).split())[:300]}"
                yield Issue(path, "$", "read-back", message, _REPAIR)


def _decode(path: Path) -> None:
    """Decode a table, as far as it can be decoded."""
    try:
        with open_table(path) as table:
            for _ in batches(table, path.stat().st_size):
                pass
    except TooLarge:
        raise
    except (OSError, ValueError):  # pyarrow's errors about damaged files are such
        return


def bound_memory(folder: Path) -> None:
    """Let this process have no more memory than reading a release of this size takes.

    What a table decodes to can be seen in part only before it is decoded.
    """
    with suppress(ImportError, ValueError, OSError):  # not every system has such a limit
        import resource

        sizes = sum((folder / path).lstat().st_size for path in files_in(folder))
        most = _MOST_MEMORY + _TIMES_THE_FILES * sizes
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(
            resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def main(folder: Path, tables: Sequence[Table], rows: Rows) -> int:
    """Read a release back and print the findings as JSON."""
    bound_memory(folder)
    refused = list(refused_tables(folder))
    if refused:
        sys.stdout.write(json.dumps({"issues": [issue.as_dict() for issue in refused], "rows": {}}) + "\n")
        return 0
    expected = expected_rows(folder, rows)
    with tempfile.TemporaryDirectory(prefix="fabula-read-back-") as cache:
        issues = [
            *read_with_datasets(folder, expected, Path(cache), tables),
            *read_with_croissant(folder, expected_rows(folder, rows, pictures=False), tables),
        ]
    counts = {f"{table}/{split}": len(digests) for (table, split), digests in sorted(expected.items())}
    sys.stdout.write(json.dumps({"issues": [issue.as_dict() for issue in issues], "rows": counts}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *pickle.load(sys.stdin.buffer)))
