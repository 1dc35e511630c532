"""Stage: the general conditions of section 2.1.1 of StoryEval, and its first filter, as checks."""

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.events import video_name
from ...validators.events.rules import objections
from .settings import ConditionSettings

SPEC = StageSpec(
    name="check_conditions",
    version=3,
    shape="map",
    reads=("entry", "stays"),
    writes=("unit", "labels"),
    reject_codes={
        "no_name": "no file name can be made of the prompt",
        "event_count": "fewer than two or more than four events",
        "repeated_event": "two events are the same",
        "too_long": "too long for a short story",
        "too_many_participants": "more kinds of participants than are allowed",
        "facial_expression": "an event is a facial expression, which judges cannot be relied on to see",
        "event_elsewhere": "an event is not what the prompt tells",
    },
    settings=ConditionSettings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return file name and labels of a prompt that meets the conditions, or that stays in any case."""
    settings = tools.own(ConditionSettings)
    entry, given = item["entry"], item["entry"]["given"]
    against = objections(
        entry["prompt"],
        entry["event_list"],
        entry["participants"],
        max_words=settings.max_words,
        max_participants=settings.max_participants,
    )
    for objection in () if item["stays"] else against:
        return Rejected(objection.code.replace("-", "_"), objection.message)
    if given is not None:
        return Made({"unit": given["unit"], "labels": given["entry"]["class"]})
    origin = ["retrieval"] if entry["origin"] == "retrieval" else []
    creative = ["creative"] if entry["creative"] else []
    labels = [*entry["participants"], *origin, *creative, f"{len(entry['event_list'])}_events"]
    return Made({"unit": video_name(entry["prompt"]), "labels": labels})
