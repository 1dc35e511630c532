"""The row of an evaluation in the columns of the paper's table, beside the rows that are printed there."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import Field

from ...errors import ConfigError
from ...evaluation.archive.archive import read_manifest
from ...evaluation.archive.replies import stand_in_notes
from ...evaluation.report.formats import grid_of
from ...evaluation.report.model import Measure, ScoreRow, ScoreTable
from ...schemas.canonical import canonical_text
from ...schemas.judgement import EvaluationManifest
from ...schemas.text import tallied
from ...schemas.values import Own, Score
from ..evaluations import score_tables
from .benchmark import Benchmark, Printed
from .getting import unchecked

# -- Printed tables of the papers, as data: every number as it is printed, with its source

Cell = float | tuple[float, float] | None
"""A printed number, or it and half the width of its printed interval; shares as fractions."""


class PublishedTable(Own):
    """Rows of one printed table."""

    key: str = Field(description="Name on the command line.")
    paper: str = Field(description="The benchmark that the paper is about.")
    source: str = Field(description="Which table it is, and which part of it.")
    about: str = Field(description="What was scored, by whom.")
    disagrees: tuple[str, ...] = Field(default=(), description="Where the paper prints other numbers.")
    measures: tuple[Measure, ...] = Field(description="Columns.")
    rows: dict[str, tuple[Cell, ...]] = Field(description="Method -> its numbers, by column.")

    def table(self) -> ScoreTable:
        names = [measure.name for measure in self.measures]
        return ScoreTable(
            name=f"published-{self.key}",
            title=f"{self.paper}, {self.source}",
            note=" ".join([f"{self.about} Published, not run by us.", *self.disagrees]),
            measures=self.measures,
            rows=tuple(
                ScoreRow(label=method, scores=dict(zip(names, map(_printed, cells), strict=True)))
                for method, cells in self.rows.items()
            ),
        )


class _Document(Own):
    tables: tuple[PublishedTable, ...]


def _printed(cell: Cell) -> Score:
    if cell is None:
        return Score(value=None, status="undefined", reason="not printed")
    value, half = cell if isinstance(cell, tuple) else (cell, None)
    ends = {} if half is None else {"low": round(value - half, 6), "high": round(value + half, 6)}
    return Score(value=value, status="ok", **ends)


@cache
def published_tables() -> dict[str, PublishedTable]:
    content = (files(__package__) / "published.json").read_bytes()
    return {table.key: table for table in _Document.model_validate_json(content).tables}


def published_table(key: str) -> PublishedTable:
    known = published_tables()
    if key not in known:
        what, fix = f"there is no published table {key}", f"choose one of: {', '.join(known)}"
        raise ConfigError("--published", what=what, fix=fix)
    return known[key]


# --

OURS = "here"
"""Said of rows that were made by this run, where printed rows name their judge."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows beside the printed ones."""

    benchmark: Benchmark
    tables: tuple[ScoreTable, ...]  # ours first in each, then the printed rows; the main table first
    differences: tuple[str, ...]  # how the protocol of our rows differs from that of the printed ones

    def as_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark.name, "differences": list(self.differences),
            "tables": [table.model_dump(mode="json") for table in self.tables],
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        for table in self.tables:
            grid = grid_of(table)
            yield from ("", grid.title)
            listed = [tuple(map(str, cells)) for cells in (grid.columns, *grid.rows)]
            widths = [max(map(len, column)) for column in zip_longest(*listed, fillvalue="")]
            for cells in listed:
                yield "  ".join(
                    cell.ljust(width) for cell, width in zip(cells, widths, strict=False)
                ).rstrip()
            yield grid.note
        yield ""
        if self.differences:
            yield "not like the printed rows:"
            yield from (f"  {line}" for line in self.differences)
        else:
            yield "made as the printed rows were, as far as the archive says"


def rows_of(
    benchmark: Benchmark, folder: Path, judged_by: Path | None = None, resamples: int = 10_000
) -> Rows:
    """Return the rows of an evaluation beside the printed ones.

    ``judged_by``: what was judged, where the archive does not hold it.
    """
    manifest = read_manifest(folder)
    if manifest.kind != benchmark.noun:
        what = f"this is an evaluation of {manifest.kind}; {benchmark.title} is judged as {benchmark.noun}"
        raise ConfigError(str(folder), what=what, fix="give an evaluation of this benchmark")
    scored = score_tables(folder, judged_by, resamples)[0]
    assert isinstance(scored, ScoreTable)
    rows = {row.label: (row, _judges(row, manifest)) for row in scored.rows}
    tables: list[ScoreTable] = []
    differences: list[str] = []
    has_table = any(_is_of(each, judges) for each in benchmark.printed for _, judges in rows.values())
    for printed in benchmark.printed:
        own = [row for row, judges in rows.values() if _is_of(printed, judges)]
        if not own and (tables or has_table):
            continue  # another table is of this judge
        chosen = own or [row for row, _ in rows.values()]
        tables.append(_beside(benchmark, printed, chosen, manifest))
        if printed.differs:
            differences.append(printed.differs)
        if not own:
            judges = ", ".join(sorted({judge for _, of in rows.values() for judge in of})) or "nobody"
            differences.append(
                f"judged by {judges}; the printed rows by {printed.judge} ({printed.protocol})"
            )
    if not tables:
        tables, differences = [scored], ["no results were printed for it"]
    return Rows(benchmark, tuple(tables), (*differences, *_differences(benchmark, manifest)))


def _judges(row: ScoreRow, manifest: EvaluationManifest) -> tuple[str, ...]:
    """Return who judged a row: the judge that its label names, else all of the evaluation."""
    named = row.label.rpartition(" \N{MIDDLE DOT} ")[2] if " \N{MIDDLE DOT} " in row.label else ""
    every = manifest.protocol.get("judges") or ()
    return (named,) if named else tuple(str(judge) for judge in every)


def _is_of(printed: Printed, judges: Sequence[str]) -> bool:
    """Return whether judges are those of a printed table."""
    fits = [
        [
            re.search(rf"(?:^|[:/#]){pattern}(?:@[\w./-]+)?$", judge, re.IGNORECASE) is not None
            for pattern in printed.judged_by
        ]
        for judge in judges
    ]
    return bool(fits) and all(map(any, fits)) and all(map(any, zip(*fits, strict=True)))


def _beside(
    benchmark: Benchmark, printed: Printed, rows: Sequence[ScoreRow], manifest: EvaluationManifest
) -> ScoreTable:
    table = published_table(printed.key)
    made = table.table()
    ours = tuple(
        ScoreRow(
            label=row.label, note=_note(benchmark, row, manifest),
            scores={
                measure.name: row.scores.get(printed.columns.get(measure.name, measure.name))
                or Score(value=None, status="undefined", reason=f"not measured for {row.label}")
                for measure in made.measures
            },
        )
        for row in rows
    )  # fmt: skip
    theirs = tuple(row.model_copy(update={"note": f"printed; {printed.judge}"}) for row in made.rows)
    note = f"{made.note} Printed rows: {printed.judge}; {printed.protocol}. In brackets 95 % intervals."
    return made.model_copy(update={"rows": (*ours, *theirs), "note": note})


def _note(benchmark: Benchmark, row: ScoreRow, manifest: EvaluationManifest) -> str:
    judges = ", ".join(_judges(row, manifest)) or "no judge"
    return f"{OURS}; {judges}{_covered(benchmark, row, manifest)}"


def _covered(benchmark: Benchmark, row: ScoreRow, manifest: EvaluationManifest) -> str:
    """Return how much of a method could be judged, for the note of its row."""
    asked, valid, unit = benchmark.counted
    for method, counts in (manifest.subject.get("methods") or {}).items():
        if (row.label == method or row.label.startswith((f"{method} ", f"{method},"))) and counts.get(asked):
            return f"; {counts.get(valid)} of {counts[asked]} {unit}"
    return ""


def _differences(benchmark: Benchmark, manifest: EvaluationManifest) -> Iterator[str]:
    """Yield in which way an evaluation is not as the benchmark's protocol has it."""
    preset = manifest.protocol.get("preset")
    imported = "imported_from" in manifest.environment
    if imported:
        yield "imported: whoever judged chose words, pictures and decoding"
    elif not isinstance(preset, dict) or preset.get("name") != benchmark.protocol:
        yield f"not asked under the protocol {benchmark.protocol}: words and pictures are other ones"
    elif preset.get("departures"):
        yield f"settings that depart from {benchmark.protocol}: {', '.join(preset['departures'])}"
    asked, valid, unit = benchmark.counted
    for method, counts in (manifest.subject.get("methods") or {}).items():
        requested, judged = counts.get(asked), counts.get(valid)
        if requested is None:
            continue
        if judged != requested:
            yield f"{method}: {judged} of {requested} {unit} could be judged"
        whole = benchmark.size.get(unit)
        if whole is not None and requested != whole:
            yield f"{method}: {tallied(requested, unit)} of the {whole:,} of the benchmark were asked for"
    if not imported and (data := unchecked(benchmark)) is not None:
        yield data
    from ...models.vision.registry import not_published  # needs numpy only, and takes a while

    if others := not_published(canonical_text(manifest.protocol.get("models"))):
        yield f"weights whose hash is not that of the published ones: {', '.join(others)}"
    yield from stand_in_notes(manifest)
