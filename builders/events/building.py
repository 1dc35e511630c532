"""The StoryEval suite builder: event prompts with classes, from people's seeds, real videos and a model."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.estimate import CallPlan, plan_calls
from ...engine.execute import execute
from ...engine.progress import Reporter
from ...engine.report import RunReport
from ...engine.running import RunKind
from ..drafting import Drafting
from ..spending import tell_plan, without_models
from .options import SuiteOptions
from .pipeline import PIPELINE
from .requests import suite_request, take_results


def build_suite(
    seeds: Sequence[Path | str],
    out: Path | str,
    options: SuiteOptions | None = None,
    *,
    reporter: Reporter | None = None,
) -> RunReport:
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
    chosen = options if options is not None else SuiteOptions()
    if chosen.results is not None:
        take_results(seeds, out, chosen)
    request = suite_request(seeds, out, chosen)
    if reporter is not None:
        tell_plan(request, reporter)
    return execute(request, reporter)


def estimate_suite(
    seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions | None = None
) -> CallPlan:
    """Tell what :func:`build_suite` would ask of the model now, and about what that costs. Asks nothing.

    Raises:
        FabulaError: as :func:`build_suite`.
    """
    request = suite_request(seeds, out, options if options is not None else SuiteOptions())
    return plan_calls(request, without_models(request.config))


DRAFTING = Drafting(RunKind(PIPELINE, tell_plan), build_suite, SuiteOptions)
"""How suites of event prompts are drafted."""
