"""A kind of run as a value, and going on with one of it.

What a run will have cost when it is done: the estimate made before it, corrected by what it costs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import BelowThreshold, ConfigError
from .batches.books import Batching
from .config import models_of
from .estimate import CallPlan
from .execute import Options, RunRequest, execute, last_limit, last_stage_costs
from .hooks import Event, Reporter
from .manifest import EDITS, read_manifest
from .manifest import NAME as MANIFEST
from .pipeline import Pipeline, load_pipeline, prompt_hashes
from .status import NAME as REPORT
from .status import RunReport, read_report


@dataclass(slots=True)
class Forecast:
    """The expected cost of a run, from its plan and from how it goes.

    A stage that is under way is expected to go on as it has begun. Stages that have not begun are expected to
    cost what was planned, times what those before them cost by what was planned for them.
    """

    planned: dict[str, float]  # stage -> USD expected before the run, in the order of the stages
    # stage -> USD that it has cost, or that it is expected to have cost at its end
    cost: dict[str, float] = field(default_factory=dict)
    left: dict[str, float] = field(default_factory=dict)  # what of these is still to come

    def expect(self, stage: str, before: float, spent: float, projected: float) -> dict[str, float] | None:
        """Return the USD expected in all, and the factor for what has not begun; None without a plan.

        ``before``: USD that the run has spent before this stage, or beside it. ``spent``: in all.
        ``projected``: at the end of this stage, if nothing came of others.
        """
        if stage not in self.planned:
            return None
        self.cost[stage], self.left[stage] = projected - before, projected - spent
        known = sum(self.planned[name] for name in self.cost)
        factor = sum(self.cost.values()) / known if known > 0 else 1.0
        later = sum(usd for name, usd in self.planned.items() if name not in self.cost)
        expected = spent + sum(self.left.values()) + factor * later
        return {"expected": round(expected, 6), "factor": round(factor, 4)}


class Forecasting:
    """A reporter that adds to the progress of stages what the whole run is expected to cost."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._forecast = Forecast({})

    def emit(self, event: Event) -> None:
        if event.kind == "plan":
            self._forecast = Forecast(dict(event.data.get("stages") or {}))
        elif event.kind == "progress" and event.stage is not None and "before" in event.data:
            event = replace(event, data={**event.data, **self._expected(event.stage, event.data)})
        self._reporter.emit(event)

    def close(self) -> None:
        """Leave the display in order."""
        self._reporter.close()

    def _expected(self, stage: str, data: Mapping[str, Any]) -> dict[str, float]:
        return self._forecast.expect(stage, data["before"], data["spent"], data["projected"]) or {}


@dataclass(frozen=True, slots=True)
class RunKind:
    """What executes the runs of a kind."""

    pipeline: Pipeline  # its stages
    # tells a reporter how many calls of models a request makes, and about what they cost
    tell: Callable[[RunRequest, Reporter], None]
    # what its folder is given once it was executed, besides the outputs of the pipeline
    afterwards: Callable[[Path], object] | None = None
    runs: Callable[[RunRequest, Reporter | None], RunReport] = execute  # executes a request
    # tells what a request would ask of models. Where it is there, a run that was begun with other prompts
    # keeps what it holds and asks nobody, unless the request upgrades it.
    plan: Callable[[RunRequest], CallPlan] | None = None

    def make(self, request: RunRequest, reporter: Reporter | None = None) -> RunReport:
        """Execute a request, after the reporter was told how many calls of models it makes."""
        if (kept := self.kept(request, reporter)) is not None:
            return kept
        if reporter is not None:
            reporter = Forecasting(reporter)
            self.tell(request, reporter)
        return self.execute(request, reporter)

    def kept(self, request: RunRequest, reporter: Reporter | None) -> RunReport | None:
        """Return the report of a run begun with other prompts that is not to be upgraded, else None."""
        if self.plan is None or request.options.upgrade or not (gone := changed_prompts(request)):
            return None
        return _kept(request, gone, self.plan(request), reporter)

    def execute(self, request: RunRequest, reporter: Reporter | None = None) -> RunReport:
        """Execute a request, and give its folder what belongs there afterwards."""
        try:
            report = self.runs(request, reporter)
        except BelowThreshold:
            self._finish(request)  # it says best why so little is left
            raise
        self._finish(request)
        return report

    def _finish(self, request: RunRequest) -> None:
        if self.afterwards is not None:
            self.afterwards(request.folder)


def changed_prompts(request: RunRequest) -> tuple[str, ...]:
    """Return the prompts that a run was begun to ask models with and that are gone or others now, sorted."""
    if not request.config.models or not (Path(request.folder) / MANIFEST).exists():
        return ()
    stages = load_pipeline(request.pipeline).stages
    unasked = {name for stage in stages for name in stage.spec.prompts}
    now: dict[str, str] = {}
    for stage in stages:
        now |= prompt_hashes(stage.spec, asks=bool(models_of(request.config.stages[stage.name])))
    begun = read_manifest(request.folder).prompts
    return tuple(sorted(name for name in begun if name not in unasked and begun[name] != now.get(name)))


def _kept(
    request: RunRequest, outdated: Sequence[str], plan: CallPlan, reporter: Reporter | None
) -> RunReport:
    """Tell what the prompts of now would ask, and return the report of the run as it stands."""
    cost = "an unknown price" if plan.cost is None else f"about {plan.cost:.2f} USD"
    names = ", ".join(outdated[:4]) + (f" and {len(outdated) - 4} more" if len(outdated) > 4 else "")
    asks = f"drafting anew would take about {plan.calls} calls at {cost}"
    what = f"the run was begun with other prompts ({names})"
    path = Path(request.folder) / REPORT
    if not path.exists():
        raise ConfigError(
            str(request.folder), what=f"{what} and not finished; {asks}",
            fix="add --upgrade to draft with the prompts of now, or go on with the version that began it",
        )  # fmt: skip
    if reporter is not None:
        message = f"{what}: it keeps its drafts and asks nothing; {asks}, with --upgrade"
        if (Path(request.folder) / EDITS).exists():
            message += "; corrections that were made since the last build are not applied before that"
        reporter.emit(Event("warning", data={"message": message}))
    report = read_report(Path(request.folder))
    stages = tuple(replace(stage, reused=stage.reused + stage.ran, ran=0) for stage in report.stages)
    return replace(report, stages=stages)


@dataclass(frozen=True, slots=True)
class Again:
    """How to go on with a run."""

    retry_failed: bool = False  # run failed items again, and ask once more what got no usable reply
    workers: int | None = None  # worker processes; None for the settings' number, else one per core
    # USD that the run may cost in all, what it has cost included; None for the limit that it was last given,
    # if any
    max_cost: float | None = None
    # where sources are that have moved: the files and folders themselves, or a folder that holds them; they
    # are known by their content
    sources: tuple[Path, ...] = ()
    batching: Batching = field(default_factory=Batching)  # how requests to models go out in batches
    # this host's share of the models' limits per minute; None for that of the settings
    limit_share: float | None = None
    # the same for stages, by stage; those that are not named keep their last limit
    stage_costs: Mapping[str, float] = field(default_factory=dict)
    pool: str = "local"  # where stages run that ask no model, ``local`` or ``ray``


def continue_as(kind: RunKind, run: Path, again: Again, reporter: Reporter | None = None) -> RunReport:
    """Execute a run again with the sources and settings that it was last made with."""
    manifest, folder = read_manifest(run), Path(run).absolute()
    limit = last_limit(folder) if again.max_cost is None else again.max_cost
    options = Options(
        workers=again.workers, retry_failed=again.retry_failed, max_cost=limit, batching=again.batching,
        limit_share=again.limit_share, stage_costs={**last_stage_costs(folder), **again.stage_costs},
        shard=manifest.shard, pool=again.pool,
    )  # fmt: skip
    config = manifest.config(load_pipeline(kind.pipeline))
    listed = manifest.source_list(folder, again.sources)
    request = RunRequest(run, kind.pipeline, config, listed, options=options, complete=True)
    return kind.make(request, reporter)
