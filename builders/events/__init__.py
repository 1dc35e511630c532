"""The StoryEval suite builder: event prompts with classes, from people's seeds, real videos and a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["SuiteOptions", "build_suite", "estimate_suite"]


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """How to build a suite.

    Attributes:
        model: spec of the model that captions, writes and lists events; None: people's prompts alone.
        generate: prompts that the model is asked for; None for the settings' number, else none.
        most: most prompts of the suite; None for the settings' number, else all.
        models: settings of models by spec, as in the sections ``[models."SPEC"]`` of the settings file.
        max_cost: USD that the run may cost in all; None for no limit.
        reuse: other run folders; what models answered there is not asked again.
        config: settings file; ``fabula.toml`` of the working folder where it is there and none is named.
        settings: single settings, each as ``stage.key=value``; they go before everything else.
        workers: worker processes; None for the settings' number, else one per core.
        created_at: creation time of a new run, RFC 3339.
        retry_failed: run failed prompts again.
        results: method -> file name -> completion rate of judged videos; None for those that the run has, if
            it has any. They filter the prompts and say how hard each is.
        people: the same by people, for the filter that compares them with the judge.
    """

    model: str | None = None
    generate: int | None = None
    most: int | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_cost: float | None = None
    reuse: Sequence[Path | str] = ()
    config: Path | None = None
    settings: Sequence[str] = ()
    workers: int | None = None
    created_at: str | None = None
    retry_failed: bool = False
    results: Mapping[str, Mapping[str, float | None]] | None = None
    people: Mapping[str, Mapping[str, float | None]] | None = None


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
    from ..katha.spending import tell_plan
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
    from ..katha.spending import without_models
    from .requests import suite_request

    request = suite_request(seeds, out, options if options is not None else SuiteOptions())
    return plan_calls(request, without_models(request.config))
