"""What drafts the parts of a record: a protocol, and the planners that there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ...engine.stage import Tools
from ...errors import ConfigError
from ...models.settings import ModelSettings
from ...schemas.canonical import Json

PLANNERS = ("rules", "model")
"""Names that a planner setting may have."""


class PlannerSettings(ModelSettings):
    """Settings of a stage that a planner drafts for; a model is asked only where ``planner`` says so."""

    planner: Literal["rules", "model"] = "rules"

    @field_validator("planner")
    @classmethod
    def _model_is_named(cls, planner: str, info: ValidationInfo) -> str:
        if planner == "model" and info.data.get("model", "") is None:
            raise PydanticCustomError(
                "model_missing",
                "rules, or model together with a model spec in the setting model of this stage",
            )
        return planner

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks: none for the rules."""
        return super().models() if self.planner == "model" else ()


@dataclass(frozen=True, slots=True)
class Drafted:
    """A part of a record, and who made it.

    Attributes:
        value: the part, in the shape that the planner's method says.
        maker: what the producer sidecar says: ``rules@1``, or the model and the prompt.
    """

    value: Json
    maker: str


class Planner(Protocol):
    """Drafts the parts of one KathaBench record; plain JSON in and out, in the shapes of ``schemas.katha``.

    ``story`` is ``schemas.story.Story``; ``analysis`` is what ``analyze_story`` read off it by rules.
    Fields that a planner cannot know are null or empty, never invented. The same call with the same answers
    of the model gives the same value. Every method may raise :class:`~fabula.engine.asking.NoAnswer`.
    """

    async def scenes(self, story: Json, analysis: Json, count: int) -> Drafted | None:
        """Return ``count`` scenes (Table 7) that cover the text in order; None where it is too short."""
        ...

    async def describe(self, story: Json, analysis: Json, texts: Sequence[str]) -> Drafted:
        """Return the scenes (Table 7) for given scene texts, which cover the text in order."""
        ...

    async def labels(self, story: Json) -> Drafted:
        """Return ``{"narrative_type": ..., "moral_label": ...}``, each of its vocabulary or null."""
        ...

    async def transitions(
        self, story: Json, analysis: Json, scenes: Sequence[Json], moral: str | None
    ) -> Drafted:
        """Return the transitions between adjacent scenes (Table 8)."""
        ...

    async def questions(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> Drafted:
        """Return the recoverability questions (Table 13)."""
        ...

    async def variants(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        labels: tuple[str | None, str | None],
        count: int,
    ) -> Drafted:
        """Return up to ``count`` contrastive variants (Table 15); labels are narrative type and moral."""
        ...

    async def repair(self, story: Json, draft: Json, part: str, findings: Sequence[Json]) -> Drafted | None:
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


def check_planner(name: str) -> None:
    """Check the name of a planner.

    Raises:
        ConfigError: there is no such planner.
    """
    if name not in PLANNERS:
        raise ConfigError(
            f"planner {name}", what="there is no such planner",
            fix="use --planner rules, or --planner model with --model",
        )  # fmt: skip


def planner_of(tools: Tools) -> Planner:
    """Return the planner that a stage's settings name."""
    settings = tools.settings
    assert isinstance(settings, PlannerSettings)
    if settings.planner == "model":
        from .model import ModelPlanner

        return ModelPlanner(tools)
    from .rules.planner import RulesPlanner

    return RulesPlanner()
