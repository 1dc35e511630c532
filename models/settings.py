"""Settings of a stage that asks a language model."""

from typing import ClassVar

from pydantic import Field

from ..schemas.base import Own

ATTEMPT = 1_000_000
"""Between the sample numbers of two attempts at the same question: no setting and no vote reaches so far."""


class ModelSettings(Own):
    """The part of a stage's settings that says which model it asks, and how.

    A stage whose settings name no model (:meth:`models` is empty) runs without one.
    """

    model: str | None = Field(default=None, description="Model spec, such as openai:gpt-4.1-mini.")
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of a reply; by default what the prompt says."
    )
    max_input_tokens: int = Field(
        default=100_000, ge=1, description="A request estimated to be longer is not sent; the item fails."
    )
    sample: int = Field(
        default=0, ge=0, lt=ATTEMPT, description="Which answer to take; a higher number asks again."
    )

    keeps_unanswered: ClassVar[bool] = False
    """Whether the stage makes its item also where questions got no usable answer, and keeps these."""

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks."""
        return () if self.model is None else (self.model,)
