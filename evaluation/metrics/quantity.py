"""What a number of an evaluation is, whatever is evaluated: tables, pages and intervals read it here."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What a number is.

    Attributes:
        name: of the number in files.
        version: raised when its values change.
        label: name for readers.
        direction: which end is better; ``none`` for a diagnostic, which is shown and not ranked.
        range: its lowest and highest value; ``inf`` where there is none.
    """

    name: str
    version: int = 1
    label: str
    direction: Literal["higher", "lower", "none"]
    range: tuple[float, float]

    @property
    def higher(self) -> bool | None:
        """Whether the higher value is the better one; None of a diagnostic."""
        return None if self.direction == "none" else self.direction == "higher"

    @property
    def better(self) -> Literal["low", "high"] | None:
        """Which end is the good one, as tables say it."""
        return None if self.higher is None else "high" if self.higher else "low"
