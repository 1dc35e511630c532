"""A row as people look at it: the record in it first, what is said about it after."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEYS = ("story_id", "episode_id", "story_name", "id", "prompt_id", "unit", "variant_id")
"""Fields that name a row, the first that it has."""
INNER = ("record", "entry", "script", "prompt")
"""Where the payload of a run's row has the record itself."""
FIRST = (
    "title", "story_text", "text", "prompt", "story_overview", "scenes", "transitions", "questions", "events",
    "shots", "entity_schedule", "entity_descriptions",
)  # fmt: skip
LAST = ("evidence_status", "provenance", "source_text", "checks", "schema_version")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Laid:
    """A row, taken apart.

    Attributes:
        record: what the row is for, its fields in the order of interest.
        made: JSON path in the record -> who made what stands there.
        about: what else the row says, such as variants and checks.
    """

    record: Row
    made: Mapping[str, str]
    about: Row


def name_of(row: Row, number: int) -> str:
    """Return what names a row: its id, else its number, from 1."""
    return next((str(row[key]) for key in KEYS if isinstance(row.get(key), str | int)), f"row {number + 1}")


def record_of(row: Row) -> Row:
    """Return the record in a row of a run; any other row as it is."""
    payload = row.get("payload")
    if not isinstance(payload, Mapping):
        return row
    return next((payload[name] for name in INNER if isinstance(payload.get(name), Mapping)), payload)


def laid_out(row: Row) -> Laid:
    """Take a row apart."""
    record, payload = record_of(row), row.get("payload")
    about = payload if isinstance(payload, Mapping) and payload is not record else {}
    beside = {name: value for name, value in about.items() if value is not record and name != "producers"}
    order = sorted(record, key=_rank)
    return Laid({name: record[name] for name in order}, producers_in(about.get("producers")), beside)


def _rank(name: str) -> int:
    if name in FIRST:
        return FIRST.index(name)
    return 200 + LAST.index(name) if name in LAST else 100


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
