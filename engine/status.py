"""``fabula run status``: how far each stage of a run is, and what would run again and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .calls import ModelUse, model_uses
from .lock import holder
from .manifest import read_manifest
from .pipeline import Pipeline
from .survey import Survey, surveyed


@dataclass(frozen=True, slots=True)
class StageStatus:
    """Where a stage stands. ``stale`` results exist but no longer count; ``pending`` ones never existed.

    ``reasons`` counts, for each reason, the items that are stale or pending because of it.
    """

    name: str
    version: int
    made: int
    rejected: int
    failed: int
    pending: int
    stale: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Status:
    """Where a run stands.

    Attributes:
        totals: items ``made``, ``rejected``, ``failed``, ``pending`` and ``stale``.
        stages: one entry per stage, in order.
        holder: the process that works on the run: ``pid``, ``host``, ``since``; None if there is none.
        notes: remarks for people.
        explained: whether the reasons are wanted.
        models: what each stage used of each model so far.
        rejected: stage -> code -> how many items it rejected.
        added: name and time of each source that was added to the run after it was made, in order.
    """

    totals: Mapping[str, int]
    stages: tuple[StageStatus, ...]
    holder: Mapping[str, str | int] | None
    notes: tuple[str, ...]
    explained: bool
    models: tuple[ModelUse, ...] = ()
    rejected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    added: tuple[Mapping[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the status as plain JSON."""
        stages = [asdict(stage) for stage in self.stages]
        for stage in stages:
            if not self.explained:
                del stage["reasons"]
        return {
            "totals": dict(self.totals),
            "stages": stages,
            "holder": None if self.holder is None else dict(self.holder),
            "notes": list(self.notes),
            "models": [asdict(use) for use in self.models],
            "rejected": {stage: dict(codes) for stage, codes in self.rejected.items()},
            "added": [dict(source) for source in self.added],
        }

    def lines(self) -> list[str]:
        """Return the status as lines for people."""
        names = ("made", "rejected", "failed", "pending", "stale")
        width = max((len(stage.name) for stage in self.stages), default=0)
        lines = [f"{'':{width}}  " + "  ".join(f"{name:>8}" for name in names)]
        for stage in self.stages:
            counts = "  ".join(f"{getattr(stage, name):>8}" for name in names)
            lines.append(f"{stage.name:{width}}  {counts}")
            if self.explained:
                lines.extend(f"{'':{width}}    {count} {reason}" for reason, count in stage.reasons.items())
        lines.append("items: " + ", ".join(f"{self.totals[name]} {name}" for name in names))
        for name, codes in self.rejected.items():
            counted = ", ".join(f"{count} {code}" for code, count in codes.items())
            lines.append(f"rejected by {name}: {counted}")
        lines.extend(f"extended by {source['name']} at {source['added_at']}" for source in self.added)
        lines.extend(use.line() for use in self.models)
        lines.extend(self.notes)
        if self.holder is not None:
            who = f"process {self.holder['pid']} on {self.holder['host']}"
            lines.append(f"{who} is working on it since {self.holder['since']}")
        return lines


def run_status(folder: Path, pipeline: Pipeline, explain: bool = False, sets: Sequence[str] = ()) -> Status:
    """Return where a run stands. Reads only; works while another process works on the run.

    Args:
        folder: the run folder.
        pipeline: its stages.
        explain: whether the lines for people say why results are stale.
        sets: settings to be taken as changed, ``stage.key=value`` each: what would run again?

    Raises:
        RunError: the folder is not a run of this pipeline, or its journal cannot be read.
    """
    with surveyed(folder, pipeline, sets=sets) as survey:
        return Status(
            totals=_totals(survey),
            stages=tuple(
                StageStatus(
                    name=stage.name,
                    version=stage.spec.version,
                    made=counts.made,
                    rejected=counts.rejected,
                    failed=counts.failed,
                    pending=counts.pending,
                    stale=counts.stale,
                    reasons=dict(sorted(survey.reasons[stage.name].items())),
                )
                for stage in survey.loaded.stages
                for counts in (survey.counts[stage.name],)
            ),
            holder=holder(Path(folder)),
            notes=tuple(survey.notes),
            explained=explain,
            models=model_uses(survey.journal.path),
            rejected=_rejected(survey),
            added=tuple(
                {"name": entry.name, "added_at": entry.added_at}
                for entry in read_manifest(folder).sources
                if entry.added_at is not None
            ),
        )


def _rejected(survey: Survey) -> dict[str, dict[str, int]]:
    stops = [stop for stop in survey.items.stops.values() if stop.status == "rejected"]
    found: dict[str, dict[str, int]] = {}
    for stage in survey.loaded.names():
        codes = Counter(str(stop.code) for stop in stops if stop.stage == stage)
        if codes:
            found[stage] = dict(sorted(codes.items()))
    return found


def _totals(survey: Survey) -> dict[str, int]:
    totals = {"made": len(survey.items.live), "rejected": 0, "failed": 0, "pending": 0, "stale": 0}
    for stop in survey.items.stops.values():
        totals[stop.status] += 1
    return totals
