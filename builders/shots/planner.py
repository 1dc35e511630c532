"""What drafts the parts of a shot script: a protocol, and the planners that there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from ...engine.stage import Item, Tools
from ...schemas.canonical import Json
from ...schemas.ids import primary_language
from ..katha.planner import Drafted, PlannerSettings

__all__ = ["Drafted", "Planner", "PlannerSettings", "Sketch", "base_language", "planner_of"]

BASES: Mapping[str, str] = {"en": "en", "zh": "ch"}
"""Primary language of a story -> its key in the format, which has these two."""


def base_language(story: Json) -> str | None:
    """Return the key of a story's language in the format; None where the format has none."""
    return BASES.get(primary_language(story["language"]))


@dataclass(frozen=True, slots=True)
class Sketch:
    """A script as far as it is drafted; lists have one element for each shot. Plain JSON throughout.

    Attributes:
        story: ``schemas.story.Story``.
        analysis: what ``analyze_story`` read off it by rules.
        plot: the part of the story that each shot tells; together they are the story.
        cast: the characters; see :mod:`.cast`.
        onstage: the keys of the characters on stage.
        settings: the places, in the story's language; null where the text tells none.
        cameras: ``{"distance": ..., "angle": ..., "type": ...}``, values of the vocabularies or null.
        statics: what is seen, in the story's language.
    """

    story: Json
    analysis: Json
    plot: Sequence[str] = ()
    cast: Sequence[Json] = ()
    onstage: Sequence[Sequence[str]] = ()
    settings: Sequence[str | None] = ()
    cameras: Sequence[Json] = ()
    statics: Sequence[str] = ()

    @classmethod
    def of(cls, item: Item) -> "Sketch":
        """Return the sketch that the fields of an item make."""
        return cls(**{one.name: item[one.name] for one in fields(cls) if one.name in item.fields})

    @property
    def base(self) -> str:
        """The key of the story's language in the format."""
        return base_language(self.story) or "en"


class Planner(Protocol):
    """Drafts the parts of one shot script, in the language of the story.

    Fields that a planner cannot know are null or empty, never invented. The same call with the same answers
    of the model gives the same value. Every method may raise :class:`~fabula.engine.asking.NoAnswer`.
    """

    async def plan(self, sketch: Sketch, count: int) -> Drafted | None:
        """Return the texts of ``count`` shots, which hold the story in order; None where it is too short."""
        ...

    async def cast(self, sketch: Sketch, given: Sequence[Json], human: str, most: int) -> Drafted:
        """Return the characters, at most ``most``.

        Args:
            sketch: the script so far.
            given: characters by the author; if there are any, these are all there are.
            human: the tag of people: ``realistic_human`` or ``unrealistic_human``.
            most: characters at most.
        """
        ...

    async def onstage(self, sketch: Sketch) -> Drafted:
        """Return for each shot the keys of 0 to 3 characters of the cast."""
        ...

    async def settings(self, sketch: Sketch) -> Drafted:
        """Return for each shot the place without any character, or null."""
        ...

    async def cameras(self, sketch: Sketch) -> Drafted:
        """Return for each shot distance, angle and camera type: no repeats, no jumps."""
        ...

    async def statics(self, sketch: Sketch) -> Drafted:
        """Return for each shot what is seen, as a still that names who is on stage."""
        ...

    async def translate_names(self, sketch: Sketch, language: str) -> Drafted | None:
        """Return names and descriptions in the other language, see :mod:`.translation`; None to leave it."""
        ...

    async def translate(self, sketch: Sketch, names: Mapping[str, Json], language: str) -> Drafted | None:
        """Return the texts of the shots in the other language, see :mod:`.translation`; None to leave it.

        Args:
            sketch: the script.
            names: key of a character -> its name in that language.
            language: key of the language.
        """
        ...

    async def labels(self, sketch: Sketch) -> Drafted:
        """Return story type, culture and style, each of its vocabulary or null."""
        ...


def planner_of(tools: Tools) -> Planner:
    """Return the planner that a stage's settings name."""
    settings = tools.settings
    assert isinstance(settings, PlannerSettings)
    if settings.planner == "model":
        from .model import ShotModelPlanner

        return ShotModelPlanner(tools)
    from .rules.planner import ShotRulesPlanner

    return ShotRulesPlanner()
