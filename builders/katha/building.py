"""How stories become KathaBench records: what may be chosen, and what that asks of the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...engine.estimate import CallPlan
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import stages_through
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ...engine.status import RunReport
from ..drafting import Drafting, DraftOptions, listed, planner_texts
from ..spending import draft_sample, estimate, tell_plan
from .choosing.tell_quotas import execute_told
from .pending_edits import EDITING
from .pipeline import PIPELINE

if TYPE_CHECKING:
    from ...engine.progress import Reporter


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


def build_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BuildOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Build KathaBench records from stories; an existing run folder is continued.

    Returns:
        What was made, rejected and failed, also written as ``report.json``.
    """
    return DRAFTING.run.make(build_request(sources, out, options or BuildOptions()), reporter)


def estimate_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BuildOptions | None = None,
    *,
    sample: int = 0,
    reporter: "Reporter | None" = None,
) -> CallPlan:
    """Tell what :func:`build_katha` would ask of models now, and about what that costs."""
    request = build_request(sources, out, options or BuildOptions())
    if sample:
        draft_sample(request, sample, reporter)
    return estimate(request)


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, runs=execute_told, plan=estimate),
    build_katha,
    BuildOptions,
    EDITING,
    one_story=lambda stories, run, **chosen: build_request(stories, run, BuildOptions(**chosen)),
    estimate=estimate_katha,
)
"""How KathaBench records are drafted."""
