"""A number with what it stands on. A failure is never a number."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Own


class Score(Own):
    """One value of a metric: the value itself, or why there is none.

    ``numerator`` and ``denominator`` are kept so that scores of parts can be pooled by adding.
    """

    value: float | None = Field(description="The value; null exactly when status is not ok.")
    status: Literal["ok", "undefined", "failed"] = Field(description="Whether there is a value.")
    reason: str | None = Field(default=None, description="Why there is none.")
    numerator: float | None = Field(default=None, description="Sum over what was counted.")
    denominator: float | None = Field(default=None, description="How much was counted.")
    low: float | None = Field(default=None, description="Lower end of the 95 % interval.")
    high: float | None = Field(default=None, description="Upper end of the 95 % interval.")
    counts: dict[str, int] = Field(default_factory=dict, description="Coverage: how many of what went in.")

    @model_validator(mode="after")
    def _value_fits_status(self) -> "Score":
        if (self.value is None) == (self.status == "ok"):
            raise ValueError("a score has a value exactly when its status is ok")
        return self

    @classmethod
    def ratio(cls, numerator: float, denominator: float, why_undefined: str, **counts: int) -> "Score":
        """Return numerator / denominator, undefined where nothing was counted."""
        if denominator == 0:
            return cls(value=None, status="undefined", reason=why_undefined, counts=counts)
        value = numerator / denominator
        return cls(value=value, status="ok", numerator=numerator, denominator=denominator, counts=counts)
