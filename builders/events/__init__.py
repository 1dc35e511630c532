"""The StoryEval suite builder: event prompts with classes, from people's seeds, real videos and a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import SuiteOptions

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["SuiteOptions", "build_suite", "estimate_suite"]


def build_suite(
    seeds: Sequence[Path | str],
    out: Path | str,
    options: SuiteOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build a prompt suite from seeds; an existing run folder is continued.

    Args:
        seeds: JSONL files, one seed a line; see :class:`.settings.Seed`.
        out: the run folder; ``all_prompts.json`` is written there.
        options: how to build; by default without a model.
        reporter: takes the progress, and before anything is paid for what it is about to cost.

    Raises:
        FabulaError: a seed, a setting, a model or the folder is wrong, too few prompts were made, the cost
            limit was reached, or the user stopped it; see :mod:`fabula.errors`.
    """
    from ...engine.execute import execute
    from ..spending import tell_plan
    from .requests import suite_request, take_results

    chosen = options if options is not None else SuiteOptions()
    if chosen.results is not None:
        take_results(seeds, out, chosen)
    request = suite_request(seeds, out, chosen)
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


def estimate_suite(
    seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions | None = None
) -> "CallPlan":
    """Tell what :func:`build_suite` would ask of the model now, and about what that costs. Asks nothing.

    Raises:
        FabulaError: as :func:`build_suite`.
    """
    from ...engine.estimate import plan_calls
    from ..spending import without_models
    from .requests import suite_request

    request = suite_request(seeds, out, options if options is not None else SuiteOptions())
    return plan_calls(request, without_models(request.config))
