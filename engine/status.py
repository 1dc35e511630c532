"""``run status`` and ``run show``: how far each stage is, and what each read and wrote for one item."""

import difflib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..schemas.canonical import Json, canonical_text
from .batches.books import BatchStatus, batches_in, counts_line, counts_of
from .calls import ModelUse, calls_of, model_uses
from .codec import decode
from .edits import WHOLE, edits_of
from .journal import Journal
from .lock import holder
from .manifest import read_manifest
from .pipeline import Pipeline, Stage
from .survey import Passage, Survey, surveyed


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
    """Where a run stands."""

    totals: Mapping[str, int]  # items ``made``, ``rejected``, ``failed``, ``pending`` and ``stale``
    stages: tuple[StageStatus, ...]  # one entry per stage, in order
    # the process that works on the run: ``pid``, ``host``, ``since``; None if there is none
    holder: Mapping[str, str | int] | None
    notes: tuple[str, ...]  # remarks for people
    explained: bool  # whether the reasons are wanted
    models: tuple[ModelUse, ...] = ()  # what each stage used of each model so far
    # stage -> code -> how many items it rejected
    rejected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # name and time of each source that was added to the run after it was made, in order
    added: tuple[Mapping[str, str], ...] = ()
    batches: tuple[BatchStatus, ...] = ()  # the batches that its requests went out in, oldest first
    now: float = 0.0  # the time, in seconds since 1970, by which they have an age

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
            "batches": [
                {**batch.as_json(), "hours": round(batch.age(self.now), 3)} for batch in self.batches
            ],
            "batched": dict(counts_of(self.batches)),
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
        if self.explained and not any(stage.stale or stage.pending for stage in self.stages):
            but = " but the failed items, by `fabula run retry`" if self.totals["failed"] else ""
            lines.append(f"nothing would run again{but}")
        lines.append("items: " + ", ".join(f"{self.totals[name]} {name}" for name in names))
        for name, codes in self.rejected.items():
            counted = ", ".join(f"{count} {code}" for code, count in codes.items())
            lines.append(f"rejected by {name}: {counted}")
        lines.extend(f"extended by {source['name']} at {source['added_at']}" for source in self.added)
        lines.extend(use.line() for use in self.models)
        lines.extend(batch.line(self.now) for batch in self.batches)
        if len(self.batches) > 1:
            lines.append(counts_line(self.batches))
        lines.extend(self.notes)
        if self.holder is not None:
            who = f"process {self.holder['pid']} on {self.holder['host']}"
            lines.append(f"{who} is working on it since {self.holder['since']}")
        return lines


def run_status(folder: Path, pipeline: Pipeline, explain: bool = False, sets: Sequence[str] = ()) -> Status:
    """Return where a run stands. Reads only; works while another process works on the run."""
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
            batches=batches_in(survey.journal.path),
            now=time.time(),
            rejected=_rejected(survey),
            added=tuple(
                {"name": entry.name, "added_at": entry.added_at}
                for entry in read_manifest(folder).sources
                if entry.added_at is not None
            ),
        )


def _rejected(survey: Survey) -> dict[str, dict[str, int]]:
    codes: dict[str, Counter[str]] = {stage: Counter() for stage in survey.loaded.names()}
    for stop in survey.items.stops.values():
        if stop.status == "rejected":
            codes[stop.stage][str(stop.code)] += 1
    return {stage: dict(sorted(counted.items())) for stage, counted in codes.items() if counted}


def _totals(survey: Survey) -> dict[str, int]:
    totals = {"made": len(survey.items.live), "rejected": 0, "failed": 0, "pending": 0, "stale": 0}
    for stop in survey.items.stops.values():
        totals[stop.status] += 1
    return totals


_COMPARED = 1000  # ids that are compared at once with one that is not there
_SHOWN = 160  # characters of a value on a line for people


@dataclass(frozen=True, slots=True)
class StageView:
    """What one stage did with one item."""

    name: str  # the stage
    version: int  # its version now
    status: str  # ``made``, ``rejected``, ``failed``, ``stale``, ``pending``, or ``not reached``
    code: str | None  # code of a rejection or failure
    reason: str | None  # its reason; for a stale or pending result, why it is
    evidence: str | None  # what helps to understand a failure
    reads: Mapping[str, Json]  # the fields that the stage read
    writes: Mapping[str, Json]  # the fields that it made
    calls: tuple[Mapping[str, Json], ...] = ()  # what it asked models, and what they answered, raw


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item of a run, stage by stage, with the edits that were made to it."""

    id: str
    stages: tuple[StageView, ...]
    edits: tuple[Mapping[str, Json], ...]

    def field(self, name: str) -> Json:
        """Return a field of the item as the last stage that made it left it."""
        for stage in reversed(self.stages):
            if name in stage.writes:
                return stage.writes[name]
        raise KeyError(name)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the item as lines for people; long values are cut."""
        lines = [f"item {self.id}"]
        for stage in self.stages:
            code = f" ({stage.code})" if stage.code else ""
            reason = f": {stage.reason}" if stage.reason else ""
            lines.append(f"{stage.name}@{stage.version}: {stage.status}{code}{reason}")
            lines.extend(f"  read  {name} = {_short(value)}" for name, value in stage.reads.items())
            lines.extend(f"  asked {line}" for call in stage.calls for line in _call_lines(call))
            lines.extend(f"  wrote {name} = {_short(value)}" for name, value in stage.writes.items())
            if stage.evidence:
                lines.extend(f"  | {line}" for line in stage.evidence.rstrip().splitlines())
        for edit in self.edits:
            who, path, new = edit["who"], edit["path"], edit["new"]
            gone = path == WHOLE and new is None
            what = f"withdrawn by {who}" if gone else f"edit by {who} at {path}: {_short(new)}"
            lines.append(f"{what} ({edit['why']})")
        return lines


def show_item(folder: Path, pipeline: Pipeline, item_id: str) -> ItemView:
    """Return what each stage read, got and wrote for one item. Reads only."""
    with surveyed(folder, pipeline, watch=item_id) as survey:
        if not survey.passages:
            raise _unknown(Path(folder), survey, item_id)
        stages = tuple(_view(survey.journal, stage, survey.passages) for stage in survey.loaded.stages)
    return ItemView(item_id, stages, tuple(edit.as_json() for edit in edits_of(folder, item_id)))


def _view(journal: Journal, stage: Stage, passages: Mapping[str, Passage]) -> StageView:
    passage = passages.get(stage.name)
    if passage is None:
        return StageView(stage.name, stage.spec.version, "not reached", None, None, None, {}, {})
    head = passage.head
    writes = {} if head is None or head.status != "made" else decode(journal.blobs([head.seq])[head.seq])
    documents = {
        seq: decode(blob) for seq, blob in journal.blobs(seq for seq, _ in passage.reads.values()).items()
    }
    return StageView(
        name=stage.name,
        version=stage.spec.version,
        status=passage.status,
        code=None if head is None else head.code,
        reason="; ".join(passage.reasons) or (None if head is None else head.reason),
        evidence=None if head is None else journal.evidence(head.seq),
        reads={name: documents[seq][name] for name, (seq, _) in passage.reads.items()},
        writes=writes,
        calls=() if head is None else tuple(call.as_json() for call in calls_of(journal, head.key)),
    )


def _unknown(folder: Path, survey: Survey, item_id: str) -> RunError:
    known = chain(survey.items.live, survey.items.stops)
    close: list[str] = []
    first: list[str] = []
    while some := list(islice(known, _COMPARED)):
        first = sorted({*first, *some})[:3]
        close = difflib.get_close_matches(item_id, sorted({*close, *some}), n=3)
    close = close or first
    return RunError(
        str(folder), what=f"the run has no item {item_id}",
        fix=f"use an id such as {', '.join(close)}" if close else "build first: the run has no items",
    )  # fmt: skip


def _call_lines(call: Mapping[str, Any]) -> list[str]:
    """Return a call in two lines for people: the last message asked, and the reply."""
    parts = call["asked"]["messages"][-1]["parts"]
    asked = " ".join(part.get("text", "[picture]") for part in parts)
    reply, cost = call["reply"], call["cost"]
    paid = "price not known" if cost is None else f"{cost:.5f} USD"
    return [
        f"{call['model']}: {_short(asked)}",
        f"  got {reply['outcome']} ({paid}, attempts: {call['attempts']}): {_short(reply['text'])}",
    ]


def _short(value: Json) -> str:
    text = canonical_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
