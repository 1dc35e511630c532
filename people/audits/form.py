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
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...errors import InputError, TargetError, UserError
from ...evaluation.stats.correlation import cohen_kappa
from ...evaluation.stats.uncertainty import Uncertainty
from ...schemas.canonical import Json, csv_text, digest, without_guard, write_atomic
from ...schemas.plain_files import CsvTable, read_plain
from ...schemas.values import Score
from ...validators.resampling import divided, resampled_sums
from ..review.items import Drawn, Part
from ..review.sources.source import Drawing, Material, Source, known_only
from .compare import asked
from .records import Annotated, read_records

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [csv_text(COLUMNS, rows).encode("utf-8")])
    except OSError as error:
        what = f"the form cannot be written: {error.strerror or error}"
        raise TargetError(str(path), what=what, fix="choose another place") from error
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
    """Return what a filled form says of drafts."""
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
    try:
        text = read_plain(path, LARGEST, follow=True).decode("utf-8-sig")
        table = CsvTable(text)
        rows = list(table.named())
    except (OSError, ValueError) as error:
        what = f"the form cannot be read: {error}"
        raise InputError.one(str(path), what=what, fix="save it as CSV in UTF-8") from error
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
