"""Stage: the part of the story that each shot tells, and the moment of it that the still shows.

The parts together are the whole story, in order. Rules settle no moment.
"""

from pydantic import Field

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced
from ...validators.shots.script_rules import SHOTS
from ..replies import Problems, language, needed
from ..step import PlannerSettings, Step, Unfit
from ..text.boundaries import divide, read_division
from ..text.segments import Analysis, segment_texts
from ..text.words import word_count
from .cast import Sketch, as_planned, base_language

UNSPACED = 1.8
"""Characters that stand for one word in a script without spaces."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    shots: int | None = Field(
        default=None, ge=4, le=30, description="Shots of every story. Null: by its length, 4 to 30."
    )
    words_per_shot: int = Field(default=22, ge=1, description="Words of a story that make one shot.")


def shots_wanted(sketch: Sketch, settings: Settings) -> int:
    """Return how many shots a story gets: as asked for, else by its length, at most one for each clause."""
    if base_language(sketch.story) is None:
        raise Unfit("language", f"found {sketch.story['language']}; translate the story first")
    if asked := sketch.facts().get("shots") or settings.shots:
        return int(asked)
    text: str = sketch.story["normalized_text"]
    length = word_count(text) / (UNSPACED if is_unspaced(text) else 1)
    fewest, most = SHOTS
    return max(fewest, min(most, round(length / settings.words_per_shot), len(sketch.analysis["segments"])))


def _rules(sketch: Sketch, settings: Settings) -> Json:
    text = sketch.story["normalized_text"]
    spans = divide(text, Analysis.from_json(sketch.analysis), shots_wanted(sketch, settings))
    if spans is None:
        return None
    return {"plot": [text[start:end] for start, end in spans], "moments": [None] * len(spans)}


def _show(sketch: Sketch, settings: Settings) -> Json:
    segments, count = segment_texts(sketch.story, sketch.analysis), shots_wanted(sketch, settings)
    if len(segments) < count:
        return None
    return {
        "count": count,
        "language": language(sketch.story),
        "segments": segments,
        "title": sketch.story["title"],
    }


def _read(reply: Json, sketch: Sketch, settings: Settings) -> Json:
    """Return the texts of the shots, which hold all of the story but white space, and their moments.

    A shot of a whole script, which one prompt wrote, has no moment: its description says what is seen.
    """
    count, shots, problems = shots_wanted(sketch, settings), reply["shots"], Problems()
    plot = read_division(shots, count, "shot", sketch.story, sketch.analysis)
    moments = [
        needed(entry, "moment", f"shot {number}", problems) if "moment" in entry else None
        for number, entry in enumerate(shots, start=1)
    ]
    problems.settle()
    return {"plot": plot, "moments": moments}


def _settle(drafted: Json, sketch: Sketch, settings: Settings) -> Json:
    if drafted is None:
        segments, count = len(sketch.analysis["segments"]), shots_wanted(sketch, settings)
        raise Unfit("too_short", f"{segments} sentences and clauses for {count} shots")
    return drafted


STEP = Step(
    id="shots/plan_shots",
    version=4,
    writes=("plot", "moments"),
    reads=("story", "analysis", "given", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=as_planned("plot", "moments"),
    settle=_settle,
    settings=Settings,
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than shots.",
        "language": "The format holds English and Chinese; the story is in another language.",
    },
)
