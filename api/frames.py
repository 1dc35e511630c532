"""Judgements of an archive as an Arrow table, read in blocks: a million take seconds."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.archive.archive import JUDGEMENTS
from ..schemas.canonical import canonical_text
from ..schemas.plain_files import MISSHAPEN, explaining, open_plain, parse_json

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 16 << 20
"""Bytes that are parsed at a time; a line must fit in."""
REPEATED = (
    "protocol", "kind", "method", "condition", "judge", "provider", "model", "reported_model", "prompt",
    "outcome", "time",
)  # fmt: skip
"""Columns with few different values: each of these stands once."""
_TEXTS = (
    "protocol", "kind", "method", "unit", "item", "condition", "prompt", "outcome", "reason", "raw", "time",
)  # fmt: skip
NEEDED = ("protocol", "kind", "unit", "item", "condition", "outcome")
"""What no judgement is without."""
_NUMBERS = ("seed", "vote", "attempt", "input_tokens", "output_tokens")
COLUMNS = (
    "protocol", "kind", "method", "unit", "seed", "item", "condition", "judge", "provider", "model",
    "reported_model", "vote", "attempt", "prompt", "outcome", "reason", "raw", "input_tokens",
    "output_tokens", "cost", "time",
)  # fmt: skip
"""Columns of a judgement, in order; those of what was read from the reply follow, as ``parsed_NAME``."""


def judgement_table(folder: Path) -> "pa.Table":
    """Return the judgements of an evaluation folder, a row each, in the order of the file.

    The fields of :class:`fabula.schemas.judgement.Judgement` are columns, those of its judge too
    (``judge`` is its spec). What was read from the replies stands in ``parsed_NAME`` for every field that
    some reply has, in order of their names; a field whose values are of different types is JSON text.

    Raises:
        InputError: there is no such file, or a line of it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    path = folder / JUDGEMENTS
    with explaining(
        path, "give an evaluation folder; `fabula score` lists every line that is wrong", of=MISSHAPEN
    ):
        try:
            table = _read(path, None)
            plain = (
                _without_times(table.schema.field("parsed").type) if "parsed" in table.column_names else None
            )
            if plain is not None:
                table = _read(path, plain)
        except pa.ArrowInvalid:
            table = _read(path, pa.null(), ignored=True)
            table = table.append_column("parsed", _parsed_one_by_one(path))
        if any(table[name].null_count for name in NEEDED) or "parsed" not in table.column_names:
            raise ValueError("a line lacks a field that every judgement has")
    judge, parsed = table["judge"], table["parsed"]
    columns = {name: table[name] for name in table.column_names if name in COLUMNS and name != "judge"}
    for name, column in (("judge", "spec"), ("provider",) * 2, ("model",) * 2, ("reported_model",) * 2):
        columns[name] = pc.struct_field(judge, column)
    columns["attempt"] = pc.fill_null(table["attempt"], 1)
    columns |= {name: columns[name].dictionary_encode() for name in REPEATED}
    given = {name: columns[name] for name in COLUMNS}
    fields = sorted(parsed.type.names) if pa.types.is_struct(parsed.type) else []
    return pa.table(given | {f"parsed_{name}": pc.struct_field(parsed, name) for name in fields})


def _read(path: Path, parsed: Any, *, ignored: bool = False) -> "pa.Table":  # noqa: ANN401 - an Arrow type
    import pyarrow as pa
    from pyarrow import json

    judge = pa.struct([(name, pa.string()) for name in ("spec", "provider", "model", "reported_model")])
    known: list[tuple[str, Any]] = [
        *((name, pa.string()) for name in _TEXTS), *((name, pa.int64()) for name in _NUMBERS),
        ("cost", pa.float64()), ("judge", judge),
    ]  # fmt: skip
    if parsed is not None and not ignored:
        known.append(("parsed", parsed))
    rest = "ignore" if ignored else "infer"
    with open_plain(path, follow=True) as file:
        return json.read_json(
            file, json.ReadOptions(block_size=BLOCK),
            json.ParseOptions(explicit_schema=pa.schema(known), unexpected_field_behavior=rest),
        )  # fmt: skip


def _without_times(kind: Any) -> Any:  # noqa: ANN401 - an Arrow type
    """Return a type in which texts that look like times are texts; None where there are none."""
    import pyarrow as pa

    def plain(part: Any) -> Any:  # noqa: ANN401 - an Arrow type
        if pa.types.is_timestamp(part):
            return pa.string()
        if pa.types.is_struct(part):
            return pa.struct([(field.name, plain(field.type)) for field in part])
        return pa.list_(plain(part.value_type)) if pa.types.is_list(part) else part

    made = plain(kind)
    return None if made == kind else made


def _parsed_one_by_one(path: Path) -> "pa.ChunkedArray":
    """Return what was read from replies whose fields have no one type: each field as JSON text."""
    import pyarrow as pa

    replies: list[dict[str, str | None]] = []
    chunks: list[pa.Array] = []
    names: set[str] = set()
    with open_plain(path, follow=True) as file:
        for line in file:
            parsed = parse_json(line)["parsed"] or {}
            replies.append({name: canonical_text(value) for name, value in parsed.items()})
            names |= parsed.keys()
    kind = pa.struct([(name, pa.string()) for name in sorted(names)])
    chunks = [pa.array(replies[start : start + 50_000], kind) for start in range(0, len(replies), 50_000)]
    return pa.chunked_array(chunks, kind)
