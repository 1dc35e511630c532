"""Stage: who is in the story: name, tag, gender, appearance and clothing."""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .given import given_cast
from .planner import PlannerSettings, Sketch, planner_of


class Settings(PlannerSettings):
    """Settings of the stage."""

    most: int = Field(default=10, ge=1, le=100, description="Characters of a story at most.")
    realistic: bool = Field(
        default=True,
        description="Whether people are to have photographs as references, where the author does not say.",
    )


SPEC = StageSpec(
    name="write_characters",
    version=1,
    shape="map",
    reads=("story", "analysis", "given", "plot"),
    writes=("cast", "cast_by"),
    settings=Settings,
    asks=("shots/write_characters",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the cast and who wrote what the author did not."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    sketch, given = Sketch.of(item), item["given"] or {}
    realistic = given.get("realistic")
    human = (
        "realistic_human" if (settings.realistic if realistic is None else realistic) else "unrealistic_human"
    )
    named = given_cast(given, sketch.base)
    if named and all(one["tag"] and one["gender"] and one["prompt"] for one in named):
        return Made({"cast": named, "cast_by": None})
    drafted = await planner_of(tools).cast(sketch, named, human, settings.most)
    return Made({"cast": drafted.value, "cast_by": drafted.maker})
