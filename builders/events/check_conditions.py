"""Stage: the general conditions of section 2.1.1 of StoryEval, and its first filter, as checks."""

from collections.abc import Iterator

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.events import video_name
from .rules import FEWEST, MOST, facial_expression
from .settings import ConditionSettings

SPEC = StageSpec(
    name="check_conditions",
    version=1,
    shape="map",
    reads=("entry",),
    writes=("unit", "labels"),
    reject_codes={
        "no_name": "no file name can be made of the prompt",
        "event_count": "fewer than two or more than four events",
        "repeated_event": "two events are the same",
        "too_long": "too long for a short story",
        "too_many_participants": "more kinds of participants than are allowed",
        "facial_expression": "an event is a facial expression, which judges cannot be relied on to see",
    },
    settings=ConditionSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return file name and labels of a prompt that meets the conditions."""
    settings = tools.settings
    assert isinstance(settings, ConditionSettings)
    entry = item["entry"]
    unit = video_name(entry["prompt"])
    for code, reason in _objections(entry, unit, settings):
        return Rejected(code, reason)
    origin = ["retrieval"] if entry["origin"] == "retrieval" else []
    creative = ["creative"] if entry["creative"] else []
    labels = [*entry["participants"], *origin, *creative, f"{len(entry['event_list'])}_events"]
    return Made({"unit": unit, "labels": labels})


def _objections(entry: Json, unit: str, settings: ConditionSettings) -> Iterator[tuple[str, str]]:
    """Yield code and reason of everything that speaks against a prompt."""
    events, kinds, words = entry["event_list"], entry["participants"], len(entry["prompt"].split())
    if unit == ".mp4":
        yield "no_name", entry["prompt"][:100]
    if not FEWEST <= len(events) <= MOST:
        yield "event_count", f"{len(events)} events: {'; '.join(events)[:200]}"
    if len({event.casefold() for event in events}) < len(events):
        yield "repeated_event", "; ".join(events)[:200]
    if words > settings.max_words:
        yield "too_long", f"{words} words; at most {settings.max_words}"
    if len(kinds) > settings.max_participants:
        yield "too_many_participants", ", ".join(kinds)
    if face := facial_expression(events):
        yield "facial_expression", face[:200]
