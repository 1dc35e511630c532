"""Telling what a build is about to cost, before it costs anything."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ..engine.calls import model_uses
from ..engine.config import RunConfig, models_of
from ..engine.estimate import CallPlan, plan_calls
from ..engine.execute import RunRequest, execute
from ..engine.journal import NAME as JOURNAL
from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import read_manifest
from ..engine.pipeline import load_pipeline
from ..engine.progress import Event
from ..engine.status import NAME as REPORT
from ..engine.status import read_report
from ..errors import BelowThreshold
from ..models.spec import ModelSettings
from ..schemas.values import Own
from .step import PlannerSettings

if TYPE_CHECKING:
    from ..engine.progress import Reporter


REHEARSED = 20
"""Stories that are rehearsed to tell what a build will cost; ``--dry-run`` rehearses all."""


def without_models(config: RunConfig, planner: Literal["rules", "rehearsal"] = "rehearsal") -> RunConfig:
    """Return settings under which nobody is asked."""
    stages = {name: _without_model(settings, planner) for name, settings in config.stages.items()}
    return replace(config, stages=stages, models={})


def estimate(request: RunRequest) -> CallPlan:
    """Tell what a run would ask of models now, and about what that costs. Asks nothing."""
    return plan_calls(request, without_models(request.config))


def _without_model(settings: Own, planner: str) -> Own:
    if isinstance(settings, PlannerSettings):
        drafts = settings.planner == "model" and settings.models()
        return settings.model_copy(update={"planner": planner if drafts else "rules"})
    if isinstance(settings, ModelSettings):
        return settings.model_copy(update={"model": None})
    return settings


def tell_plan(
    request: RunRequest,
    reporter: "Reporter",
    stand_in: Callable[[RunConfig], RunConfig] = without_models,
    sample: int | None = REHEARSED,
    *,
    use_known: bool = False,
    by_rule: Callable[[], Mapping[str, int]] | None = None,
) -> None:
    """Tell how many calls a new run makes and about what they cost; what it cost so far where one goes on.

    ``sample``: how many items are rehearsed, and the rest taken to be like them; None for all.
    """
    if not request.config.models or _is_finished(request):
        return
    journal, limit = request.folder / JOURNAL, request.options.max_cost
    data: dict[str, object] = {} if limit is None else {"max_cost": limit}
    uses = model_uses(journal) if journal.exists() else ()
    if uses:
        data["answered"] = sum(use.calls for use in uses)
        uncertain = math.fsum(use.uncertain_cost for use in uses)
        data["uncertain"] = uncertain
        data["spent"] = math.fsum(use.cost for use in uses) + uncertain
        data["unpriced"] = sum(use.unpriced for use in uses)
    else:
        plan = plan_calls(request, stand_in(request.config), sample=sample, use_known=use_known)
        if by_rule is not None and plan.share < 1:
            plan = plan.with_calls(by_rule())
        data |= {"calls": plan.calls, "cost": plan.cost, "stages": plan.stage_costs()}
    reporter.emit(Event("plan", data=data))


def tell_added(request: RunRequest, added: Sequence[str], reporter: "Reporter") -> None:
    """Tell how many calls the new stories of a run will make and about what they cost."""
    if not request.config.models or not added:
        return
    some = tuple(added[:REHEARSED])
    options = replace(request.options, items=some, workers=0)
    plan = plan_calls(replace(request, options=options), without_models(request.config))
    share = len(some) / len(added)
    cost = None if plan.cost is None else plan.cost / share
    data: dict[str, object] = {"calls": round(plan.calls / share), "cost": cost}
    if options.max_cost is not None:
        data["max_cost"] = options.max_cost
    reporter.emit(Event("plan", data=data))


def _is_finished(request: RunRequest) -> bool:
    """Whether the run was finished with these settings; a changed source is seen by the engine alone."""
    folder = request.folder
    if not (folder / MANIFEST).exists() or not (folder / REPORT).exists() or request.options.retry_failed:
        return False
    manifest, report = read_manifest(folder), read_report(folder)
    versions = {stage.name: stage.version for stage in manifest.stages}
    same = manifest.settings == request.config.as_json() and versions == {
        stage.name: stage.spec.version for stage in load_pipeline(request.pipeline).stages
    }
    return same and not report.totals["pending"] and not report.totals["failed"]


def draft_sample(request: RunRequest, count: int, reporter: "Reporter | None") -> None:
    """Run the stages that ask models, and those before them, for the first stories of a run.

    Nothing behind them runs: the split of a story must not depend on whether there was a sample.
    """
    names = load_pipeline(request.pipeline).names()
    asking = [name for name in names if models_of(request.config.stages[name])]
    if not asking:
        return
    stages = names[: names.index(asking[-1]) + 1]
    limit = count if request.options.limit is None else min(count, request.options.limit)
    try:
        options = replace(request.options, limit=limit, stages=stages, retry_failed=False)
        execute(replace(request, options=options), reporter)
    except BelowThreshold:
        return  # what the sample shows of failures is in its report; an estimate can be made all the same
