"""Stage: divide the story into scenes and fill every scene field that the text tells.

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story with fewer clauses than scenes.
"""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.katha import Scene
from .parts import fill, given_list, is_complete
from .planner import PlannerSettings, planner_of


class Settings(PlannerSettings):
    """Settings of the stage."""

    scenes: int = Field(default=5, ge=2, le=100, description="Scenes per story, T in the paper.")


SPEC = StageSpec(
    name="draft_scenes",
    version=2,
    shape="map",
    reads=("story", "given", "analysis"),
    writes=("scenes", "scenes_by"),
    libraries=("jinja2",),
    prompts=("scene_image",),
    reject_codes={"too_short": "The story has fewer sentences and clauses than scenes."},
    settings=Settings,
    asks=("katha/draft_scenes", "katha/describe_scenes"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the scenes and who drafted them; hand-written ones keep their fields, the rest is drafted."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    story, analysis = item["story"], item["analysis"]
    given = given_list(item["given"], "scenes")
    if given is not None and is_complete(given, Scene):
        return Made({"scenes": given, "scenes_by": None})
    planner = planner_of(tools)
    if given is not None:
        described = await planner.describe(story, analysis, [scene["scene_text"] for scene in given])
        return Made({"scenes": fill(given, described.value), "scenes_by": described.maker})
    drafted = await planner.scenes(story, analysis, settings.scenes)
    if drafted is None:
        text = story["normalized_text"]
        reason = f"fewer clauses than the {settings.scenes} scenes asked for in: {text[:120]!r}"
        return Rejected("too_short", reason)
    return Made({"scenes": drafted.value, "scenes_by": drafted.maker})
