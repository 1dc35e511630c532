"""Settings of evaluating shot images: what is evaluated, which models look at it, who judges.

Which models each metric needs is checked before anything is looked at.
"""

from collections.abc import Collection
from typing import Literal

from pydantic import Field, field_validator

from ...engine.config import RunConfig
from ...errors import ConfigError, MissingRequirement
from ...models.vision.needs import VisionSettings
from ...models.vision.store import Definition
from ...schemas.values import Listed, Own
from ..judging.pictures import ImageSettings
from ..judging.settings import JudgeSettings
from ..metrics.alignment import DIMENSIONS
from ..metrics.metric import Need, metrics
from ..running import check_places, missing_libraries

Dimension = Literal["scene", "shot", "interaction", "action"]


class ShotSelection(Own):
    """Which stories are evaluated, and how the outputs of methods are read."""

    stories: Listed[str] = Field(default=(), description="Only stories with these ids; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")
    mode: str | None = Field(default=None, description="Folder of the mode, where there are several.")
    language: str | None = Field(default=None, description="en or ch, where there are both.")
    timestamp: str | None = Field(default=None, description="Time stamp, or latest, where there are several.")
    references: Literal["dataset", "generated"] = Field(
        default="dataset", description="References of the set, or those that the method drew (Table S8)."
    )
    first_shot: int = Field(default=1, ge=0, le=1, description="Number of the first shot in file names.")


class DetectSettings(VisionSettings):
    """Who finds characters in pictures."""

    model: str | None = Field(default=None, description="Name of the detector; null: nobody looks.")

    def looking(self) -> tuple[str, ...]:
        """Return the name of the detector, if there is one."""
        return () if self.model is None else (self.model,)


class CropSettings(VisionSettings):
    """Who tells characters by their crops."""

    pictures: Listed[str] = Field(
        default=(), description="Encoders of crops of characters that are no realistic humans."
    )
    faces: Listed[str] = Field(default=(), description="Encoders of crops of realistic humans.")

    reference_crop: Definition = Field(
        default="clamped", description="How references are cut: clamped (public code) or trimmed (paper)."
    )

    def looking(self) -> tuple[str, ...]:
        """Return the names of all encoders."""
        return (*self.pictures, *self.faces)

    def encoders(self, tag: str | None) -> tuple[str, ...]:
        """Return which encoders tell a character with a tag (section I: faces of realistic humans only)."""
        return self.faces if tag == "realistic_human" else self.pictures


class PictureSettings(VisionSettings):
    """Who looks at whole pictures; null: nobody does."""

    style: str | None = Field(default=None, description="Encoder of style.")
    aesthetic: str | None = Field(default=None, description="Predictor of the aesthetic score.")
    inception: str | None = Field(default=None, description="Predictor of class probabilities.")
    clip: str | None = Field(default=None, description="Encoder of pictures and texts, for the CLIP score.")
    more: dict[str, str] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="What further metrics need of pictures -> its encoder or predictor.",
    )

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        named = (self.style, self.aesthetic, self.inception, self.clip, *self.more.values())
        return tuple(name for name in named if name is not None)


class MatchSettings(Own):
    """Which crop is which character, for the judges of individual actions."""

    least: None = Field(default=None, description="Of older runs: every pair can be a match.")
    whole: bool = Field(
        default=False, description="Show the whole picture for everybody on stage: rehearsals alone do that."
    )


class ViewSettings(ImageSettings):
    """How pictures and crops are encoded for judges."""

    max_side: int | None = Field(
        default=768, ge=16, le=8192, description="Longer side in pixels at most; null keeps the size."
    )
    wanted: bool = Field(default=False, description="Whether there are judges.")


class AlignmentSettings(JudgeSettings):
    """Who judges the alignment of pictures with their script, and of what."""

    dimensions: tuple[Dimension, ...] = Field(default=("scene", "shot", "interaction", "action"))
    interaction_from: int = Field(
        default=2, ge=0, le=3, description="Interaction is asked of shots with so many characters or more."
    )

    @field_validator("dimensions")
    @classmethod
    def _in_order(cls, value: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
        return tuple(sorted(value, key=DIMENSIONS.index))


def models_needed(names: Collection[str], dimensions: Collection[str] = DIMENSIONS) -> frozenset[Need]:
    """Return the models that some metrics need; judges need crops for actions alone."""
    return frozenset(
        need
        for metric in metrics(names)
        if not metric.judged or metric.name in dimensions
        for need in metric.needs
    )


def check_needs(config: RunConfig, names: Collection[str]) -> None:
    """Check that every model is registered, with its libraries and device here, and that somebody judges.

    Loads no weights.
    """
    missing = missing_libraries(config)
    asking = config.own("judge_alignment", AlignmentSettings)
    judged = {name for name in names if any(metric.judged for metric in metrics([name]))}
    lacks_judge = bool(judged) and not asking.judges
    if missing:
        listed = [*missing, *(["a judge for alignment (--judge)"] if lacks_judge else [])]
        raise MissingRequirement(
            "--metrics", what=f"{', '.join(names)} cannot be computed here. Missing: {'; '.join(listed)}",
            fix='pip install "fabula[metrics]", or choose others with --metrics',
        )  # fmt: skip
    if lacks_judge:
        raise ConfigError(
            "--judge", what="alignment is judged by a model, and none is named",
            fix="name models with --judge, or choose metrics without alignment: --metrics"
            f" {','.join(name for name in names if name not in judged) or 'cids'}",
        )  # fmt: skip
    check_places(config)
