"""What people said, in the report on an evaluation that they were asked about too."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ...schemas.plain_files import read_json, reason_of
from ...schemas.values import Score
from ..archive.archive import JUDGEMENTS
from .model import Measure, ScoreRow, ScoreTable
from .showing import label_text

CALIBRATION = "calibration.json"
"""What a calibration is called that lies beside an archive."""
OF = "judgements_sha256"
"""Where it says which archive it is about."""
LARGEST = 50_000_000
Tables = Callable[[Mapping[str, Any]], Iterator[ScoreTable]]
SPEARMAN = Measure(name="spearman", label="Spearman", unit="number", better="high")


@dataclass(frozen=True)
class People:
    """The part of a report that people's answers fill.

    Attributes:
        tables: what they said, and how judges compare.
        note: who was asked.
        warnings: what readers must know.
    """

    tables: tuple[ScoreTable, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()


def write_calibration(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write a calibration beside the archive that it is about, for reports; return its file.

    Raises:
        TargetError: it cannot be written.
    """
    path = folder / CALIBRATION
    try:
        write_atomic(path, [pretty_bytes({**document, OF: sha256_file(folder / JUDGEMENTS)})])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error.strerror or error}",
            fix="leave --save out, or calibrate a copy of the evaluation",
        ) from error  # fmt: skip
    return path


def people_of(folder: Path, kind: str, tables_of: Tables) -> People:
    """Return what the calibration beside an archive says; nothing where there is none.

    Args:
        folder: the evaluation folder.
        kind: of the evaluation.
        tables_of: makes the tables of its calibrations.

    Raises:
        InputError: the file is not what ``fabula calibrate`` writes, or of another kind of evaluation.
    """
    path = folder / CALIBRATION
    if not path.is_file():
        return People()
    try:
        document = read_json(path, LARGEST, follow=True)
        if document["kind"] != kind:
            raise ValueError(f"a calibration of kind {document['kind']}, and an evaluation of kind {kind}")
        tables = tuple(tables_of(document))
        note, about = _note(document["people"]), document.get(OF)
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
    stale = about is not None and about != sha256_file(folder / JUDGEMENTS)
    warning = (
        "The judgements have changed since the comparison with people was made: run fabula calibrate again."
    )
    return People(tables, note, (warning,) if stale else ())


def _note(people: Mapping[str, Any]) -> str:
    lines = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in people["lines"].items())
    left = len(people["excluded_raters"])
    asked = "1 person" if people["raters"] == 1 else f"{people['raters']:,} people"
    out = f"; {'1 person' if left == 1 else f'{left:,} people'} left out" if left else ""
    return f"{asked}: {lines}{out}."


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
    name: str, title: str, heading: str, measures: Sequence[Measure], rows: Sequence[ScoreRow]
) -> Iterator[ScoreTable]:
    """Yield a table if it has rows."""
    if rows:
        yield ScoreTable(name=name, title=title, heading=heading, measures=tuple(measures), rows=tuple(rows))


def score_of(score: Mapping[str, Any]) -> Score:
    """Return a score as a calibration holds it."""
    return Score.model_validate(dict(score))


def plain_score(value: float | None, reason: str | None) -> Score:
    """Return a score of a value alone, or of the reason why there is none."""
    if value is None:
        return Score(value=None, status="undefined", reason=reason or "undefined")
    return Score(value=value, status="ok")
