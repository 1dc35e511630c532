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
        planner: who drafts, for every stage that a planner drafts for: ``rules``, which needs neither model
            nor network, or ``model``; None for the settings' own, which are ``rules`` by default.
        model: spec of the model that drafts, such as ``openai:gpt-4.1-mini``; implies the planner ``model``.
        verifier: spec of the model that checks the drafts; by default the one that drafts.
        limit: only the first so many stories.
        items: only these story ids.
        stage: stop after this stage.
    """

    records: Path | None = None
    planner: str | None = None
    model: str | None = None
    verifier: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
    stage: str | None = None
