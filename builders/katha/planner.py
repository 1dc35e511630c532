"""What drafts the parts of a record: a protocol, and the planners that there are."""

from collections.abc import Sequence
from functools import cache
from typing import Literal, Protocol

from ...engine.stage import Tools
from ...errors import ConfigError
from ...schemas.base import Own
from ...schemas.canonical import Json

PLANNERS = ("rules",)
"""Names that a planner setting may have."""


class PlannerSettings(Own):
    """Settings of a stage that a planner drafts for."""

    planner: Literal["rules"] = "rules"


class Planner(Protocol):
    """Drafts the parts of one KathaBench record; plain JSON in and out, in the shapes of ``schemas.katha``.

    ``story`` is ``schemas.story.Story``; ``analysis`` is whatever :meth:`analyze` returned. Fields that a
    planner cannot know are null or empty, never invented. Every call is deterministic.
    """

    name: str
    """What the producer sidecar says, such as ``rules@1``."""

    def analyze(self, story: Json) -> Json:
        """Return what later calls need to know of the text; kept in the run's journal."""
        ...

    def divide(self, story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
        """Return ``count`` scene texts that cover the text in order, or None where that is impossible."""
        ...

    def scenes(self, story: Json, analysis: Json, texts: Sequence[str]) -> list[Json]:
        """Return the scenes (Table 7) for given scene texts."""
        ...

    def labels(self, story: Json) -> tuple[str | None, str | None]:
        """Return narrative type and moral label."""
        ...

    def transitions(
        self, story: Json, analysis: Json, scenes: Sequence[Json], moral: str | None
    ) -> list[Json]:
        """Return the transitions (Table 8)."""
        ...

    def questions(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> list[Json]:
        """Return the recoverability questions (Table 13)."""
        ...

    def relabelled(self, question: Json, moral: str) -> Json | None:
        """Return a moral question of this planner answered by another label; None where it has no words."""
        ...

    def variants(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        labels: tuple[str | None, str | None],
        count: int,
    ) -> list[Json]:
        """Return up to ``count`` contrastive variants (Table 15)."""
        ...


@cache
def load_planner(name: str) -> Planner:
    """Return a planner by name.

    Raises:
        ConfigError: there is no such planner.
    """
    if name != "rules":
        raise ConfigError(
            f"planner {name}", expected=f"one of: {', '.join(PLANNERS)}", found="no such planner",
            fix="use --planner rules",
        )  # fmt: skip
    from .rules import RulesPlanner

    return RulesPlanner()


def planner_of(tools: Tools) -> Planner:
    """Return the planner that a stage's settings name."""
    settings = tools.settings
    assert isinstance(settings, PlannerSettings)
    return load_planner(settings.planner)
