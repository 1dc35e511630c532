"""The flat tables of a released prompt suite: prompts, and their events one by one.

A prompt has several classes, so that one table per class would repeat it; the classes are a column.
"""

from collections.abc import Iterator

from ..schemas.canonical import Json
from .tables import Column, Table, row_of

SPLIT = "test"
"""The one split of a suite: nothing in it is for training."""

PROMPT_TABLE = Table(
    "prompts",
    "One row per prompt.",
    (
        Column("unit", "text", ("unit",), "File name of the prompt's video, which names the prompt."),
        Column("prompt", "text", ("entry", "prompt"), "What the video model is asked for."),
        Column("event_list", "texts", ("entry", "event_list"), "The events in order, each as one statement."),
        Column("class", "texts", ("entry", "class"), "Participants, origin, difficulty, number of events."),
        Column("origin", "text", ("origin",), "retrieval, brainstorm or guided: where the prompt is from."),
        Column("prompt_by", "text", ("producers", "prompt"), "Who wrote the prompt."),
        Column("events_by", "text", ("producers", "event_list"), "Who listed its events."),
    ),
    ("unit",),
    {},
)
EVENT_TABLE = Table(
    "events",
    "One row per event of a prompt.",
    (
        Column("unit", "text", ("unit",), "The prompt, by the file name of its video."),
        Column("number", "integer", ("number",), "Place of the event in the prompt, from 1."),
        Column("event", "text", ("event",), "The event as a statement."),
    ),
    ("unit", "number"),
    {"unit": ("prompts", "unit")},
)
TABLES = (PROMPT_TABLE, EVENT_TABLE)


def prompt_rows(record: Json) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows that a line of ``prompts.jsonl`` adds to the tables, with their table."""
    yield PROMPT_TABLE, row_of(PROMPT_TABLE, record)
    for number, event in enumerate(record["entry"]["event_list"], 1):
        yield EVENT_TABLE, row_of(EVENT_TABLE, {"unit": record["unit"], "number": number, "event": event})
