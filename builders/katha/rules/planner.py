"""The rules behind the face that every planner has."""

from collections.abc import Sequence

from ....schemas.canonical import Json
from ..planner import Drafted
from . import PRODUCER, Rules

_RULES = Rules()


class RulesPlanner:
    """Drafts by rules; see :class:`fabula.builders.katha.planner.Planner`. It never waits."""

    async def scenes(self, story: Json, analysis: Json, count: int) -> Drafted[Json] | None:
        """Return the scenes, or None where the story has too few clauses."""
        texts = _RULES.divide(story, analysis, count)
        return None if texts is None else await self.describe(story, analysis, texts)

    async def describe(self, story: Json, analysis: Json, texts: Sequence[str]) -> Drafted[Json]:
        """Return the scenes for given texts."""
        return Drafted(_RULES.scenes(story, analysis, texts), PRODUCER)

    async def labels(self, story: Json) -> Drafted[Json]:
        """Return the labels, each null where cue words do not settle it."""
        kind, moral = _RULES.labels(story)
        return Drafted({"narrative_type": kind, "moral_label": moral}, PRODUCER)

    async def transitions(
        self, story: Json, analysis: Json, scenes: Sequence[Json], moral: str | None
    ) -> Drafted[Json]:
        """Return the transitions."""
        return Drafted(_RULES.transitions(story, analysis, scenes, moral), PRODUCER)

    async def questions(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> Drafted[Json]:
        """Return the questions."""
        return Drafted(_RULES.questions(story, analysis, scenes, transitions, moral), PRODUCER)

    async def variants(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        labels: tuple[str | None, str | None],
        count: int,
    ) -> Drafted[Json]:
        """Return up to ``count`` variants."""
        return Drafted(_RULES.variants(story, analysis, scenes, labels, count), PRODUCER)

    async def repair(
        self,
        story: Json,  # noqa: ARG002 - the face of a planner
        draft: Json,  # noqa: ARG002
        part: str,  # noqa: ARG002
        findings: Sequence[Json],  # noqa: ARG002
    ) -> Drafted[Json] | None:
        """Return None: the same rules would draft the same again."""
        return None
