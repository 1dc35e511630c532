"""What may be chosen when stories become KathaBench records."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class BuildOptions(RunOptions):
    """How to build. What every run may choose comes as keywords.

    Attributes:
        records: JSONL of hand-written records for some of the stories.
        planner: who drafts, in every stage: ``rules``, which needs neither model nor network, or ``model``
            [as set, else rules].
        model: the model that drafts, such as ``openai:gpt-4.1-mini`` or ``http://HOST/v1#NAME``; implies the
            planner ``model``.
        verifier: the model that checks the drafts [the one that drafts].
        limit: only the first so many stories.
        items: only this story id.
        stage: stop after this stage.
    """

    records: Path | None = None
    planner: str | None = None
    model: str | None = None
    verifier: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
    stage: str | None = None
