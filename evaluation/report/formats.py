"""Tables of scores and counts as text for others: CSV for scripts, Markdown and LaTeX for papers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...errors import ConfigError, TargetError
from ...pages.figures import figure_rows
from ...pages.grid import Cell, Grid, Unit, count_text, interval_text, latex_of, value_text
from ...pages.page import readable
from ...schemas.canonical import Json, csv_text, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json
from ...schemas.text import counted
from ...schemas.values import Score
from ..stats.paired import Paired
from .model import CountTable, Measure, ReportDocument, ScoreRow, ScoreTable, SeenEpisode
from .page import render_page
from .people import plain_score

if TYPE_CHECKING:
    import pyarrow as pa

Table: TypeAlias = ScoreTable | CountTable
Format = Literal["text", "json", "csv", "markdown", "latex"]
"""How a result is printed: for people, whole for scripts, or its tables in one of three forms."""
Row: TypeAlias = tuple[Cell, ...]

COLUMNS = ("table", "row", "measure", "value", "low", "high", "numerator", "denominator", "status", "reason")
"""Columns of the CSV: a score or a count on a line, values as fractions."""
NUMBERS = ("value", "low", "high", "numerator", "denominator")
REMARK = "Remark"
_MARKDOWN = str.maketrans({"|": r"\|", "\n": " ", "\\": r"\\", "*": r"\*", "_": r"\_", "<": "&lt;"})


def written(tables: Iterable[Table], form: Format) -> str:
    """Return tables as CSV, Markdown or LaTeX.

    ``tables``: in order; those without a row are left out.
    """
    some = [table for table in tables if table.rows]
    if form == "csv":
        return csv_text(COLUMNS, (row for table in some for row in score_rows(table)))
    if form == "latex":
        return latex_of(map(grid_of, some))
    return "\n".join(map(_markdown, some))


def score_rows(table: Table) -> Iterator[Row]:
    """Yield the lines of a table under :data:`COLUMNS`."""
    if isinstance(table, CountTable):
        for row in table.rows:
            yield from ((table.name, row.label, name, *plain(count)) for name, count in row.values.items())
        return
    for scored in table.rows:
        yield from (
            (table.name, scored.label, name, *numbers(score)) for name, score in scored.scores.items()
        )


def long_table(tables: Iterable[Table], name: str | None = None) -> "pa.Table":
    """Return tables as one Arrow table, a number a row, under :data:`COLUMNS`; values as fractions.

    A value that is a text stands in a last column, ``text``, and has no number.

    ``tables``: in order.
    """
    import pyarrow as pa

    some = [table for table in tables if name in (None, table.name)]
    if not some and name is not None:
        fix = "use one of the names in the column table of to_pandas()"
        raise ConfigError(f"table {name}", what="there is no such table", fix=fix)
    rows = [row for table in some for row in score_rows(table)]
    texts = [row[3] if isinstance(row[3], str) else None for row in rows]
    cells = {column: [row[number] for row in rows] for number, column in enumerate(COLUMNS)}
    cells["value"] = [None if isinstance(value, str) else value for value in cells["value"]]
    kinds = {column: pa.float64() if column in NUMBERS else pa.string() for column in COLUMNS}
    return pa.table(
        {column: pa.array(values, kinds[column]) for column, values in cells.items()}
        | {"text": pa.array(texts, pa.string())}
    )


def numbers(score: Score) -> Row:
    """Return the last seven columns of a score."""
    return (
        score.value, score.low, score.high, score.numerator, score.denominator, score.status, score.reason,
    )  # fmt: skip


def plain(value: Cell) -> Row:
    """Return the last seven columns of a count or another plain value."""
    return (value, None, None, None, None, "undefined" if value is None else "ok", None)


def comparison_table(pairs: Sequence[Paired], unit: Unit, difference: str = "") -> ScoreTable:
    """Return paired comparisons as a table, p-values and effect sizes as they are.

    ``difference``: of what the differences are, for readers; empty where the rows say it.
    """
    of = f"Differences of {difference}. " if difference else ""
    units, corrections = ({getattr(pair, name) for pair in pairs} for name in ("unit", "correction"))
    ends = "; in brackets 95 % intervals" if any(pair.low is not None for pair in pairs) else ""
    return ScoreTable(
        name="comparison", title="Methods against each other", heading="First less second",
        note=f"{of}Paired by {', '.join(sorted(units))}{ends}; "
        f"p-values corrected ({', '.join(sorted(corrections))}).",
        measures=(
            Measure(name="difference", label="Difference", unit=unit),
            *p_measures(pairs),
            Measure(name="cohen_d", label="Cohen's d", unit="plain"),
            Measure(name="rank_biserial", label="Rank-biserial", unit="plain"),
        ),
        rows=tuple(_compared(pair) for pair in pairs),
    )  # fmt: skip


def p_measures(pairs: Iterable[Paired]) -> tuple[Measure, ...]:
    """Return the columns of the p-values of comparisons: signed ranks, and by which test the other is."""
    tests = sorted({pair.resampled_test for pair in pairs if pair.p_bootstrap is not None})
    return (
        Measure(name="p_wilcoxon", label="p, Wilcoxon", unit="p"),
        Measure(name="p_bootstrap", label=f"p, {' or '.join(tests) or 'bootstrap'}", unit="p"),
    )


def _compared(pair: Paired) -> ScoreRow:
    why = "undefined for these pairs"
    difference = plain_score(pair.difference, "nothing that both have")
    tests = {
        "p_wilcoxon": pair.p_wilcoxon_corrected, "p_bootstrap": pair.p_bootstrap_corrected,
        "cohen_d": pair.cohen_d, "rank_biserial": pair.rank_biserial,
    }  # fmt: skip
    return ScoreRow(
        label=" ".join([*(f"{what}:" for what in pair.about.values()), pair.first, "less", pair.second]),
        scores={
            "difference": difference.model_copy(update={"low": pair.low, "high": pair.high}),
            **{name: plain_score(value, why) for name, value in tests.items()},
        },
        note=counted(pair.n, pair.unit),
    )


def _cells(table: Table) -> Iterator[list[str]]:
    """Yield head and rows as text; remarks about rows are the last column, where there are some."""
    noted = isinstance(table, ScoreTable) and any(row.note for row in table.rows)
    if isinstance(table, CountTable):
        yield [table.heading, *table.columns.values()]
        for row in table.rows:
            yield [row.label, *(count_text(row.values.get(name)) for name in table.columns)]
        return
    yield [table.heading, *(_named(measure) for measure in table.measures), *[REMARK] * noted]
    for scored in table.rows:
        told = (
            _value(scored.scores.get(measure.name), measure.unit, scored.marks.get(measure.name, ""))
            for measure in table.measures
        )
        yield [scored.label, *told, *[scored.note or ""] * noted]


def _named(measure: Measure) -> str:
    return f"{measure.label}, %" if measure.unit == "percent" else measure.label


def _value(score: Score | None, unit: Unit, mark: str = "") -> str:
    if score is None:
        return ""
    return f"{value_text(score.value, unit)}{mark} {interval_text(score, unit)}".strip()


def _markdown(table: Table) -> str:
    head, *rows = ([readable(cell).translate(_MARKDOWN) for cell in row] for row in _cells(table))
    rule = ["---", *("---" if name == REMARK else "---:" for name in head[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
    note = [readable(table.note).translate(_MARKDOWN), ""] if table.note else []
    return "\n".join([f"**{readable(table.title).translate(_MARKDOWN)}**", "", *lines, "", *note])


def grid_of(table: Table) -> Grid:
    """Return a table as people read it: every cell a text."""
    head, *rows = (tuple(readable(cell) for cell in row) for row in _cells(table))
    remark = tuple(number for number, name in enumerate(head) if number and name == REMARK)
    return Grid(table.name, readable(table.title), head, tuple(rows), readable(table.note), remark)


# -- A report as CSV: every score and count on a line, and every verdict, or every shot, on a line
#
# Writing the files of a report.

VERDICTS = (
    "unit", "place", "method", "seed", "why", "item", "group", "question", "valid", "judge", "condition",
    "vote", "outcome", "answer", "status", "confidence", "correct",
)  # fmt: skip

SHOTS = ("method", "story_id", "shot", "picture", "onstage", "found", "expected", "matched")


def scores_csv(document: ReportDocument) -> str:
    """Return every score, comparison and count of a report, one a line; values are fractions."""
    return csv_text(COLUMNS, _score_rows(document))


def verdicts_csv(document: ReportDocument) -> str:
    """Return the verdicts on every question that the report shows, one a line."""
    return csv_text(VERDICTS, _verdict_rows(document))


def shots_csv(document: ReportDocument) -> str:
    """Return every shot of every method, one a line; a score without a value is empty."""
    every = document.shots.every if document.shots is not None else ()
    names = tuple(dict.fromkeys(name for shot in every for name in shot.values))
    rows = (
        (
            shot.method, shot.story_id, shot.number, shot.picture, shot.onstage, shot.found, shot.expected,
            shot.matched, *(shot.values.get(name) for name in names),
        )
        for shot in every
    )  # fmt: skip
    return csv_text((*SHOTS, *names), rows)


def _score_rows(document: ReportDocument) -> Iterator[Row]:
    for table in (document.headline, *document.details, *document.agreement, *document.people):
        yield from score_rows(table)
    for figure in (*document.figures, *document.people_figures):
        for group, series, name, value in figure_rows(figure):
            yield (f"plot_{figure.name}", f"{group} · {series}", name, *plain(value))
    yield from _comparison_rows(document)
    yield from _rank_rows(document)
    for counts in (*document.controls, *document.accounting, *([document.cost] if document.cost else [])):
        yield from score_rows(counts)


def _comparison_rows(document: ReportDocument) -> Iterator[Row]:
    for compared in document.comparisons:
        yield (
            "comparison",
            f"{compared.first} less {compared.second}",
            compared.measure,
            *numbers(compared.difference),
        )
        for name, value in (*compared.p.items(), *compared.effects.items()):
            yield ("comparison", f"{compared.first} less {compared.second}", name, *plain(value))


def _rank_rows(document: ReportDocument) -> Iterator[Row]:
    leaders = document.shots.leaders if document.shots is not None else None
    for row in leaders.rows if leaders is not None else ():
        for name, place in row.places.items():
            status = "ok" if place.rank is not None else "undefined"
            yield (
                "rank", row.method, name, place.rank, place.low, place.high, None, place.stories, status,
                place.why,
            )  # fmt: skip


def _verdict_rows(document: ReportDocument) -> Iterator[Row]:
    for case in document.cases.shown if document.cases else ():
        for item in case.items:
            for one in item.verdicts:
                yield (
                    case.unit, case.place, case.method, case.seed, case.why, item.id, item.group, item.text,
                    item.valid, one.judge, one.condition, one.vote, one.outcome, one.answer, one.status,
                    one.confidence, one.correct,
                )  # fmt: skip
    for episode in document.episodes.episodes if document.episodes else ():
        yield from _reply_rows(episode)


def _reply_rows(episode: SeenEpisode) -> Iterator[Row]:
    """Yield the replies on one episode; what was asked is the group, the entity the item."""
    rows = [(shot.shot, "", reply) for shot in episode.shots for reply in shot.replies]
    for entity in episode.entities:
        rows += [("", entity.name, reply) for reply in entity.replies]
        rows += [(cell.shot, entity.name, reply) for cell in entity.cells if cell for reply in cell.replies]
    for shot, name, reply in rows:
        yield (
            episode.episode_id, shot, episode.method, None, None, name, reply.condition, None, None,
            reply.judge, reply.condition, reply.vote, reply.outcome, reply.answer, reply.status,
            reply.confidence, reply.correct,
        )  # fmt: skip


PAGE = "evaluation_report.html"
"""Name of the page, in the evaluation folder, where no other is given."""


@dataclass(frozen=True)
class Written:
    """A report and where it was written."""

    document: ReportDocument  # the report
    files: dict[str, Path]  # name for readers -> file; the page comes first

    def as_json(self) -> dict[str, Any]:
        """Return the files and the main numbers."""
        main = {
            row.label: {name: score.as_json() for name, score in row.scores.items()}
            for row in self.document.headline.rows
            if row.scores
        }
        return {
            "kind": self.document.kind,
            "files": {name: str(path) for name, path in self.files.items()},
            "headline": main,
            "warnings": list(self.document.warnings),
        }

    def lines(self) -> Iterator[str]:
        """Yield the main numbers and the files."""
        table = self.document.headline
        for row in table.rows:
            told = []
            for measure in table.measures:
                score = row.scores.get(measure.name)
                if score is not None:
                    value, ends = value_text(score.value, measure.unit), interval_text(score, measure.unit)
                    told.append(f"{measure.label} {value} {ends}".strip())
            if told:
                yield f"{row.label}: {'; '.join(told)}"
        yield from (f"note: {warning}" for warning in self.document.warnings)
        yield from (f"{name}: {path}" for name, path in self.files.items())


def check_page(page: Path) -> None:
    """Check that a report can be written as this page, before anything is computed."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise TargetError(
            str(page), what=f"a report is a web page, and {page.name or 'a folder'} does not end in .html",
            fix="give --out such as report.html",
        )  # fmt: skip
    _refuse_others(page.with_suffix(".json"))


def write_report(document: ReportDocument, page: Path) -> Written:
    """Write the page, and JSON and CSV files of the same name beside it."""
    check_page(page)
    stem = page.stem
    files = {
        "page": page,
        "JSON": page.with_name(f"{stem}.json"),
        "scores as CSV": page.with_name(f"{stem}.csv"),
    }
    if document.shots is None:
        files["verdicts as CSV"] = page.with_name(f"{stem}_verdicts.csv")
    else:
        files["shots as CSV"] = page.with_name(f"{stem}_shots.csv")
    beside = {name: path.name for name, path in list(files.items())[1:]}
    contents = (
        render_page(document, beside).encode("utf-8"),
        pretty_bytes(_stored(document.as_json())),
        scores_csv(document).encode("utf-8"),
        (verdicts_csv if document.shots is None else shots_csv)(document).encode("utf-8"),
    )
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        for path, data in zip(files.values(), contents, strict=True):
            write_atomic(path, [data])
    except OSError as error:
        raise TargetError(
            str(page), what=f"the page cannot be written: {error}", fix="choose another --out"
        ) from error
    return Written(document, files)


def _refuse_others(path: Path) -> None:
    """Refuse to write over a JSON file that is no report of an earlier time, such as a run's own files."""
    try:
        found = read_json(path, follow=True)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not {"headline", "manifest", "schema_version"} <= found.keys():
        raise TargetError(
            str(path), what="the file is there, and it is not an earlier report",
            fix="give the page another name with --out",
        )  # fmt: skip


def _stored(value: Json) -> Json:
    """Return a value that UTF-8 can hold: lone surrogates, as a hostile reply may carry, are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_stored(entry) for entry in value]
    if isinstance(value, dict):
        return {_stored(key): _stored(one) for key, one in value.items()}
    return value
