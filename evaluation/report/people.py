"""What people said, in the report on an evaluation that they were asked about too."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import pretty_bytes, sha256_file, write_atomic
from ...schemas.plain_files import read_json, reason_of
from ...schemas.text import counted
from ...schemas.values import Score
from ..archive.archive import JUDGEMENTS
from ..metrics.registry import label_of
from ..recoverability.recoverability import GAP
from .model import Measure, ScoreRow, ScoreTable
from .showing import label_text

CALIBRATION = "calibration.json"
"""What a calibration is called that lies beside an archive."""
OF = "judgements_sha256"
"""Where it says which archive it is about."""
LARGEST = 50_000_000
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


def people_of(folder: Path, kind: str) -> People:
    """Return what the calibration beside an archive says; nothing where there is none.

    Args:
        folder: the evaluation folder.
        kind: of the evaluation.

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
        tables = tuple(OF_KIND[kind](document))
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


def _katha(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=method,
            scores={
                **{
                    name: _score(scores_of["overall"]) for name, scores_of in scores["recoverability"].items()
                },
                "gap": _score(scores["stg"]["overall"]),
            },
            note=f"{scores['questions_valid']:,} of {counted(scores['questions_asked'], 'question')} valid",
        )
        for method, scores in document["methods"].items()
    ]
    conditions = list(dict.fromkeys(name for row in rows for name in row.scores if name != "gap"))
    measures = [
        *(Measure(name=name, label=label_text(name), better="high") for name in conditions),
        Measure.of(GAP),
    ]
    yield from _if_any("people", "What people recover", "Method", measures, rows)
    compared = [
        ScoreRow(
            label=f"{judge} · {label_text(condition)}",
            scores={name: _score(answers["values"][name]) for name in AGAINST if name in answers["values"]},
        )
        for judge, judged in document["judges"].items()
        for condition, answers in judged["answers"].items()
    ]
    against = [Measure(name=name, label=label, unit=unit) for name, (label, unit) in AGAINST.items()]
    yield from _if_any("judges_people", "Judges against people", "Judge and evidence", against, compared)
    yield from _between(document["agreement"])


AGAINST = {
    "agreement": ("Agreement", "percent"),
    "pairwise_agreement": ("Pairs ranked alike", "percent"),
    "spearman": ("Spearman", "number"),
    "mean_absolute_difference": ("Mean absolute difference", "number"),
    "calibration_error": ("Calibration error", "number"),
}
"""What a judge's answers are compared by -> its label and unit."""


def _events(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=f"{judge} · {label_text(name)}",
            scores={
                "spearman": _plain(label["spearman"]["value"], label["spearman"].get("reason")),
                "kendall": _plain(label["kendall"]["value"], label["kendall"].get("reason")),
                "difference": _plain(label["difference"], "no video was judged by both"),
            },
            note=counted(len(label["models"]), "method"),
        )
        for judge, judged in document["judges"].items()
        for name, label in judged["classes"].items()
    ]
    measures = [
        SPEARMAN,
        Measure(name="kendall", label="Kendall", unit="number", better="high"),
        Measure(name="difference", label="Mean difference", unit="number", better="low"),
    ]
    yield from _if_any("judges_people", "Judges against people, by class", "Judge and class", measures, rows)
    yield from _between(document["agreement"])


def _images(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=method, scores={name: _score(rating["mean"]) for name, rating in ratings["ratings"].items()}
        )
        for method, ratings in document["methods"].items()
    ]
    criteria = list(dict.fromkeys(name for row in rows for name in row.scores))
    measures = [Measure(name=name, label=label_text(name), unit="plain", better="high") for name in criteria]
    yield from _if_any("people", "Mean ratings of people, 0 to 4", "Method", measures, rows)
    compared = [
        ScoreRow(
            label=f"{label_text(criterion)} · {label_of(name)} · over {over}",
            scores={kind: _correlation(correlation) for kind, correlation in correlations[over].items()},
        )
        for criterion, parts in document["scores"].items()
        for part in parts.values()
        for name, correlations in part.items()
        for over in ("stories", "shots", "methods")
        if over in correlations
    ]
    kinds = ("pearson", "spearman", "kendall")
    against = [Measure(name=name, label=label_text(name), unit="number", better="high") for name in kinds]
    heading = "Criterion, score and what is compared"
    yield from _if_any("scores_people", "Scores against people", heading, against, compared)
    yield from _between(document["agreement"])


def _correlation(correlation: Mapping[str, Any]) -> Score:
    if correlation["value"] is None:
        return _plain(None, correlation["reason"])
    low, high = correlation["low"], correlation["high"]
    return Score(
        value=correlation["value"], status="ok", low=low, high=high, counts={"pairs": correlation["pairs"]}
    )


OF_KIND = {"katha": _katha, "events": _events, "images": _images}
"""Kind of an evaluation -> what makes the tables of its calibration."""


def _between(agreement: Sequence[Mapping[str, Any]]) -> Iterator[ScoreTable]:
    rows = [
        ScoreRow(
            label=label_text(str(row["what"])),
            scores={
                name: _score(row[name]) for name in ("pairs", "kappa", "alpha") if row.get(name) is not None
            },
        )
        for row in agreement
    ]
    measures = [
        Measure(name="pairs", label="Pairs that agree"),
        Measure(name="kappa", label="Fleiss' kappa", unit="number"),
        Measure(name="alpha", label="Krippendorff's alpha", unit="number"),
    ]
    yield from _if_any("people_agreement", "Agreement between people", "Of", measures, rows)


def _if_any(
    name: str, title: str, heading: str, measures: Sequence[Measure], rows: Sequence[ScoreRow]
) -> Iterator[ScoreTable]:
    if rows:
        yield ScoreTable(name=name, title=title, heading=heading, measures=tuple(measures), rows=tuple(rows))


def _score(score: Mapping[str, Any]) -> Score:
    return Score.model_validate(dict(score))


def _plain(value: float | None, reason: str | None) -> Score:
    if value is None:
        return Score(value=None, status="undefined", reason=reason or "undefined")
    return Score(value=value, status="ok")
