"""Settings of the stages of the suite builder, and what a row of its sources holds."""

from typing import Literal

from pydantic import Field

from ...schemas.values import Own
from ...validators.events.rules import MOST_PARTICIPANTS, MOST_WORDS, NEAR
from ..step import Worded

SILENT = {"more_than_two": 3, "at_least_two": 2}
"""Named definitions of the second filter -> how many methods without an answer a prompt goes with: section
2.1.2 of StoryEval says more than two, section 6.1 at least two."""


class Seed(Own):
    """One row of ``seeds.jsonl``: a prompt, or a video that is to be captioned."""

    prompt: str | None = Field(default=None, description="The prompt; null where a model captions the video.")
    origin: Literal["retrieval", "brainstorm"] = Field(
        default="brainstorm",
        description="retrieval: it captions a real video; brainstorm: somebody thought of it.",
    )
    event_list: tuple[str, ...] | None = Field(default=None, description="The events, where they are given.")
    participants: tuple[Literal["human", "animal", "object"], ...] | None = Field(
        default=None, description="Who leads the story, where it is given."
    )
    creative: bool | None = Field(default=None, description="Whether it can never happen.")
    video: str | None = Field(default=None, description="The real video, relative to the file.")
    author: str | None = Field(default=None, description="Who wrote it.")


class LoadSettings(Own):
    """How many prompts a model is to add, and whether a suite that is given is kept whole."""

    generate: int = Field(default=0, ge=0, le=20_000, description="Prompts that a model is asked for.")
    examples: int = Field(default=6, ge=1, le=50, description="Seeds that each of these requests shows.")
    creative_share: float = Field(
        default=0.3, ge=0, le=1, description="Share of these that are to be impossible in the real world."
    )
    keep_all: bool = Field(
        default=False,
        description="Every prompt of a suite stays, even where it breaks a condition or is a near-duplicate.",
    )


class WriteSettings(Worded):
    """Which model captions videos and writes prompts."""

    temperature: float | None = Field(default=1.0, ge=0, le=2)
    frames: int = Field(default=16, ge=1, le=64, description="Frames of a real video that a model is shown.")


class ConditionSettings(Own):
    """The general conditions of a prompt."""

    max_words: int = Field(default=MOST_WORDS, ge=5, description="Longer prompts are no short stories.")
    max_participants: int = Field(
        default=MOST_PARTICIPANTS, ge=1, le=3, description="Kinds of participants at most."
    )


class SelectSettings(Own):
    """Which prompts stay."""

    near: float = Field(
        default=NEAR, gt=0, le=100, description="Token-set similarity, 0 to 100, from which one of two goes."
    )
    most: int | None = Field(
        default=None,
        ge=1,
        description="Most prompts; the most different of the model's are taken. Null: all.",
    )


class GradeSettings(Own):
    """How results filter and grade the prompts, where there are results."""

    silent: Literal["more_than_two", "at_least_two", "off"] = Field(
        default="more_than_two", description="Prompts without an answer for so many methods go."
    )
    exempt: tuple[str, ...] = Field(
        default=(), description="Methods that do not count for that, as an early model that fails often."
    )
    max_difference: float | None = Field(
        default=None, gt=0, le=1,
        description="A prompt goes where judge and people differ by more on average. Null: none does.",
    )  # fmt: skip
    above: float = Field(
        default=0.15, ge=0, lt=1, description="Methods with a higher average count for the difficulty."
    )
    easy: int = Field(default=100, ge=0, description="So many prompts with the highest mean rate are easy.")
    hard: int = Field(default=100, ge=0, description="So many with the lowest are hard.")
