"""How stories become KathaBench records: what may be chosen, and what that asks of the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ...engine.execute import RunRequest, Source
from ...engine.pipeline import stages_through
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ..drafting import Drafting, DraftOptions, estimate, listed, planner_texts, tell_plan
from .choosing.choose_stories import execute_told
from .pending_edits import EDITING
from .pipeline import PIPELINE


@dataclass(frozen=True, slots=True)
class BuildOptions(DraftOptions):
    """How to build. What every run may choose comes as keywords.

    Attributes:
        records: JSONL of hand-written records for some of the stories.
        answers: JSONL of answers that people gave: ``story_id``, ``question_id``, ``answer``, ``who``.
        verifier: the model that checks the drafts, or ``none`` [the one that drafts].
        stage: stop after this stage.
        balance: choose so many stories of a larger pool, towards the quotas of the paper or of
            ``choose_stories``.
        keep_unfit: keep stories that contiguous scenes cannot tell, marked for review.
    """

    records: Path | None = None
    answers: Path | None = None
    verifier: str | None = None
    stage: str | None = None
    balance: Annotated[int | None, Sets("choose_stories.stories")] = None
    keep_unfit: Annotated[bool | None, Sets("draft_scenes.keep_unfit")] = None


def build_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: BuildOptions
) -> RunRequest:
    """Return what the engine is to execute."""
    beside = [("records", options.records), ("answers", options.answers)]
    return options.drafting(
        PIPELINE,
        out,
        [
            *listed(sources, "stories", "stories"),
            *(Source(role, Path(path)) for role, path in beside if path is not None),
        ],
        planner_texts(PIPELINE, options, options.verifier),
        stages_through(PIPELINE, options.stage) if options.stage else (),
    )


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, runs=execute_told, plan=estimate),
    build_request,
    BuildOptions,
    EDITING,
    of_stories=True,
)
"""How KathaBench records are drafted."""
build_katha = DRAFTING.build
