"""Stage: which characters of the cast are on stage in each shot, 0 to 3."""

from ...schemas.canonical import Json
from ...schemas.text import normalize_text
from ..replies import Problems, language
from ..step import PlannerSettings, Step
from .cast import MOST_ONSTAGE, Sketch, as_planned, named_first


def _rules(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return who is named in each shot."""
    return [named_first(sketch.cast, part)[:MOST_ONSTAGE] for part in sketch.plot]


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the cast and the shots; there is nothing to ask about where there is nobody."""
    return (
        sketch.cast
        and {
            "characters": sketch.called(),
            "language": language(sketch.story),
            "moments": sketch.stills(),
            "shots": list(sketch.plot),
        }
    ) or None


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> list[list[str]]:
    """Return the keys of the characters on stage in each shot."""
    folded = {member["key"].casefold(): member["key"] for member in sketch.cast}
    problems, shots = Problems(), []
    for number, entry in enumerate(sketch.in_order(reply), start=1):
        named = [normalize_text(name) for name in entry["characters"]]
        strange = [name for name in named if name.casefold() not in folded]
        if strange:
            listed = ", ".join(folded.values())
            problems.add(f"shot {number}: {', '.join(strange)} is not in the list; there are {listed}")
        keys = list(dict.fromkeys(folded[name.casefold()] for name in named if name.casefold() in folded))
        if len(keys) > MOST_ONSTAGE:
            problems.add(f"shot {number}: {len(keys)} characters; choose at most {MOST_ONSTAGE}")
        shots.append(keys)
    problems.settle()
    return shots


STEP = Step(
    id="shots/place_characters",
    version=5,
    writes=("onstage",),
    reads=("story", "plot", "moments", "cast", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("onstage"),
)
