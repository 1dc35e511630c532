"""What may be chosen when stories become shot scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class ShotOptions(RunOptions):
    """How to build shot scripts. What every run may choose comes as keywords.

    Attributes:
        scripts: JSONL with what authors give about stories: labels and characters; see :mod:`.given`.
        shots: shots of every story; None for the settings' number, else by its length.
        languages: keys of the languages to write, ``en`` and ``ch``; None for the settings', else both.
        planner: who drafts, in every stage: ``rules`` or ``model``; None for the settings' own.
        model: spec of the model that drafts; implies the planner ``model``.
        limit: only the first so many stories.
        items: only these story ids.
    """

    scripts: Path | None = None
    shots: int | None = None
    languages: Sequence[str] | None = None
    planner: str | None = None
    model: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
