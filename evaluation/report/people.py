"""What people said, in the report on an evaluation that they were asked about too."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, TargetError, UserError
from ...pages.figures import Scatter
from ...schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import counted
from ...schemas.values import Score
from ...tables.grid import label_text
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
SPEARMAN = Measure(name="spearman", label="Spearman", unit="number", better="high")


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
    try:
        write_atomic(path, [pretty_bytes({**document, OF: sha256_file(folder / JUDGEMENTS)})])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error.strerror or error}",
            fix="leave --save out, or calibrate a copy of the evaluation",
        ) from error  # fmt: skip
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
        raise InputError(
            [
                UserError(
                    str(path), what=f"this is not a calibration of this evaluation: {fault}",
                    fix="write it anew with fabula calibrate RUN --human FILE --save, or remove it",
                )
            ]
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
    rows = [
        ScoreRow(
            label=label_text(str(row["what"])),
            scores={
                name: score_of(row[name]) for name in ("pairs", "kappa", "alpha") if row.get(name) is not None
            },
        )
        for row in agreement
    ]
    measures = [
        Measure(name="pairs", label="Pairs that agree"),
        Measure(name="kappa", label="Fleiss' kappa", unit="number"),
        Measure(name="alpha", label="Krippendorff's alpha", unit="number"),
    ]
    yield from if_any("people_agreement", "Agreement between people", "Of", measures, rows)


def if_any(
    name: str, title: str, heading: str, measures: Sequence[Measure], rows: Sequence[ScoreRow], note: str = ""
) -> Iterator[ScoreTable]:
    """Yield a table if it has rows."""
    if rows:
        columns = tuple(measures)
        yield ScoreTable(
            name=name, title=title, heading=heading, note=note, measures=columns, rows=tuple(rows)
        )


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
