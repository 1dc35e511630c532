"""The KathaBench builder: stories in, a run of drafted records out."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import execute
from ...engine.progress import Reporter
from ...engine.report import RunReport
from ...engine.running import RunKind
from ..drafting import Drafting
from ..spending import draft_sample, tell_plan, without_models
from .options import BuildOptions
from .pending_edits import EDITING
from .pipeline import PIPELINE
from .requests import build_request


def build_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BuildOptions | None = None,
    *,
    reporter: Reporter | None = None,
) -> RunReport:
    """Build KathaBench records from stories; an existing run folder is continued.

    Args:
        sources: JSONL or CSV files, or folders of ``.txt`` and ``.md`` files.
        out: the run folder.
        options: how to build; by default the rules planner with its default settings.
        reporter: takes the progress, and before anything is paid for what it is about to cost; none by
            default.

    Returns:
        What was made, rejected and failed, also written as ``report.json``.

    Raises:
        FabulaError: a source, a setting, a model or the folder is wrong, too few stories were made, the
            cost limit was reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    request = build_request(sources, out, options if options is not None else BuildOptions())
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


def estimate_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BuildOptions | None = None,
    *,
    sample: int = 0,
    reporter: Reporter | None = None,
) -> CallPlan:
    """Tell what :func:`build_katha` would ask of models now, and about what that costs.

    Args:
        sources: as for :func:`build_katha`.
        out: the run folder; what it holds already is not counted again.
        options: as for :func:`build_katha`.
        sample: so many stories are drafted for real first, at their cost and kept in the run, so that the
            estimate can go by them; 0 asks nothing at all and writes nothing.
        reporter: takes the progress of the sample.

    Raises:
        FabulaError: as :func:`build_katha`.
    """
    request = build_request(sources, out, options if options is not None else BuildOptions())
    if sample:
        draft_sample(request, sample, reporter)
    return plan_calls(request, without_models(request.config))


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan),
    build_katha,
    BuildOptions,
    EDITING,
    one_story=lambda stories, run, **chosen: build_request(stories, run, BuildOptions(**chosen)),
)
"""How KathaBench records are drafted."""
