"""A report as CSV: every score and count on a line, and every verdict, or every shot, on a line.

Writing the files of a report.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import TargetError
from ...pages.figures import figure_rows
from ...pages.grid import interval_text, value_text
from ...schemas.canonical import Json, csv_text, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json
from .formats import COLUMNS, Row, numbers, plain, score_rows
from .model import ReportDocument, SeenEpisode
from .page import render_page

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
