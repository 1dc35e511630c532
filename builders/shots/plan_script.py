"""Stage: a whole script from one prompt with five fields for each shot, in place of a stage for each part.

That is how ViStoryBench planned its scripts (supplement, section C.2). It is off unless ``one_prompt`` is
set. The parts are read as the stages of each part read theirs, and those stages then keep them.
"""

from dataclasses import replace

from pydantic import Field

from ...schemas.canonical import Json
from ..replies import Problems
from ..step import Step
from . import (
    describe_settings,
    describe_shots,
    design_perspectives,
    place_characters,
    plan_shots,
    write_characters,
)
from .cast import Sketch

PARTS = (
    plan_shots.STEP, write_characters.STEP, place_characters.STEP, describe_settings.STEP,
    design_perspectives.STEP, describe_shots.STEP,
)  # fmt: skip
"""The steps whose fields the prompt asks for, in their order."""


class Settings(plan_shots.Settings, write_characters.Settings):
    """Settings of the stage."""

    one_prompt: bool = Field(default=False, description="Ask for all parts of a script with one prompt.")


def _rules(sketch: Sketch, settings: Settings) -> Json:
    """Return what the rules of each part draft: how long a script would be, if a model wrote it."""
    if not settings.one_prompt:
        return None
    parts: dict[str, Json] = {}
    for step in PARTS:
        value = step.rules(sketch, settings)
        if value is None:
            return None
        fields = value if len(step.writes) > 1 else {step.writes[0]: value}
        parts |= fields
        sketch = replace(sketch, **fields)
    return {**parts, "narration": None}


def _show(sketch: Sketch, settings: Settings) -> Json:
    if not settings.one_prompt:
        return None
    division = plan_shots.STEP.show(sketch, settings)
    if division is None:
        return None
    people = write_characters.STEP.show(sketch, settings) or {}
    return {**division, **{name: people[name] for name in ("given", "human", "most")}}


def _read(reply: Json, sketch: Sketch, settings: Settings) -> Json:
    """Return the parts of a script, each read as its own stage reads it, and ``narration``."""
    parts: dict[str, Json] = {}
    for step in PARTS:
        value = step.read(reply, sketch, settings)
        fields = value if len(step.writes) > 1 else {step.writes[0]: value}
        parts |= fields
        sketch = replace(sketch, **fields)
    return {**parts, "narration": sketch.texts_of(reply, "plot", _accept)}


def _accept(number: int, text: str, problems: Problems) -> None:
    """Take any plot that says something: what is left out or added no program can tell."""


STEP = Step(
    id="shots/plan_script",
    version=4,
    writes=("planned",),
    reads=("story", "analysis", "given"),
    sketch=Sketch.of,
    rules=_rules,
    show=_show,
    read=_read,
    settings=Settings,
    reject_codes=plan_shots.STEP.reject_codes,
)
