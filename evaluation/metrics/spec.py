"""What a metric is, as data."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Spec:
    """What a metric is.

    Attributes:
        name: of the metric.
        version: raised when its values change.
        level: what it is a value of: a shot, a story or a whole set.
        direction: whether higher or lower is better; ``none`` where neither is.
        range: its lowest and highest value; ``inf`` where there is none.
        pooling: how values of stories become one of the set.
        needs: what must be there before it: ``detections``, ``embeddings:ENCODER``, ``replies:PROMPT``.
    """

    name: str
    version: int
    level: Literal["shot", "story", "set"]
    direction: Literal["higher", "lower", "none"]
    range: tuple[float, float]
    pooling: Literal["mean of stories", "whole set"]
    needs: tuple[str, ...]
