"""What drafts the parts of a record: a protocol, and the planners that there are."""

from collections.abc import Sequence
from typing import Protocol

from ...engine.stage import Tools
from ...schemas.canonical import Json
from ..replies import Drafted
from ..step import PlannerSettings

__all__ = ["Drafted", "Planner", "PlannerSettings", "planner_of"]


class Planner(Protocol):
    """Drafts the parts of one KathaBench record; plain JSON in and out, in the shapes of ``schemas.katha``.

    ``story`` is ``schemas.story.Story``; ``analysis`` is what ``analyze_story`` read off it by rules.
    Fields that a planner cannot know are null or empty, never invented. The same call with the same answers
    of the model gives the same value. Every method may raise :class:`~fabula.engine.asking.NoAnswer`.
    """

    async def scenes(self, story: Json, analysis: Json, count: int) -> Drafted[Json] | None:
        """Return ``count`` scenes (Table 7) that cover the text in order; None where it is too short."""
        ...

    async def describe(self, story: Json, analysis: Json, texts: Sequence[str]) -> Drafted[Json]:
        """Return the scenes (Table 7) for given scene texts, which cover the text in order."""
        ...

    async def labels(self, story: Json) -> Drafted[Json]:
        """Return ``{"narrative_type": ..., "moral_label": ...}``, each of its vocabulary or null."""
        ...

    async def transitions(
        self, story: Json, analysis: Json, scenes: Sequence[Json], moral: str | None
    ) -> Drafted[Json]:
        """Return the transitions between adjacent scenes (Table 8)."""
        ...

    async def questions(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> Drafted[Json]:
        """Return the recoverability questions (Table 13)."""
        ...

    async def variants(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        labels: tuple[str | None, str | None],
        count: int,
    ) -> Drafted[Json]:
        """Return up to ``count`` contrastive variants (Table 15); labels are narrative type and moral."""
        ...

    async def repair(
        self, story: Json, draft: Json, part: str, findings: Sequence[Json]
    ) -> Drafted[Json] | None:
        """Return a list of a draft anew, with what the checks found put right; None to leave it.

        Args:
            story: the story.
            draft: title, labels, the four lists and producers, as the stage ``apply_edits`` writes it.
            part: ``scenes``, ``transitions``, ``questions`` or ``variants``.
            findings: the failed checks of this part (``schemas.values.Check`` as JSON).

        Returns:
            The whole list, with the same ids in the same order; scenes keep their texts.
        """
        ...


def planner_of(tools: Tools) -> Planner:
    """Return the planner that a stage's settings name."""
    settings = tools.settings
    assert isinstance(settings, PlannerSettings)
    if settings.planner == "model":
        from .model import ModelPlanner

        return ModelPlanner(tools)
    from .rules.planner import RulesPlanner

    return RulesPlanner()
