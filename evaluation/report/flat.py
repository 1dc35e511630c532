"""A report as CSV: every score and count on a line, and every verdict, or every shot, on a line."""

from collections.abc import Iterator

from ...schemas.csv_text import csv_text
from ...schemas.score import Score
from .model import ReportDocument

SCORES = ("table", "row", "measure", "value", "low", "high", "numerator", "denominator", "status", "reason")
VERDICTS = (
    "unit", "place", "method", "seed", "why", "item", "group", "question", "valid", "judge", "condition",
    "vote", "outcome", "answer", "status", "confidence", "correct",
)  # fmt: skip

SHOTS = ("method", "story_id", "shot", "picture", "onstage", "found", "expected", "matched")

Row = tuple[object, ...]


def scores_csv(document: ReportDocument) -> str:
    """Return every score, comparison and count of a report, one a line; values are fractions."""
    return csv_text(SCORES, _score_rows(document))


def verdicts_csv(document: ReportDocument) -> str:
    """Return the verdicts on every question that the report shows, one a line."""
    return csv_text(VERDICTS, _verdict_rows(document))


def shots_csv(document: ReportDocument) -> str:
    """Return every shot of every method, one a line; a score without a value is empty."""
    every = document.shots.every if document.shots is not None else ()
    names = tuple(dict.fromkeys(name for one in every for name in one.values))
    rows = (
        (
            one.method, one.story_id, one.number, one.picture, one.onstage, one.found, one.expected,
            one.matched, *(one.values.get(name) for name in names),
        )
        for one in every
    )  # fmt: skip
    return csv_text((*SHOTS, *names), rows)


def _score_rows(document: ReportDocument) -> Iterator[Row]:
    for table in (document.headline, *document.details, *document.agreement, *document.people):
        for row in table.rows:
            for name, score in row.scores.items():
                yield (table.name, row.label, name, *_numbers(score))
    for plot in document.plots:
        for group, points in plot.groups.items():
            for point in points:
                yield (f"plot_{plot.name}", group, point.series, *_numbers(point.score))
    yield from _comparison_rows(document)
    yield from _rank_rows(document)
    for counts in (*document.controls, *document.accounting, *([document.cost] if document.cost else [])):
        for counted in counts.rows:
            for name, told in counted.values.items():
                yield (counts.name, counted.label, name, *_plain(told))


def _comparison_rows(document: ReportDocument) -> Iterator[Row]:
    for one in document.comparisons:
        yield ("comparison", f"{one.first} less {one.second}", one.measure, *_numbers(one.difference))
        for name, value in (*one.p.items(), *one.effects.items()):
            yield ("comparison", f"{one.first} less {one.second}", name, *_plain(value))


def _rank_rows(document: ReportDocument) -> Iterator[Row]:
    leaders = document.shots.leaders if document.shots is not None else None
    for row in leaders.rows if leaders is not None else ():
        for name, place in row.places.items():
            status = "ok" if place.rank is not None else "undefined"
            yield (
                "rank", row.method, name, place.rank, place.low, place.high, None, place.stories, status,
                place.why,
            )  # fmt: skip


def _numbers(score: Score) -> Row:
    return (
        score.value, score.low, score.high, score.numerator, score.denominator, score.status, score.reason,
    )  # fmt: skip


def _plain(value: object) -> Row:
    return (value, None, None, None, None, "undefined" if value is None else "ok", None)


def _verdict_rows(document: ReportDocument) -> Iterator[Row]:
    for case in document.cases.shown if document.cases else ():
        for item in case.items:
            for one in item.verdicts:
                yield (
                    case.unit, case.place, case.method, case.seed, case.why, item.id, item.group, item.text,
                    item.valid, one.judge, one.condition, one.vote, one.outcome, one.answer, one.status,
                    one.confidence, one.correct,
                )  # fmt: skip
