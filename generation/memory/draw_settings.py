"""Settings of the stage that draws references: who draws, cuts out, chooses and checks."""

from typing import Self

from pydantic import Field, model_validator

from ...models.spec import ModelSettings, parse_spec
from ...models.vision.needs import VisionSettings
from ...schemas.values import is_unset
from .checks import CheckLimits


class DrawSettings(ModelSettings, VisionSettings):
    """Who draws, cuts out, chooses and checks; ``model`` is the generator."""

    viewer: str | None = Field(
        default=None, description="Chat model that sees pictures and chooses and checks them; null: rules do."
    )
    candidates: int = Field(default=5, ge=1, le=20, description="Pictures of a portrait to choose from.")
    retries: int = Field(default=2, ge=0, le=8, description="Further grounds for what does not pass.")
    verify: bool = Field(default=True, description="Whether a picture has to pass checks.")
    portrait: tuple[int, int] = Field(default=(768, 1024), description="Size of a character's picture.")
    square: tuple[int, int] = Field(default=(1024, 1024), description="Size of an object's picture.")
    limits: CheckLimits = Field(default=CheckLimits(), description="What the rules bear.")
    segmenter: str | None = Field(
        default=None, description="Model that cuts out, such as sam2.1-hiera-tiny; null: by the key's colour."
    )
    seed: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0,
                      description="Added to the seed of every picture.")  # fmt: skip
    licence: str | None = Field(
        default=None, exclude_if=is_unset, description="Under what the pictures may be used, if you know."
    )

    @model_validator(mode="after")
    def _each_does_what_it_is_for(self) -> Self:
        if self.model is not None and parse_spec(self.model).makes != "image":
            raise ValueError(f"{self.model} makes no pictures: the spec of such a model begins with image:")
        if self.viewer is not None and parse_spec(self.viewer).makes != "text":
            raise ValueError(f"{self.viewer} answers no questions: a chat model that sees pictures is needed")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that are asked."""
        named = (self.model, None if self.model is None else self.viewer)
        return tuple(dict.fromkeys(spec for spec in named if spec is not None))

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        return () if self.segmenter is None or self.model is None else (self.segmenter,)
