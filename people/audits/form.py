"""A form on which people judge parts of drafts by one rubric, and how it is read back.

One line is one part: a question, a variant, a stated cause or a scene boundary. A reader writes ``yes`` or
``no`` into the column ``sound``, and with ``no`` one of the reasons that the rubric has for such a part. A
line that is left empty is not judged. The line names what was read by its hash, so that a form cannot be read
beside another draft.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, TargetError, UserError
from ...evaluation.stats.tables import cohen_kappa
from ...evaluation.stats.uncertainty import Uncertainty
from ...pages.grid import Tabular
from ...schemas.canonical import Json, csv_text, digest, plain_parts, without_guard, write_atomic, writing
from ...schemas.plain_files import CsvTable, explaining, read_plain
from ...schemas.values import Score, states_told
from ...validators.resampling import divided, resampled_sums
from ..review.items import Drawn, Part
from ..review.sources.source import Drawing, Material, Source, known_only
from .compare import MEASURES, Annotated, Case, asked, read_records

if TYPE_CHECKING:
    import pyarrow as pa

    from ...evaluation.report.model import CountTable, ScoreTable
    from ...pages.grid import Grid

RUBRIC: Mapping[str, Mapping[str, str]] = {
    "question": {
        "not_answerable": "the text does not say it or says it in two ways, or it fits several things",
        "guessable": "title, characters or the other scenes give the answer away",
        "not_drawable": "a picture cannot show it: a name, a number, what is said, a feeling without a sign",
        "fragment": "the question or an accepted answer is no whole phrase, or no good language",
        "wrong": "an accepted answer is wrong, or not the same as the canonical one",
    },
    "variant": {
        "no_change": "what the story means is not changed",
        "changes_more": "more than one meaning is changed, or somebody is lost or comes in",
        "misdescribed": "the kind of change or its description does not fit",
        "not_fluent": "the text does not read as a story, or contradicts itself",
    },
    "cause": {
        "wrong": "this is not why the later scene comes about",
        "order_only": "it only says what comes before",
        "fragment": "it is no whole phrase, or no good language",
        "not_in_story": "the story does not say it and it does not follow",
    },
    "boundary": {
        "splits_event": "one event is divided between both scenes",
        "too_early": "what comes next still belongs to the earlier scene",
        "too_late": "the end of the earlier scene belongs to the later one",
    },
}
"""What is judged -> reason for ``no`` -> what it means."""
COLUMNS = ("unit", "kind", "story", "text", "judged", "sound", "reason", "reasons", "note")
SOUND = {"yes": True, "no": False}
LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Unit:
    """One part that can be judged: its key, what it is, its story, and how it is shown."""

    key: str
    kind: str
    story_id: str
    shown: str
    group: str


def units_of(drafts: Mapping[str, Annotated]) -> list[Unit]:
    """Return every part of drafts that the rubric is about, by story."""
    return [unit for story_id in sorted(drafts) for unit in _units(story_id, drafts[story_id])]


def _units(story_id: str, draft: Annotated) -> Iterator[Unit]:
    def unit(kind: str, path: str, shown: str, group: str) -> Unit:
        mark = digest([shown, draft.record["story_text"]])[:8]
        return Unit(f"{story_id}{path}#{mark}", kind, story_id, shown, group)

    record = draft.record
    for position, question in enumerate(record["questions"]):
        yield unit("question", f"$.questions[{position}]", asked(question), question["question_type"])
    for position, variant in enumerate(draft.variants):
        shown = (
            f"scene {variant['changed_scene_id']} becomes: {variant['contrastive_scene_text']}\n"
            f"{variant['change_type']}: {variant['semantic_delta']}"
        )
        yield unit("variant", f"$.variants[{position}]", shown, variant["change_type"])
    for position, transition in enumerate(record["transitions"]):
        if transition["causality"] is not None:
            between = f"scene {transition['from_scene']} to {transition['to_scene']}"
            shown = f"why {between}: {transition['causality']}"
            yield unit("cause", f"$.transitions[{position}]", shown, str(transition["transition_type"]))
    texts = draft.texts
    for position, (before, after) in enumerate(pairwise(texts)):
        shown = (
            f"scene {position + 1} ends: ...{before[-160:]}\nscene {position + 2} begins: {after[:160]}..."
        )
        yield unit("boundary", f"$.scenes[{position}]", shown, "")


def drawn_units(drafts: Mapping[str, Annotated], count: int, seed: int) -> list[Unit]:
    """Return some parts of each kind, drawn at random, by story and kind."""
    draw, units = random.Random(seed), units_of(drafts)
    chosen: list[Unit] = []
    for kind in RUBRIC:
        there = [unit for unit in units if unit.kind == kind]
        chosen += draw.sample(there, min(count, len(there)))
    order = {unit.key: position for position, unit in enumerate(units)}
    return sorted(chosen, key=lambda unit: (unit.story_id, list(RUBRIC).index(unit.kind), order[unit.key]))


def write_form(path: Path, drafts: Mapping[str, Annotated], count: int, seed: int = 42) -> int:
    """Write a form with some parts of each kind, drawn at random; return how many lines it has.

    ``path``: a CSV file, which must not be there.
    """
    if path.exists():
        fix = "move it away: it may hold what somebody wrote"
        raise TargetError(str(path), what="the form is there already", fix=fix)
    rows = [_row(unit, drafts[unit.story_id]) for unit in drawn_units(drafts, count, seed)]
    with writing(path, "choose another place", what="the form"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [csv_text(COLUMNS, rows).encode("utf-8")])
    return len(rows)


def _row(unit: Unit, draft: Annotated) -> tuple[str, ...]:
    text = "\n".join(f"[{number}] {scene}" for number, scene in enumerate(draft.texts, 1))
    title = f"{draft.record['title']} ({unit.story_id})"
    return (unit.key, unit.kind, title, text, unit.shown, "", "", " | ".join(RUBRIC[unit.kind]), "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reader said."""

    name: str  # the form
    verdicts: Mapping[str, tuple[bool, str]]  # key of a part -> whether it is sound, and the reason why not


def read_form(path: Path, drafts: Mapping[str, Annotated]) -> Reading:
    units = {unit.key: unit for unit in units_of(drafts)}
    verdicts: dict[str, tuple[bool, str]] = {}
    problems: list[UserError] = []
    for number, row in _rows(path):
        where = f"{path}:{number}"
        key, sound, reason = (without_guard(row[name] or "").strip() for name in ("unit", "sound", "reason"))
        unit = units.get(key)
        wrong = _wrong(unit, key in verdicts, sound.lower(), reason)
        if wrong is not None:
            expected, found = wrong
            fix = "correct the line, or take the draft that the form was written for"
            problems.append(UserError(where, expected=expected, found=repr(found)[:80], fix=fix))
        elif sound:
            verdicts[key] = (SOUND[sound.lower()], reason)
    if problems:
        raise InputError(problems)
    return Reading(path.name, verdicts)


def _wrong(unit: Unit | None, twice: bool, sound: str, reason: str) -> tuple[str, str] | None:
    """Return what was expected of a line and what it says, or None where it is as it may be."""
    if unit is None:
        return "a part of this draft, as it was when the form was written", "another unit"
    reasons = RUBRIC[unit.kind]
    if twice:
        return "one line for each part", unit.key
    if sound not in ("", *SOUND):
        return "yes, no or nothing in the column sound", sound
    if sound == "no" and reason not in reasons:
        return f"one of {', '.join(reasons)} in the column reason", reason
    if sound != "no" and reason:
        return "a reason only where sound is no", reason
    return None


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    with explaining(path, "save it as CSV in UTF-8", what="the form cannot be read"):
        text = read_plain(path, LARGEST, follow=True).decode("utf-8-sig")
        table = CsvTable(text)
        rows = list(table.named())
    missing = [name for name in ("unit", "sound", "reason") if name not in table.columns]
    if missing:
        what = f"columns are missing: {', '.join(missing)}"
        fix = "keep the columns of the form that fabula audit --sample wrote"
        raise InputError.one(str(path), what=what, fix=fix)
    return rows


def judged(readings: Sequence[Reading], drafts: Mapping[str, Annotated], uncertainty: Uncertainty) -> Json:
    """Return what readers said: by reader and kind of part, and how they agree.

    Shares have intervals over resampled stories. Two readers agree on the parts that both judged.
    """
    units = {unit.key: unit for unit in units_of(drafts)}
    readers = {
        reading.name: {
            kind: _kind(reading, [unit for unit in units.values() if unit.kind == kind], uncertainty)
            for kind in RUBRIC
        }
        for reading in readings
    }
    return {"readers": readers, "agreement": _agreement(readings, units)}


def _kind(reading: Reading, units: Sequence[Unit], uncertainty: Uncertainty) -> Json:
    said = [(unit, *reading.verdicts[unit.key]) for unit in units if unit.key in reading.verdicts]
    stories: dict[str, list[float]] = {}
    groups: dict[str, Counter[str]] = {}
    for unit, sound, _ in said:
        row = stories.setdefault(unit.story_id, [0.0, 0.0])
        row[0] += sound
        row[1] += 1
        if unit.group:
            groups.setdefault(unit.group, Counter()).update(sound=int(sound), judged=1)
    return {
        "sound": sound_share(list(stories.values()), uncertainty).as_json(),
        "reasons": dict(Counter(reason for _, sound, reason in said if not sound).most_common()),
        "groups": {name: dict(row) for name, row in sorted(groups.items())},
    }


def sound_share(rows: Sequence[Sequence[float]], uncertainty: Uncertainty) -> Score:
    """Return a share with its interval over resampled stories."""
    if not rows:
        return Score(value=None, status="undefined", reason="nothing was judged")
    columns = np.asarray(rows, dtype=np.float64)
    total = columns.sum(axis=0)
    drawn = resampled_sums(columns, uncertainty.resamples if len(rows) > 1 else 0, uncertainty.seed)
    value = divided(total[0], total[1])
    low, high = uncertainty.ends(value, divided(drawn[:, 0], drawn[:, 1]), len(rows), (0.0, 1.0))
    ends = [None if np.isnan(end) else float(end) for end in (low, high)]
    return Score(
        value=float(value), status="ok", low=ends[0], high=ends[1], numerator=float(total[0]),
        denominator=float(total[1]),
    )  # fmt: skip


def _agreement(readings: Sequence[Reading], units: Mapping[str, Unit]) -> list[Json]:
    rows = []
    for position, first in enumerate(readings):
        for second in readings[position + 1 :]:
            for kind in RUBRIC:
                both = [
                    (first.verdicts[key][0], second.verdicts[key][0])
                    for key, unit in units.items()
                    if unit.kind == kind and key in first.verdicts and key in second.verdicts
                ]
                if both:
                    table = np.zeros((2, 2), dtype=np.float64)
                    np.add.at(table, tuple(np.asarray(both, dtype=np.int64).T), 1)
                    kappa = cohen_kappa(table)
                    rows.append(
                        {
                            "first": first.name, "second": second.name, "kind": kind, "judged": len(both),
                            "agreed": int(np.trace(table)), "both_sound": int(table[1, 1]),
                            "kappa": None if np.isnan(kappa) else float(kappa),
                        }
                    )  # fmt: skip
    return rows


# -- Parts of drafts as people see them: a question, a variant, a cause or a scene boundary, with its story

COUNT = 50
"""Usual number of parts of each kind."""


def draw_parts(material: Material) -> Drawing:
    """Draw so many parts of each kind from the drafts of a run, a release or a file."""
    options = material.options
    drafts = read_records(material.path)
    known_only("stories", options.stories, drafts, "story")
    chosen = [story_id for story_id in drafts if not options.stories or story_id in options.stories]
    kept = {story_id: drafts[story_id] for story_id in sorted(chosen)[: options.limit]}
    count = COUNT if options.count is None else options.count
    units = drawn_units(kept, count, options.seed)
    source = {
        "kind": material.what, "path": material.path.resolve().name,
        "records_sha256": digest([draft.record for draft in kept.values()]),
    }  # fmt: skip
    return Drawing(tuple(_item(unit, kept) for unit in units), source, _short(units, count))


def _short(units: list[Unit], count: int) -> tuple[str, ...]:
    there = {kind: sum(unit.kind == kind for unit in units) for kind in RUBRIC}
    return tuple(f"{kind}: {number} of {count} wanted" for kind, number in there.items() if number < count)


def _item(unit: Unit, drafts: Mapping[str, Annotated]) -> Drawn:
    """Return a part as an item; the list that bears its kind decides which reasons are asked."""
    draft = drafts[unit.story_id]
    texts = {
        "title": draft.record["title"], "scenes": draft.texts, "kind": unit.kind, "shown": unit.shown,
    }  # fmt: skip
    return Drawn(
        unit.key, unit.story_id, texts, parts={unit.kind: (Part(id=unit.kind, text=""),)}, stratum=unit.kind,
        digest=digest([unit.shown, draft.record["story_text"]]),
    )  # fmt: skip


SOURCE = Source(
    "parts of drafts", {"run": ("katha",), "release": ("katha",), "file": ()},
    "a run of fabula build stories, a release of stories, or a file of records",
    ("stories", "limit", "count"), draw_parts,
)  # fmt: skip


# -- What an audit gave: as JSON, as lines, and as one page that loads nothing, the worst cases side by side

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
    states: Mapping[str, int]  # state of a record -> how many are in it
    # language -> how many records and questions, and how diverse these are; with gold records in several
    # languages also the measures
    languages: Mapping[str, Json]
    edits: Json = None  # what became of drafts afterwards (Table 17), where a run keeps it
    people: Json = None  # what people said on forms, if there are any
    notes: Sequence[str] = ()  # what a reader must know
    name: str = ""  # what was audited: name and version of a release, or the name of its folder

    def as_json(self) -> dict[str, Any]:
        names = ("facts", "scores", "states", "languages", "edits", "people", "notes", "cases")
        return plain_parts(self, *names)

    def lines(self) -> list[str]:
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
        lines.append(f"records: {states_told(self.states)}")
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
    from ...evaluation.report.formats import with_parts

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
        "states": _count_table(
            "States of the records", "State", {"records": "Records"},
            {state: {"records": count} for state, count in audit.states.items()},
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
