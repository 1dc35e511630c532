"""What people said, in the report on an evaluation that they were asked about too.

What people thought of outputs, as tables: ratings of a method, preferences between two, groups of people.

What they are made of, and how: :mod:`fabula.people.ratings` in a calibration, as plain JSON.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from ...errors import InputError
from ...pages.figures import Scatter
from ...pages.grid import MINUS, Unit, label_text
from ...schemas.canonical import pretty_bytes, sha256_file, write_atomic, writing
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import counted
from ...schemas.values import Score
from ..archive.archive import JUDGEMENTS, read_manifest
from .model import Measure, ScoreRow, ScoreTable

CALIBRATION = "calibration.json"
"""What a calibration is called that lies beside an archive."""
OF = "judgements_sha256"
"""Where it says which archive it is about."""
LARGEST = 50_000_000
Calibration = Mapping[str, Any]
"""What ``fabula calibrate`` found, as plain JSON."""
Tables = Callable[[Calibration], Iterable[ScoreTable]]
LISTED = 20
"""Most people, or versions of a protocol, that are named one by one."""
SHORT = 12
"""Characters of a hash that are shown."""


@dataclass(frozen=True)
class Drawn:
    """What a calibration shows besides its tables."""

    figures: tuple[Scatter, ...] = ()  # what no table shows
    missing: tuple[str, ...] = ()  # what is not shown, and why, by sentence
    # what it adds to the table of the main numbers: a column, and method -> its score. A method that is not
    # there was not asked about.
    columns: tuple[tuple[Measure, Mapping[str, Score]], ...] = ()
    note: str = ""  # how the intervals were made, as a sentence


@dataclass(frozen=True)
class People:
    """The part of a report that people's answers fill."""

    tables: tuple[ScoreTable, ...] = ()  # what they said, and how judges compare
    note: str = ""  # who was asked
    warnings: tuple[str, ...] = ()  # what readers must know
    drawn: Drawn = field(default_factory=Drawn)  # the same as figures, and what it adds to the main numbers


def write_calibration(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write a calibration beside the archive that it is about, for reports; return its file."""
    path = folder / CALIBRATION
    with writing(path, "leave --save out, or calibrate a copy of the evaluation", what="the file"):
        write_atomic(path, [pretty_bytes({**document, OF: sha256_file(folder / JUDGEMENTS)})])
    return path


def people_of(
    folder: Path, kind: str, tables_of: Tables, drawn_of: Callable[[Calibration], Drawn] = lambda _: Drawn()
) -> People:
    """Return what the calibration beside an archive says; nothing where there is none."""
    path = folder / CALIBRATION
    if not path.is_file():
        return People()
    try:
        document = read_json(path, LARGEST, follow=True)
        if document["kind"] != kind:
            raise ValueError(f"a calibration of kind {document['kind']}, and an evaluation of kind {kind}")
        tables, drawn = tuple(tables_of(document)), drawn_of(document)
        note, about = f"{_note(document['people'])} {drawn.note}".strip(), document.get(OF)
        warnings = [*people_warnings(document["people"])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        fault = "a value of another form" if isinstance(error, ValidationError) else reason_of(error)[:200]
        raise InputError.one(
            str(path), what=f"this is not a calibration of this evaluation: {fault}",
            fix="write it anew with fabula calibrate RUN --human FILE --save, or remove it",
        ) from error  # fmt: skip
    if about is not None and about != sha256_file(folder / JUDGEMENTS):
        warnings.append(
            "The judgements have changed since the comparison with people was made: run fabula calibrate "
            "again."
        )
    return People(tables, note, tuple(warnings), drawn)


def saved_people(folder: Path, tables_of: Callable[[Calibration], Iterable[Any]]) -> People:
    """Return what the calibration beside an archive of any kind says, as tables.

    Nothing where there is none.
    """
    return people_of(folder, read_manifest(folder).kind, tables_of)


def people_warnings(people: Mapping[str, Any]) -> Iterator[str]:
    """Yield what readers of a calibration must know first: made-up people, pooled versions of a protocol."""
    read = people["lines_read"]
    if made_up := people.get("simulated", 0):
        yield (
            f"{made_up:,} of {counted(read, 'line')} come from simulated people: a program made them, so "
            "that numbers about people are no finding."
        )
    protocols = people.get("protocols", {})
    without = read - sum(protocols.values())
    if len(protocols) + bool(protocols and without) < 2:
        return
    named = [f"{name[:SHORT]} ({counted(count, 'line')})" for name, count in protocols.items()][:LISTED]
    more = f" and {len(protocols) - LISTED:,} more" if len(protocols) > LISTED else ""
    none = f"; {counted(without, 'line')} {'names' if without == 1 else 'name'} none" if without else ""
    versions = counted(len(protocols), "version")
    yield f"Lines given under {versions} of the study's protocol are pooled: {', '.join(named)}{more}{none}."


def _note(people: Mapping[str, Any]) -> str:
    lines = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in people["lines"].items())
    left = len(people["excluded_raters"])
    out = f"; {_persons(left)} left out" if left else ""
    return f"{_persons(people['raters'])}: {lines}{out}."


def _persons(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


def intervals_of(document: Calibration) -> str:
    """Return how the intervals of a calibration were made, as a sentence; empty where it does not say."""
    used = document.get("definitions", {}).get("resampling")
    if not used:
        return ""
    if not used["replicates"]:
        return "There are no intervals: no participants were drawn again."
    return (
        f"Intervals: {100 * used['level']:g} %, participants drawn with replacement, each with all that they "
        f"said ({used['replicates']:,} times, seed {used['seed']})."
    )


def asked_tables(document: Calibration) -> Iterator[ScoreTable]:
    """Yield who was asked: lines by kind, what was left out and why, and how consistent people were."""
    people = document["people"]
    counts = {f"Lines that count, of kind {kind}": count for kind, count in people["lines"].items()} | {
        "Lines read, checks of attention included": people["lines_read"],
        "Of these simulated": people.get("simulated", 0),
        "Left out as too fast": people["excluded_as_too_fast"],
        "Different things that were asked": people["items"],
        "Of these answered by too few people": len(people["items_with_too_few_raters"]),
    }
    counts |= {f"Under protocol {name[:SHORT]}": count for name, count in people.get("protocols", {}).items()}
    rows = [ScoreRow(label=label, scores={"number": whole(count)}) for label, count in counts.items()]
    number = Measure(name="number", label="Number", unit="count")
    warned = " ".join(people_warnings(people))
    least = document.get("definitions", {}).get("least_raters")
    note = f"{warned} Too few are fewer than {least} people." if least else warned
    yield from if_any("people_asked", "What people were asked", "What", [number], rows, note.strip())
    share = Measure(name="consistency", label="Repeated controls answered as before", better="high")
    said, left = people["consistency"], people["excluded_raters"]
    shown = list(dict.fromkeys([*left, *said]))
    rows = [
        ScoreRow(
            label=rater,
            scores={"consistency": Score(value=said[rater], status="ok")} if rater in said else {},
            note=f"left out: {left[rater]}" if rater in left else None,
        )
        for rater in shown[:LISTED]
    ]
    more = f"{LISTED} of {len(shown):,} people are listed." if len(shown) > LISTED else ""
    yield from if_any("people_care", "Care that people took", "Person", [share], rows, more)


def between_people(agreement: Sequence[Mapping[str, Any]]) -> Iterator[ScoreTable]:
    """Yield the table of how far people agree; nothing where nobody answered the same."""
    known = [{name: value for name, value in row.items() if value is not None} for row in agreement]
    yield from AGREEMENT.of((label_text(str(row["what"])), row) for row in known)


def if_any(
    name: str, title: str, heading: str, measures: Sequence[Measure], rows: Sequence[ScoreRow], note: str = ""
) -> Iterator[ScoreTable]:
    """Yield a table if it has rows."""
    if rows:
        columns = tuple(measures)
        yield ScoreTable(
            name=name, title=title, heading=heading, note=note, measures=columns, rows=tuple(rows)
        )


class Column(NamedTuple):
    """A column of a table as data: what it is called, and where a row's value stands."""

    name: str  # in the data
    label: str  # for readers
    unit: Unit = "percent"
    path: str = ""  # keys down to the score or number, with dots between; empty where it is the name
    better: Literal["low", "high"] | None = None
    why: str | None = None  # what is said where there is no value

    def score(self, about: Mapping[str, Any], *, bare: bool) -> Score | None:
        """Return what a row holds in this column; None where it holds nothing.

        ``bare``: whether its counts are left out.
        """
        value: Any = about
        for key in (self.path or self.name).split("."):
            if key not in value:
                return None
            value = value[key]
        if not isinstance(value, Mapping):
            return plain_score(value, self.why)
        if "status" not in value:
            return plain_score(value["value"], value.get("reason"))
        return score_of({**value, "counts": {}} if bare else value)


@dataclass(frozen=True)
class TableForm:
    """A table of a calibration as data: its words, and its columns."""

    name: str  # in the data
    title: str  # caption
    heading: str  # of the first column
    columns: Sequence[Column]
    note: str = ""

    def of(
        self, rows: Iterable[tuple[str, Calibration]], remark: Callable[[Any], str | None] = lambda _: None
    ) -> Iterator[ScoreTable]:
        """Yield the table of these rows, each a label and what it is about; nothing where there are none.

        Where counts of scores stand in columns of their own, no score tells them again.

        ``remark``: what is said behind a row.
        """
        bare = any(".counts." in column.path for column in self.columns)
        made = []
        for label, about in rows:
            scores = {column.name: column.score(about, bare=bare) for column in self.columns}
            known = {name: score for name, score in scores.items() if score is not None}
            made.append(ScoreRow(label=label, scores=known, note=remark(about)))
        measures = [
            Measure(name=column.name, label=column.label, unit=column.unit, better=column.better)
            for column in self.columns
        ]
        yield from if_any(self.name, self.title, self.heading, measures, made, self.note)


def whole(count: int) -> Score:
    """Return a count as a score, for a column whose unit is that."""
    return Score(value=count, status="ok")


def score_of(score: Mapping[str, Any]) -> Score:
    """Return a score as a calibration holds it."""
    made = Score.model_validate(dict(score), strict=True)
    if not all(math.isfinite(end) for end in (made.value, made.low, made.high) if end is not None):
        raise ValueError("a score that is not finite")
    return made


def plain_score(value: float | None, reason: str | None) -> Score:
    """Return a score of a value alone, or of the reason why there is none."""
    if value is None:
        return Score(value=None, status="undefined", reason=reason or "undefined")
    return Score(value=value, status="ok")


STEPS = {
    -2: "strongly the baseline", -1: "slightly the baseline", 0: "no preference", 1: "slightly the method",
    2: "strongly the method",
}  # fmt: skip
"""The scale of preferences (KathaTrace, Table 50)."""
AGREEMENT = TableForm(
    "people_agreement", "Agreement between people", "Of",
    (
        Column("pairs", "Pairs that agree"), Column("kappa", "Fleiss' kappa", "number"),
        Column("alpha", "Krippendorff's alpha", "number"),
    ),
)  # fmt: skip
RATED = TableForm(
    "ratings", "How people rated", "Method and criterion",
    (
        Column("mean", "Mean", "plain", better="high"),
        Column("deviation", "Standard deviation", "plain", why="there is one rating only"),
        Column("judgements", "Ratings (n)", "count", "mean.counts.judgements"),
        Column("people", "People", "count", "mean.counts.people"),
        Column("stories", "Stories", "count", "mean.counts.stories"),
    ),
    "The mean of all ratings, in brackets its interval over people. The deviation divides by n - 1.",
)  # fmt: skip
MEANS = (
    Column("mean", "Mean preference", "plain"),
    Column("judgements", "Decided (n)", "count", "mean.counts.judgements"),
    Column("people", "People", "count", "mean.counts.people"),
)
DIMENSIONS = TableForm(
    "preference_dimensions", "What people preferred, by dimension", "Methods and dimension", MEANS,
    "The mean of all judgements by the criteria of a dimension.",
)  # fmt: skip
GROUPS = TableForm(
    "preference_groups", "What groups of people preferred", "Methods, criterion and group", MEANS,
    "People who name no group are in none of these rows.",
)  # fmt: skip
NO_DIFFERENCE = "every preference is 0, or nobody decided"
BONFERRONI = "bonferroni"
OLD = "this calibration was made before it was kept; run fabula calibrate again"
Preferred = Mapping[str, Any]
"""What people preferred between two methods by one criterion, or by one dimension."""


def rating_tables(document: Calibration, names: Mapping[str, str]) -> Iterator[ScoreTable]:
    """Yield how people rated each method: mean with its interval, standard deviation, and of how many.

    ``names``: criterion -> its name for readers; any other is shown as it is.
    """
    yield from RATED.of(
        (f"{method} · {names.get(criterion, label_text(criterion))}", rated)
        for method, about in document["methods"].items()
        for criterion, rated in about["ratings"].items()
    )


def preference_tables(document: Calibration) -> Iterator[ScoreTable]:
    """Yield what people preferred by criterion and dimension, the tests, and the means of groups."""
    preferred: Sequence[Preferred] = document["preferences"]
    yield from _means(preferred)
    yield from _tests(preferred)
    dimensions: Sequence[Preferred] = document.get("preference_dimensions", ())
    by_dimension = ((f"{pair_text(entry)} · {entry['dimension']}", entry) for entry in dimensions)
    yield from DIMENSIONS.of(by_dimension, lambda entry: ", ".join(entry["criteria"]))
    yield from _groups(preferred, dimensions)


def missing_preferences(document: Calibration) -> Iterator[str]:
    """Yield which preferences are not shown, and why."""
    preferred: Sequence[Preferred] = document["preferences"]
    if not preferred:
        yield "Preferences: nobody was asked to compare two methods."
        return
    if "preference_dimensions" not in document:
        yield f"Preferences by dimension: {OLD}."
    elif not any(entry["groups"] for entry in preferred):
        yield "Preferences by group of people: no line of a preference names a group."


def pairs_of(preferred: Sequence[Preferred]) -> dict[tuple[str, str], list[Preferred]]:
    """Return method and baseline -> what people preferred between them, in order."""
    pairs: dict[tuple[str, str], list[Preferred]] = {}
    for entry in preferred:
        pairs.setdefault((entry["method"], entry["baseline"]), []).append(entry)
    return pairs


def pair_text(entry: Preferred) -> str:
    """Return which methods were compared: the one that positive values favour comes first."""
    return f"{entry['method']} over {entry['baseline']}"


def criterion_text(entry: Preferred) -> str:
    """Return a criterion with what it is about, such as Q1 · causality."""
    criterion, dimension = entry["criterion"], entry.get("dimension")
    return criterion if dimension in (None, criterion) else f"{criterion} · {dimension}"


def step_text(step: int) -> str:
    """Return a step of the scale, such as +1."""
    return f"{step:+d}".replace("-", MINUS) if step else "0"


def bare(score: Mapping[str, Any]) -> Score:
    """Return a score as a calibration holds it without its counts, which stand in columns of their own."""
    return score_of({**score, "counts": {}})


def _means(preferred: Sequence[Preferred]) -> Iterator[ScoreTable]:
    steps = {f"value_{step:+d}": step_text(step) for step in STEPS}
    scale = "; ".join(f"{step_text(step)} {text}" for step, text in STEPS.items())
    table = TableForm(
        "preferences", "What people preferred", "Methods and criterion",
        (*MEANS, *(Column(name, label, "count") for name, label in steps.items()),
         Column("unclear", "Unclear", "count")),
        f"{scale}. In brackets the participant-level interval. Unclear is counted and left out.",
    )  # fmt: skip
    yield from table.of(
        (f"{pair_text(entry)} · {criterion_text(entry)}",
         {**entry, **dict(zip(steps, entry["values"], strict=True))})
        for entry in preferred
    )  # fmt: skip


def _tests(preferred: Sequence[Preferred]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{pair_text(entry)} · {criterion_text(entry)}",
            scores={**_test(entry, "test", ""), **_test(entry, "by_person", "_by_person")},
            note="exact" if entry["test"]["exact"] else "normal approximation, corrected for ties",
        )
        for entry in preferred
    ]
    measures = [
        Measure(name=f"{name}{suffix}", label=f"{label}{of}", unit=unit)
        for suffix, of in (("", ""), ("_by_person", ", by person"))
        for name, label, unit in (
            ("ranked", "Other than 0", "count"), ("p", "p", "p"), ("p_corrected", "p, corrected", "p"),
            ("rank_biserial", "Rank-biserial r", "plain"),
        )
    ]  # fmt: skip
    tests = ", ".join(
        f"{pair[0]} over {pair[1]} {entries[0]['tests']:,}" for pair, entries in pairs_of(preferred).items()
    )
    corrections = sorted({str(entry.get("correction", BONFERRONI)) for entry in preferred})
    note = (
        "One-sided Wilcoxon signed-rank test of a median above 0; corrected by "
        f"{', '.join(corrections).capitalize()} for the criteria of the pair ({tests}). Judgements of one "
        "person are not independent: by person, the same test is made on one mean per person."
    )
    heading = "Methods and criterion"
    yield from if_any("preference_tests", "Tests of preferences", heading, measures, rows, note)


def _test(entry: Preferred, test: str, suffix: str) -> dict[str, Score]:
    """Return a test of a criterion; where all preferences are 0, there is nothing to rank and no p-value."""
    ranked = entry[test]["count"]

    def known(value: float | None) -> Score:
        return plain_score(value if ranked else None, NO_DIFFERENCE)

    return {
        f"ranked{suffix}": whole(ranked),
        f"p{suffix}": known(entry[test]["p_value"]),
        f"p_corrected{suffix}": known(entry[f"p_corrected{suffix}"]),
        f"rank_biserial{suffix}": known(entry[f"rank_biserial{suffix}"]),
    }


def _groups(preferred: Sequence[Preferred], dimensions: Sequence[Preferred]) -> Iterator[ScoreTable]:
    """Yield the means of groups of people: by dimension, and by criterion where a dimension has several."""
    several = {
        (entry["method"], entry["baseline"], name)
        for entry in dimensions
        if len(entry["criteria"]) > 1
        for name in entry["criteria"]
    }
    single = [
        entry
        for entry in preferred
        if not dimensions or (entry["method"], entry["baseline"], entry["criterion"]) in several
    ]
    named = [
        *((entry["dimension"], entry) for entry in dimensions),
        *((criterion_text(entry), entry) for entry in single),
    ]
    yield from GROUPS.of(
        (f"{pair_text(entry)} · {name} · {group}", {"mean": mean})
        for name, entry in named
        for group, mean in entry["groups"].items()
    )
