"""Stage: what each shot tells, rewritten as narration and dialogue.

That is the form of the plots of ViStoryBench (supplement, section C). It is off unless ``narration`` is set:
plots are the story's own words then, so that anybody can check that nothing is lost.
"""

from pydantic import Field

from ...schemas.canonical import Json
from ..replies import Drafted, Problems, language
from ..step import PlannerSettings, Step
from .cast import Sketch


class Settings(PlannerSettings):
    """Settings of the stage."""

    narration: bool = Field(default=False, description="Rewrite plots as narration and dialogue.")


def _rules(sketch: Sketch, settings: Settings) -> Json:
    """Return None: rules write nothing anew, and the plots stay the story's words."""
    return None


def _show(sketch: Sketch, settings: Settings) -> Json:
    if not settings.narration:
        return None
    return {
        "characters": sketch.called() or ["-"],
        "language": language(sketch.story),
        "shots": list(sketch.plot),
    }


def _read(reply: Json, sketch: Sketch, settings: Settings) -> list[str]:
    """Return the plots."""

    def accept(number: int, text: str, problems: Problems) -> None:
        """Take any plot that says something: what is left out or added no program can tell."""

    return sketch.texts_of(reply, "plot", accept)


def _given(sketch: Sketch, settings: Settings) -> Json:
    """Return the plots that the one prompt of a whole script wrote, if they are wanted."""
    if not settings.narration or sketch.planned is None or sketch.planned["narration"] is None:
        return None
    return Drafted(sketch.planned["narration"], sketch.planned_by or "")


STEP = Step(
    id="shots/narrate_plots",
    version=1,
    writes=("narration",),
    reads=("story", "analysis", "plot", "cast", "planned", "planned_by"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    given=_given,
    settings=Settings,
)
