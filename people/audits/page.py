"""What an audit gave: as JSON, as lines, and as one page that loads nothing, the worst cases side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...pages.grid import Tabular
from ...schemas.canonical import Json
from ...schemas.values import Score
from .compare import MEASURES, Case

if TYPE_CHECKING:
    import pyarrow as pa

    from ...evaluation.report.model import CountTable, ScoreTable
    from ...pages.grid import Grid

SHOWN = 12
"""So many cases of a group are shown; JSON has them all."""
GROUPS = {
    "boundaries": "Scenes that end elsewhere",
    "acts": "Characters, acts and things of gold that the draft does not have",
    "causes": "Causes that differ",
    "questions": "Questions of gold whose answers the draft does not accept",
    "blind": "Questions of the draft that the model did not answer as accepted",
    "variants": "Variants with a failed check: the scene before, and the variant",
    "labels": "Labels that differ",
}


@dataclass(frozen=True, slots=True)
class Audit(Tabular):
    """What an audit of drafts gave."""

    facts: Mapping[str, str]  # what was compared with what, and how
    scores: Mapping[str, Score]  # measure -> its value over all stories; empty without gold records
    cases: Sequence[Case]  # what to look at, the worst of each group first
    statuses: Mapping[str, int]  # status of a draft -> how many
    # language -> how many records and questions, and how diverse these are; with gold records in several
    # languages also the measures
    languages: Mapping[str, Json]
    edits: Json = None  # what became of drafts afterwards (Table 17), where a run keeps it
    people: Json = None  # what people said on forms, if there are any
    notes: Sequence[str] = ()  # what a reader must know
    name: str = ""  # what was audited: name and version of a release, or the name of its folder

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        return {
            "facts": dict(self.facts),
            "scores": {name: score.as_json() for name, score in self.scores.items()},
            "statuses": dict(self.statuses),
            "languages": dict(self.languages),
            "edits": self.edits,
            "people": self.people,
            "notes": list(self.notes),
            "cases": [asdict(case) for case in self.cases],
        }

    def lines(self) -> list[str]:
        """Return the result as lines for people."""
        lines = [f"{name}: {value}" for name, value in self.facts.items()]
        lines += [f"note: {note}" for note in self.notes]
        part = ""
        for name, score in self.scores.items():
            measure = MEASURES[name]
            if measure.part != part:
                part = measure.part
                lines.append(f"{part}:")
            lines.append(f"  {measure.label:<28} {score_text(score):<28} {measure.meaning}")
        for language, row in self.languages.items():
            lines.append(
                f"questions in {language}: {row['questions']} in {row['records']} records; "
                f"{row['distinct']} different ones, beginning in {row['openings']} ways"
            )
            lines += [
                f"  {MEASURES[name].label} {score_text(Score.model_validate(score))}"
                for name, score in row["scores"].items()
            ]
        lines.append("status: " + ", ".join(f"{count} {name}" for name, count in self.statuses.items()))
        for reader, kinds in (self.people or {}).get("readers", {}).items():
            lines.append(f"read by {reader}:")
            for kind, row in kinds.items():
                reasons = ", ".join(f"{count} {name}" for name, count in row["reasons"].items())
                shown = score_text(Score.model_validate(row["sound"]))
                lines.append(f"  {kind:<28} {shown:<28} {reasons}")
        return lines

    def grids(self) -> "Iterator[Grid]":
        """Yield its tables as people read them; :meth:`to_arrow` has their numbers."""
        from ...evaluation.report.formats import grid_of

        return map(grid_of, self.tables())

    def to_arrow(self, name: str | None = None) -> "pa.Table":
        """Return the measures as an Arrow table, a number a row with its interval and counts."""
        from ...evaluation.report.formats import long_table

        return long_table(self.tables(), name)

    def tables(self) -> "Iterator[ScoreTable]":
        """Yield the measures as tables, a part of a record each, and what people said."""
        for part, names in groupby(self.scores, key=lambda name: MEASURES[name].part):
            rows = [(label_of(name), self.scores[name], MEASURES[name].meaning) for name in names]
            yield _table(part, f"Drafts beside gold: {part}", "Measure", rows)
        for reader, said in groupby(readings(self), key=lambda row: row[0]):
            read = [(kind, score, reasons) for _, kind, score, reasons in said]
            yield _table("people", f"Sound, as read by {reader}", "Kind", read)


def label_of(measure: str) -> str:
    """Return what a measure is called, with the end that is good where it is the low one."""
    return MEASURES[measure].label + ("" if MEASURES[measure].higher else ", lower is better")


def _table(name: str, title: str, heading: str, rows: "Sequence[tuple[str, Score, str]]") -> "ScoreTable":
    from ...evaluation.report.model import Measure, ScoreRow, ScoreTable

    return ScoreTable(
        name=name, title=title, heading=heading, note="In brackets 95 % intervals.",
        measures=(Measure(name="value", label="Value"),),
        rows=tuple(
            ScoreRow(label=label, scores={"value": score}, note=note) for label, score, note in rows
        ),
    )  # fmt: skip


def score_text(score: Score) -> str:
    """Return a share as text: per cent, interval, counts."""
    if score.value is None:
        return "-"
    ends = "" if score.low is None else f" [{100 * score.low:.0f}, {100 * float(score.high or 0):.0f}]"
    counted = "" if score.numerator is None else f" {score.numerator:.0f} of {score.denominator:.0f}"
    return f"{100 * score.value:.1f} %{ends}{counted}"


def page_of(audit: Audit) -> str:
    """Return the page."""
    from ...evaluation.report.page import with_parts

    groups = {name: list(cases) for name, cases in groupby(audit.cases, key=lambda case: case.group)}
    shown = [(name, title, *_shown(groups[name])) for name, title in GROUPS.items() if name in groups]
    tables = list(audit.tables())
    counts: dict[str, Any] = _counts(audit)
    return with_parts(
        (files(__package__) / "page.j2").read_text("utf-8"),
        title=f"Audit of drafts{f': {audit.name}' if audit.name else ''}",
        audit=audit,
        measures=[table for table in tables if table.name != "people"],
        readers=[
            table.model_copy(update={"name": f"people-{number}"})
            for number, table in enumerate(tables) if table.name == "people"
        ],
        groups=shown,
        parts={
            **({"measures": "Compared with gold records"} if audit.scores else {}), "drafts": "Drafts",
            **({"edits": "What became of them"} if audit.edits else {}),
            **({"people": "Read by people"} if audit.people else {}),
            **{name: title for name, title, _, _ in shown},
        },
        **counts,
    )  # fmt: skip


def _counts(audit: Audit) -> "dict[str, CountTable | None]":
    """Return the tables of counts: drafts, languages, edits by stage, agreement of forms."""
    stages = (audit.edits or {}).get("stages")
    agreed = (audit.people or {}).get("agreement")
    return {
        "statuses": _count_table(
            "Status of the drafts", "Status", {"drafts": "Drafts"},
            {status: {"drafts": count} for status, count in audit.statuses.items()},
        ),
        "languages": _count_table(
            "Questions by language", "Language",
            {"records": "Records", "questions": "Questions", "distinct": "Different", "openings": "Openings"},
            audit.languages,
            "Openings: the first three words of a question. Many questions with few openings are alike.",
        ),
        "edits": _count_table(
            "Edits by stage", "Drafted by",
            {"compared": "Values", "changed": "Changed", "repaired": "By the repair", "edited": "By edits",
             "share_changed": "Share changed"},
            stages,
        ) if stages else None,
        "agreement": _count_table(
            "Agreement", "Forms and part", {"judged": "Both judged", "agreed": "Agreed", "kappa": "Kappa"},
            {f"{row['first']}, {row['second']} · {row['kind']}": row for row in agreed},
        ) if agreed else None,
    }  # fmt: skip


def _count_table(
    title: str, heading: str, columns: dict[str, str], rows: "Mapping[str, Any]", note: str = ""
) -> "CountTable":
    from ...evaluation.report.model import CountRow, CountTable

    return CountTable(
        name=title.lower().replace(" ", "_"), title=title, heading=heading, note=note, columns=columns,
        rows=tuple(
            CountRow(label=label, values={name: row[name] for name in columns}) for label, row in rows.items()
        ),
    )  # fmt: skip


def _shown(cases: "Sequence[Case]") -> "tuple[Sequence[Case], int]":
    return cases[:SHOWN], max(0, len(cases) - SHOWN)


def readings(audit: Audit) -> list[tuple[str, str, Score, str]]:
    """Return a row for each reader and kind of part: share, and reasons why not."""
    return [
        (
            reader, kind, Score.model_validate(row["sound"]),
            ", ".join(f"{count} {name}" for name, count in row["reasons"].items()),
        )
        for reader, kinds in (audit.people or {}).get("readers", {}).items()
        for kind, row in kinds.items()
    ]  # fmt: skip
