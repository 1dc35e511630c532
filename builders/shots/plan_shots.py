"""Stage: the part of the story that each shot tells; together they are the whole story, in order."""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import is_unspaced
from ...validators.shots.script_rules import SHOTS
from ..katha.rules.words import word_count
from .planner import PlannerSettings, Sketch, base_language, planner_of

UNSPACED = 1.8
"""Characters that stand for one word in a script without spaces."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    shots: int | None = Field(
        default=None, ge=4, le=30, description="Shots of every story. Null: by its length, 4 to 30."
    )
    words_per_shot: int = Field(default=22, ge=1, description="Words of a story that make one shot.")


SPEC = StageSpec(
    name="plan_shots",
    version=1,
    shape="map",
    reads=("story", "analysis", "given"),
    writes=("plot", "plot_by"),
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than shots.",
        "language": "The format holds English and Chinese; the story is in another language.",
    },
    settings=Settings,
    asks=("shots/plan_shots",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the texts of the shots and who divided the story."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    sketch = Sketch.of(item)
    if base_language(sketch.story) is None:
        return Rejected("language", f"found {sketch.story['language']}; translate the story first")
    asked = (item["given"] or {}).get("shots") or settings.shots
    count = asked or _count(sketch.story["normalized_text"], sketch.analysis, settings.words_per_shot)
    drafted = await planner_of(tools).plan(sketch, count)
    if drafted is None:
        segments = len(sketch.analysis["segments"])
        return Rejected("too_short", f"{segments} sentences and clauses for {count} shots")
    return Made({"plot": drafted.value, "plot_by": drafted.maker})


def _count(text: str, analysis: Json, words: int) -> int:
    """Return how many shots a story gets: by its length, but no more than it has clauses."""
    length = word_count(text) / (UNSPACED if is_unspaced(text) else 1)
    fewest, most = SHOTS
    return max(fewest, min(most, round(length / words), len(analysis["segments"])))
