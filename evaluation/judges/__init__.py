"""Judges: evidence packets, questions to models, and the archive of their replies."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import EvaluateOptions

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["EvaluateOptions", "estimate_evaluation", "evaluate_katha"]


def evaluate_katha(
    release: Path | str,
    outputs: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: EvaluateOptions,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Have judges answer the questions of a release about generated storyboards; a run is continued.

    Where it is stopped, ``judgements.jsonl`` holds what was answered so far, and ``evaluation.json`` says
    what it lacks.

    Args:
        release: the release folder.
        outputs: a folder of generated storyboards for each method.
        out: the run folder; ``judgements.jsonl`` and ``evaluation.json`` are written there.
        options: who judges, and what.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: the release, the outputs, a setting, a model or the folder is wrong, the cost limit
            was reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    from ..running import check_request, run_evaluation
    from .requests import evaluation_request
    from .spending import tell_judging

    request = evaluation_request(release, _listed(outputs), out, options)
    check_request(request)
    if reporter is not None:
        tell_judging(request, reporter)
    return run_evaluation(request, reporter, replace=options.replace)


def estimate_evaluation(
    release: Path | str, outputs: Sequence[Path | str] | Path | str, out: Path | str, options: EvaluateOptions
) -> "CallPlan":
    """Tell what :func:`evaluate_katha` would ask of judges now, and about what that costs. Asks nothing.

    Raises:
        FabulaError: as :func:`evaluate_katha`.
    """
    from ...engine.estimate import plan_calls
    from .requests import evaluation_request
    from .spending import without_judges

    request = evaluation_request(release, _listed(outputs), out, options)
    return plan_calls(request, without_judges(request.config))


def _listed(outputs: Sequence[Path | str] | Path | str) -> list[Path | str]:
    return [outputs] if isinstance(outputs, str | Path) else list(outputs)
