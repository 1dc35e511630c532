"""A row as people look at it: the record in it first, what is said about it after."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from pydantic import ValidationError

from ..schemas.entities import EntityEpisode
from ..schemas.katha import Question, Scene, StoryRecord, Transition, Variant
from ..schemas.paths import parse_quoted, quoted_path, value_at, with_value
from ..schemas.states import state_of
from ..schemas.values import Edit

KEYS = ("story_id", "episode_id", "story_name", "id", "prompt_id", "unit", "variant_id")
"""Fields that name a row, the first that it has."""
INNER = ("record", "entry", "script", "prompt")
"""Where the payload of a run's row has the record itself."""
FIRST = (
    "title", "story_text", "text", "prompt", "story_overview", "scenes", "transitions", "questions", "events",
    "shots", "entity_schedule", "entity_descriptions",
)  # fmt: skip
LAST = ("evidence_status", "provenance", "source_text", "checks", "schema_version")
READ = tuple(tuple(type_.model_fields) for type_ in (StoryRecord, Scene, Transition, Question, Variant))
"""The fields of each part of a record, in the order in which its type has them."""
TARGETS = ("target_scene", "target_transition")
"""A question is about a scene or a transition: of these fields one applies."""
GIST = (
    "scene_text", "question", "expected_change", "contrastive_scene_text", "text", "prompt", "description",
)  # fmt: skip
"""Fields that say what a part is about, the first that it has; else its longest text does."""
LONGEST_GIST = 220
Row = Mapping[str, Any]
_INDEX = re.compile(r"\[\d+\]")
_PART = re.compile(r"\[(?:\d+|\*)\]")


@dataclass(frozen=True, slots=True)
class Laid:
    """A row, taken apart."""

    record: Row  # what the row is for, its fields in the order of interest
    made: Mapping[str, str]  # JSON path in the record -> who made what stands there
    about: Row  # what else the row says, such as variants and checks
    waiting: frozenset[str] = frozenset()  # paths whose corrections the run has not applied yet


def name_of(row: Row, number: int) -> str:
    """Return what names a row: its id, else its number, from 1."""
    return next((str(row[key]) for key in KEYS if isinstance(row.get(key), str | int)), f"row {number + 1}")


def item_in(row: Row, number: int) -> str:
    """Return the item of a run that a row is, as `fabula edit` takes it."""
    item = row.get("id")
    return item if isinstance(item, str) else name_of(row, number)


def record_of(row: Row) -> Row:
    """Return the record in a row of a run; any other row as it is."""
    payload = row.get("payload")
    if not isinstance(payload, Mapping):
        return row
    return next((payload[name] for name in INNER if isinstance(payload.get(name), Mapping)), payload)


def stated(row: Row) -> Row:
    """Return the record in a row, one of stories with its state: draft, checked or reviewed."""
    record, payload = record_of(row), row.get("payload")
    status = record.get("validation_status")
    if not isinstance(status, str):
        return record
    checks = payload.get("checks") if isinstance(payload, Mapping) else None
    made = [check for check in checks if isinstance(check, Mapping)] if isinstance(checks, list) else []
    return {**record, "state": state_of(status, [{"passed": check.get("passed")} for check in made])}


def laid_out(row: Row) -> Laid:
    """Take a row apart."""
    record, payload = record_of(row), row.get("payload")
    about = payload if isinstance(payload, Mapping) and payload is not record else {}
    beside = {name: value for name, value in about.items() if value is not record and name != "producers"}
    order = sorted(record, key=_rank)
    read = {name: in_reading_order(record[name], record.get("story_id")) for name in order}
    return Laid(read, producers_in(about.get("producers")), in_reading_order(beside))


def corrected(laid: Laid, edits: Iterable[Edit]) -> Laid:
    """Return a row with the corrections that its run has not applied yet."""
    record, about, waiting = dict(laid.record), dict(laid.about), set()
    for edit in edits:
        with suppress(ValueError, LookupError):
            steps = parse_quoted(edit.path)
            whole = about if steps and steps[0] in about else record
            if value_at(whole, steps) != edit.new:
                waiting.add(edit.path)
                whole |= with_value(whole, steps, edit.new)
    return replace(laid, record=record, about=about, waiting=frozenset(waiting))


def episode_of(record: Row) -> EntityEpisode | None:
    """Return the episode of entities that a record is or holds; None where it is none, or a faulty one."""
    entry = next((record[name] for name in INNER if isinstance(record.get(name), Mapping)), record)
    if "entity_schedule" not in entry:
        return None
    try:
        return EntityEpisode.model_validate(entry)
    except ValidationError:
        return None


def _rank(name: str) -> int:
    if name in FIRST:
        return FIRST.index(name)
    return 200 + LAST.index(name) if name in LAST else 100


def in_reading_order(value: Any, story: object = None) -> Any:  # noqa: ANN401 - any JSON value
    """Return a part of a record with its fields as its type orders them, without what does not apply."""
    if isinstance(value, list):
        return [in_reading_order(inner, story) for inner in value]
    if not isinstance(value, Mapping):
        return value
    fields = max(READ, key=lambda names: len(value.keys() & set(names)))
    unused = {name for name in TARGETS if value.get(name) is None and value.keys() >= set(TARGETS)}
    gone = unused if len(unused) < len(TARGETS) else set()
    if story is not None and value.get("story_id") == story:
        gone.add("story_id")
    order = sorted(value, key=lambda name: fields.index(name) if name in fields else len(fields))
    return {name: in_reading_order(value[name], story) for name in order if name not in gone}


@dataclass(frozen=True, slots=True)
class Makers:
    """Who made what in a record: each under a letter, named once for a group of fields."""

    made: Mapping[str, str]  # JSON path -> producer
    letters: Mapping[str, str]  # producer -> its letter
    usual: Mapping[str, str]  # group, such as ``$.scenes``; ``$`` for fields in none -> who made most of it
    waiting: frozenset[str] = frozenset()  # paths whose corrections the run has not applied yet

    def of(self, path: str) -> str:
        """Return who made what stands at a path; of each scene alike where nothing is said of this one."""
        return self.made.get(path) or self.made.get(_INDEX.sub("[*]", path)) or ""

    def exception(self, path: str) -> str:
        """Return who made what stands at a path, where it is somebody else than of most of its group."""
        maker = self.of(path)
        return maker if maker != self.usual.get(group_of(path)) else ""

    def groups(self, maker: str) -> list[str]:
        """Return the groups that somebody made most of, as people call them."""
        return [
            group.rpartition(".")[2].replace("_", " ") if group != "$" else "fields of the whole record"
            for group, usual in self.usual.items() if usual == maker
        ]  # fmt: skip


def makers_in(made: Mapping[str, str], waiting: frozenset[str] = frozenset()) -> Makers:
    """Return who made what, of JSON path -> producer."""
    groups: dict[str, Counter[str]] = {}
    for path, maker in made.items():
        groups.setdefault(group_of(path), Counter())[maker] += 1
    usual = {group: counts.most_common(1)[0][0] for group, counts in groups.items()}
    letters = {
        maker: ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)
        for number, maker in enumerate(dict.fromkeys(made.values()))
    }
    return Makers(made, letters, usual, waiting)


def under(path: str, name: str) -> str:
    """Return the path of a field of what stands at a path; of no record, where the path begins with no $."""
    return path + quoted_path((name,))[1:]


def group_of(path: str) -> str:
    """Return the list that a path leads into, such as ``$.scenes``; ``$`` where it leads into none."""
    part = _PART.search(path)
    return path[: part.start()] if part is not None else "$"


def short_texts(record: Row) -> list[str]:
    """Return what tells one row from others of the same name: its first short texts."""
    return [value for value in record.values() if isinstance(value, str) and len(value) <= 40][:5]


def gist_of(part: Row) -> str:
    """Return what a part of a record is about, in a line or two."""
    texts = [value for value in part.values() if isinstance(value, str)]
    lead = next((part[name] for name in GIST if isinstance(part.get(name), str)), "")
    text = lead or max(texts, key=len, default="")
    answer = part.get("gold_answer")
    whole = f"{text} \N{RIGHTWARDS ARROW} {answer}" if lead and isinstance(answer, str) else text
    return whole if len(whole) <= LONGEST_GIST else whole[: LONGEST_GIST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def are_checks(value: object) -> bool:
    """Return whether a value is a list of checks, each with its code and whether it passed."""
    return isinstance(value, list) and all(
        isinstance(check, Mapping) and {"code", "passed"} <= check.keys() for check in value
    )


def are_rewritten(value: object) -> bool:
    """Return whether a value is what became of the parts of a draft in which a check found something."""
    return isinstance(value, list) and all(
        isinstance(part, Mapping)
        and {"part", "number", "outcome", "findings"} <= part.keys()
        and all(isinstance(part.get(name, {}), Mapping) for name in ("first", "second"))
        for part in value
    )


def part_name(path: str, number: int, part: Row) -> str:
    """Return how people call a part of a list: scene 2, or the transition from scene 1 to 2."""
    if {"from_scene", "to_scene"} <= part.keys():
        return f"scene {part['from_scene']} to {part['to_scene']}"
    noun = path.rpartition(".")[2].replace("_", " ").removesuffix("s")
    return f"{noun} {number}" if noun else str(number)


def drafted_in(writes: Iterable[Row]) -> Row:
    """Return a record as the stages of a run left it.

    ``writes``: field -> value of each stage, in the order of the pipeline.
    """
    fields: dict[str, Any] = {}
    for written in writes:
        fields |= written
    whole = [value for value in fields.values() if isinstance(value, Mapping) and value.keys() & set(INNER)]
    if whole:
        return laid_out({"payload": whole[-1]}).record
    return {name: in_reading_order(fields[name]) for name in FIRST if fields.get(name)}


def record_lines(value: Row, path: str = "$", indent: str = "") -> Iterator[str]:
    """Yield a record as lines for people, nothing cut: parts with their JSON paths, and their fields.

    ``path``: its JSON path.
    """
    unknown = [name for name, inner in value.items() if inner is None]
    for name, inner in value.items():
        where, label = f"{path}.{name}", name.replace("_", " ")
        if isinstance(inner, list) and inner and isinstance(inner[0], Mapping):
            for number, part in enumerate(inner):
                yield f"{indent}{part_name(where, number + 1, part)}  {where}[{number}]"
                yield from record_lines(part, f"{where}[{number}]", f"{indent}  ")
        elif isinstance(inner, Mapping):
            yield f"{indent}{label}"
            yield from record_lines(inner, where, f"{indent}  ")
        elif inner is not None:
            text = "; ".join(map(str, inner)) or "none" if isinstance(inner, list) else str(inner)
            yield f"{indent}{label}: " + text.replace("\n", f"\n{indent}  ")
    if unknown:
        yield f"{indent}not known: {', '.join(name.replace('_', ' ') for name in unknown)}"


def listed_of(row: Row) -> Row:
    """Return what a list shows of a row: its record; of the distances of edits, which fields they changed."""
    record = record_of(row)
    fields = record.get("fields")
    if not isinstance(fields, Mapping) or not all(
        isinstance(field, Mapping) and {"compared", "changed", "distance"} <= field.keys()
        for field in fields.values()
    ):
        return stated(row)
    changed = [
        f"{path} {field['changed']} of {field['compared']}, distance {field['distance']:g}"
        for path, field in fields.items() if field["changed"]
    ]  # fmt: skip
    return {
        **record, "values_changed": sum(field["changed"] for field in fields.values()),
        "values_compared": sum(field["compared"] for field in fields.values()),
        "where": "; ".join(changed) or "nothing was changed",
    }  # fmt: skip


def producers_in(lines: object) -> dict[str, str]:
    """Return JSON path -> who made what stands there, of a list of such lines."""
    return {
        str(line["path"]): str(line["producer"])
        for line in (lines if isinstance(lines, Sequence) else ())
        if isinstance(line, Mapping) and {"path", "producer"} <= line.keys()
    }


def asked_about(record: Row, item: str) -> Row | None:
    """Return the part of a record that an item of an evaluation is about: a question, a variant, a shot."""
    return next((part for part in _parts(record) if item in (part.get(key) for key in _PART_KEYS)), None)


_PART_KEYS = ("question_id", "variant_id", "transition_id", "shot_id", "event_id")


def _parts(value: Any) -> Iterator[Row]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)
