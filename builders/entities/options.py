"""What may be chosen when videos become episodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class EntityOptions(RunOptions):
    """How to build episodes. What every run may choose comes as keywords.

    Attributes:
        detections: file of people that you found yourself, used instead of detectors; see docs/identities.md.
        planner: who writes, in every stage: ``rules`` or ``model`` [as set, else rules].
        model: the model that looks at frames and writes, such as ``google:gemini-2.5-flash``; implies the
            planner ``model``.
        limit: only the first so many videos.
        items: only this video, by id.
    """

    detections: Path | None = None
    planner: str | None = None
    model: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
