"""Stage: what the planner reads off the text once, so that no later stage has to read it again."""

from typing import Literal

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.base import Own
from .planner import load_planner


class Settings(Own):
    """Settings of the stage."""

    planner: Literal["rules"] = "rules"


SPEC = StageSpec(
    name="analyze_story",
    version=1,
    shape="map",
    reads=("story",),
    writes=("analysis",),
    libraries=("sentencex", "empath"),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the planner's analysis of the story."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    return Made({"analysis": load_planner(settings.planner).analyze(item["story"])})
