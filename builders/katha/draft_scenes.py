"""Stage: divide the story into scenes and fill every scene field that the text tells.

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story with fewer clauses than scenes.
"""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from .parts import fill, given_list
from .planner import PlannerSettings, planner_of


class Settings(PlannerSettings):
    """Settings of the stage."""

    scenes: int = Field(default=5, ge=2, le=100, description="Scenes per story, T in the paper.")


SPEC = StageSpec(
    name="draft_scenes",
    version=1,
    shape="map",
    reads=("story", "given", "analysis"),
    writes=("scenes",),
    libraries=("jinja2",),
    prompts=("scene_image",),
    reject_codes={"too_short": "The story has fewer sentences and clauses than scenes."},
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the scenes; hand-written ones keep their fields, and what they leave out is drafted."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    planner = planner_of(tools)
    story, analysis = item["story"], item["analysis"]
    given = given_list(item["given"], "scenes")
    if given is not None:
        drafted = planner.scenes(story, analysis, [scene["scene_text"] for scene in given])
        return Made({"scenes": fill(given, drafted)})
    texts = planner.divide(story, analysis, settings.scenes)
    if texts is None:
        text = story["normalized_text"]
        reason = f"fewer clauses than the {settings.scenes} scenes asked for in: {text[:120]!r}"
        return Rejected("too_short", reason)
    return Made({"scenes": planner.scenes(story, analysis, texts)})
