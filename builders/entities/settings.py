"""Settings of the stages that write scripts."""

from pydantic import Field, model_validator

from .planner import PlannerSettings

APART = 0.5
"""Distance of colours from which on rules tell places apart."""
_LONG = Field(
    default=400_000, ge=1, description="A request estimated to be longer is not sent; the item fails."
)


class ListSettings(PlannerSettings):
    """Settings of the stage that lists entities."""

    max_input_tokens: int = _LONG
    chunk: int = Field(default=12, ge=2, le=100, description="Shots that a model is shown at once.")
    overlap: int = Field(default=2, ge=0, le=50, description="Shots that a chunk shares with the one before.")
    crops: int = Field(default=2, ge=0, le=8, description="Crops of each person that a model is shown.")
    apart: float = Field(
        default=APART, gt=0, le=1, description="Distance of colours from which on rules tell places apart."
    )

    @model_validator(mode="after")
    def _chunks_go_on(self) -> "ListSettings":
        if self.overlap >= self.chunk:
            raise ValueError("overlap must be smaller than chunk")
        return self


class MergeSettings(PlannerSettings):
    """Settings of the stage that merges entities."""

    max_input_tokens: int = _LONG
    at_once: int = Field(
        default=150, ge=10, le=2000, description="Local entities that a model is asked to merge at once."
    )
    verify: bool = Field(
        default=True, description="Whether a model looks for objects and locations in the frames again."
    )
    chunk: int = Field(default=12, ge=2, le=100, description="Shots whose frames it is shown at once for it.")


class TellSettings(PlannerSettings):
    """Settings of the stage that writes the script of a video."""

    at_once: int = Field(default=24, ge=1, le=200, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


class PolishSettings(PlannerSettings):
    """Settings of the stage that describes entities."""

    at_once: int = Field(default=12, ge=1, le=100, description="Entities that a model describes at once.")
    pictures: int = Field(default=1, ge=0, le=4, description="Pictures of each that it is shown.")


class EnrichSettings(PlannerSettings):
    """Settings of the stage that tells actions in full."""

    at_once: int = Field(default=8, ge=1, le=100, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


class VerifySettings(PlannerSettings):
    """Settings of the stage that verifies a script."""

    passes: int = Field(default=3, ge=1, le=10, description="Most passes through the script.")
    at_once: int = Field(default=8, ge=1, le=100, description="Shots that a model is asked about at once.")
    context: int = Field(default=2, ge=0, le=20, description="Shots before and after that it is shown.")
