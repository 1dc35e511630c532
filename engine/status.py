"""``run status`` and ``run show``: how far each stage is, and what each read and wrote for one item."""

import difflib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..errors import ConfigError, RunError
from ..pages.grid import Grid, Tabular
from ..schemas.canonical import Json, Plain, canonical_text, plain_fields, pretty_bytes, write_atomic
from ..schemas.plain_files import explaining, read_plain
from . import journal_file
from .batches.books import BatchStatus, batches_in, counts_line, counts_of
from .calls import (
    ON_THIS_MACHINE,
    ModelUse,
    PromptReplies,
    calls_of,
    model_uses,
    replies_by_prompt,
    rows_of,
    usd_text,
)
from .edits import WHOLE, edits_of
from .journal import NAME as JOURNAL
from .journal import Journal, decode
from .journal_file import unwritable
from .lock import holder
from .manifest import read_manifest
from .pipeline import Pipeline, Stage
from .stage import StageSpec
from .survey import Passage, Survey, surveyed
from .walk import Stop

STOPPED = 50
"""Most items that went no further that a status lists."""


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
    without: tuple[tuple[str, str | None], ...] = ()  # stage and code of what was made without an answer
    # stage -> code -> how many items it rejected
    rejected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # name and time of each source that was added to the run after it was made, in order
    added: tuple[Mapping[str, str], ...] = ()
    replies: tuple[PromptReplies, ...] = ()  # what the replies of each model to each prompt were
    batches: tuple[BatchStatus, ...] = ()  # the batches that its requests went out in, oldest first
    now: float = 0.0  # the time, in seconds since 1970, by which they have an age
    seconds: Mapping[str, float] = field(default_factory=dict)  # open models -> how long they were held
    # the first items that were rejected or failed, with stage and reason: for pages; ``report.json`` has all
    stopped: tuple[tuple[str, Stop], ...] = ()

    def as_json(self) -> dict[str, Any]:
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
            "replies": [asdict(replies) for replies in self.replies],
            "rejected": {stage: dict(codes) for stage, codes in self.rejected.items()},
            "without": [
                {"stage": stage, "code": code, "items": count}
                for (stage, code), count in sorted(Counter(self.without).items())
            ],
            "added": [dict(source) for source in self.added],
            "batches": [
                {**batch.as_json(), "hours": round(batch.age(self.now), 3)} for batch in self.batches
            ],
            "batched": dict(counts_of(self.batches)),
            **({"seconds": dict(self.seconds)} if self.seconds else {}),
        }

    def lines(self) -> list[str]:
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
        lines.extend(_without_lines(self.without))
        lines.extend(f"extended by {source['name']} at {source['added_at']}" for source in self.added)
        lines.extend(use.line() for use in self.models)
        lines.extend(f"{model}: {held / 3600:.2f} h on this machine" for model, held in self.seconds.items())
        lines.extend(replies.line() for replies in self.replies if replies.unusable)
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
            replies=replies_by_prompt(survey.journal.path),
            batches=batches_in(survey.journal.path),
            now=time.time(),
            seconds={
                name.removeprefix(ON_THIS_MACHINE): held
                for name, held in survey.journal.facts(ON_THIS_MACHINE)
            },
            stopped=tuple(
                islice(
                    (
                        (item, stop)
                        for item, stop in survey.items.stops.items()
                        if stop.status in ("rejected", "failed")
                    ),
                    STOPPED,
                )
            ),
            rejected=_rejected(survey),
            without=tuple((stop.stage, stop.code) for _, stop in survey.without),
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
class ItemView(Plain):
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
    fix = f"use an id such as {', '.join(close or first)}" if first else "build first: the run has no items"
    if first and not close:
        fix += "; if another version made the run, give its command again first: its items are made anew"
    return RunError(str(folder), what=f"the run has no item {item_id}", fix=fix)


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


# -- ``report.json``: how a run ended, with every item that was not made and the reason why

NAME = "report.json"
USED = ("calls", "attempts", "input_tokens", "output_tokens", "cost")
"""What a table of models tells of each."""

_MEANINGS = {
    "failed": "The stage could not do its work on the item.",
    "pending": "The stage has not been run on the item.",
}


def meaning(spec: StageSpec, status: str, code: str | None) -> str:
    """Return what an item's status and code mean, without a word about the item itself."""
    return spec.reject_codes[code or ""] if status == "rejected" else _MEANINGS[status]


@dataclass(frozen=True, slots=True)
class StageReport:
    """How many items a stage made, rejected and failed; how many of them it ran and how many it reused."""

    name: str
    version: int
    made: int
    rejected: int
    failed: int
    reused: int
    ran: int


@dataclass(frozen=True, slots=True, order=True)
class ItemReport:
    """One item that was not made."""

    id: str  # the item's id
    stage: str  # where it went no further
    status: str  # ``rejected``, ``failed`` or ``pending``
    code: str | None  # code of a rejection or failure
    reason: str | None  # why, in words that may quote the item
    meaning: str  # what status and code mean, in words that are the same for every item


@dataclass(frozen=True, slots=True)
class RunReport(Tabular):
    """How a run ended."""

    totals: Mapping[str, int]  # items ``made``, ``rejected``, ``failed`` and ``pending``
    stages: tuple[StageReport, ...]  # counts per stage, in order
    items: tuple[ItemReport, ...]  # every item that was not made, sorted by id
    # hash of ``run.json`` as it was when the outputs were settled; None when they were not, because stages
    # were left out
    manifest_sha256: str | None = None
    # name -> hash of the files that ``finish`` wrote, now or at an earlier time
    outputs: Mapping[str, str] = field(default_factory=dict)
    models: tuple[ModelUse, ...] = ()  # what each stage used of each model, over all the time of the run
    without: tuple[ItemReport, ...] = ()  # every item of which a stage made something without a usable answer

    @property
    def share(self) -> float:
        """Share of the items made among those made or failed.

        Without any of these it is 0 when every item that was tried was rejected, and 1 when none was tried.
        """
        return self.share_with(0)

    def share_with(self, underway: int) -> float:
        """Return the share when so many items, stopped by nothing but the end of the run, count as made."""
        made = self.totals["made"] + underway
        tried = made + self.totals["failed"]
        if tried:
            return made / tried
        return 0.0 if self.totals["rejected"] else 1.0

    def grids(self) -> Iterator[Grid]:
        """Yield the stages, the items that were not made, and what models were asked and cost."""
        counts = ("made", "rejected", "failed", "reused", "ran")
        rows = ((stage.name, *(getattr(stage, name) for name in counts)) for stage in self.stages)
        yield Grid("stages", "Stages", ("stage", *counts), tuple(rows), f"Items: {self._counts()}.")
        if self.items:
            columns = ("item", "stage", "status", "code", "reason")
            listed = ((item.id, item.stage, item.status, item.code, item.reason) for item in self.items)
            yield Grid("items", "Items that were not made", columns, tuple(listed), words=(1, 2, 3, 4))
        if self.models:
            rows = ((use.model, use.stage, *(getattr(use, name) for name in USED)) for use in self.models)
            yield Grid("models", "Models", ("model", "stage", *USED), tuple(rows), words=(1,))

    def _counts(self) -> str:
        return ", ".join(f"{self.totals[name]} {name}" for name in ("made", "rejected", "failed", "pending"))

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``report.json`` holds.

        Tokens of caches and what was made without an answer stand there only where there are some: reports
        without them stay as they were.
        """
        document = plain_fields(self)
        if not document["without"]:
            del document["without"]
        for use in document["models"]:
            for name in ("cached_tokens", "written_tokens"):
                if not use[name]:
                    del use[name]
        return document

    def lines(self) -> list[str]:
        ran = sum(stage.ran for stage in self.stages)
        reused = sum(stage.reused for stage in self.stages)
        lines = [f"{self._counts()}  ({ran} results computed, {reused} reused)"]
        groups = Counter((item.status, item.stage, item.code or "") for item in self.items)
        for (status, stage, code), count in sorted(groups.items()):
            first = next(
                item
                for item in self.items
                if (item.status, item.stage, item.code or "") == (status, stage, code)
            )
            name = f"{status} in {stage}" + (f" ({code})" if code else "")
            lines.append(f"  {count} {name}, such as {first.id}: {first.reason or 'no reason given'}")
        lines.extend(f"  {line}" for line in _without_lines((item.stage, item.code) for item in self.without))
        lines.extend(f"  {use.line()}" for use in self.models)
        return lines


def _without_lines(without: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for (stage, code), count in sorted(Counter(without).items()):
        yield (
            f"{count} made without an answer in {stage} ({code}), so incomplete;"
            " `fabula run retry RUN --failed` asks once more"
        )


def write_report(folder: Path, report: RunReport) -> None:
    """Write ``report.json``, whole or not at all."""
    path = folder / NAME
    try:
        write_atomic(path, [pretty_bytes(report.as_json())])
    except OSError as error:
        raise unwritable(path, error) from error


def read_report(folder: Path) -> RunReport:
    path = Path(folder) / NAME
    with explaining(
        path, "run the build again: it continues where it stopped",
        what="the report of the run cannot be read", kind=RunError,
    ):  # fmt: skip
        return TypeAdapter(RunReport).validate_json(read_plain(path, follow=True))


# -- ``run spend``: what a run has cost so far, by stage, model, prompt or item. Reads only

_FIRST = """
(SELECT request, sample, min(seq) AS seq FROM asks JOIN results ON results.key = asks.result
 GROUP BY request, sample) f USING (request, sample) LEFT JOIN results r ON r.seq = f.seq
"""
BY: Mapping[str, tuple[str, str, str]] = {
    "stage": ("c.stage", "", "s.stage"),
    "model": ("c.model", "", "s.model"),
    "prompt": ("{prompt}", "", "NULL"),
    "item": ("r.item", f"LEFT JOIN {_FIRST}", "NULL"),
}
"""What money is shown by -> what a call belongs to, the tables that say so, the same of a lost request."""
OTHERS = {
    "prompt": "not recorded",
    "item": "no result yet",
}
"""What calls belong to of which the journal does not say it."""
LOST = "without a reply"

_ANSWERED = """
SELECT {of}, sum(attempts > 0), coalesce(sum(CASE WHEN attempts > 0 THEN input_tokens END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN {cached_tokens} END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN {written_tokens} END), 0),
    coalesce(sum(CASE WHEN attempts > 0 THEN output_tokens END), 0), coalesce(exact_sum(cost), 0.0),
    sum(cost IS NULL AND attempts > 0)
FROM calls c {tables} GROUP BY 1
"""
_LOST = "SELECT {of}, count(*), coalesce(exact_sum(bound), 0.0) FROM sent s GROUP BY 1"


@dataclass(frozen=True, slots=True)
class Line:
    """What one stage, model, prompt or item has cost."""

    name: str  # of it; a prompt as ``id@version#hash``
    calls: int = 0  # answered calls
    input_tokens: int = 0  # as the service counted them
    cached_tokens: int = 0  # of these, those that the service had kept
    written_tokens: int = 0  # of these, those that it kept and charged for
    output_tokens: int = 0  # of the replies
    cost: float = 0.0  # USD of calls whose price is known
    unpriced: int = 0  # calls whose price is not
    lost: int = 0  # requests without a reply that may have been charged
    lost_cost: float = 0.0  # USD that those cost at most

    @property
    def most(self) -> float:
        """USD at most: what was charged, and what may have been."""
        return self.cost + self.lost_cost


@dataclass(frozen=True, slots=True)
class Spend:
    """What a run has cost."""

    by: str  # what the lines are: a key of :data:`BY`
    rows: tuple[Line, ...]  # the dearest first

    @property
    def spent(self) -> float:
        """USD in all, requests without a reply at the most that they cost."""
        return math.fsum(value for line in self.rows for value in (line.cost, line.lost_cost))

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "spent": self.spent, "rows": [asdict(line) for line in self.rows]}

    def lines(self) -> list[str]:
        width = max(len(self.by), 5, *(len(line.name) for line in self.rows)) if self.rows else 5
        row = f"{{:{width}}}  {{:>7}}  {{:>11}}  {{:>11}}  {{:>10}}  {{:>10}}  {{:>6}}".format
        lines = [row(self.by, "calls", "tokens in", "from cache", "tokens out", "USD", "share")]
        for line in self.rows:
            share = f"{line.most / self.spent:.1%}" if self.spent else "-"
            counts = (line.calls, line.input_tokens, line.cached_tokens, line.output_tokens)
            lines.append(row(line.name, *counts, usd_text(line.most, line.unpriced), share))
        lost, unpriced = (sum(getattr(line, name) for line in self.rows) for name in ("lost", "unpriced"))
        lines.append(row("total", *self._sums(), usd_text(self.spent, unpriced), ""))
        if lost:
            most = math.fsum(line.lost_cost for line in self.rows)
            lines.append(f"{lost} requests without a reply may have cost {most:.4f} USD of it; they count so")
        if unpriced:
            lines.append(f"{unpriced} calls are not in it, as their price is not known")
        return lines

    def _sums(self) -> tuple[int, ...]:
        names = ("calls", "input_tokens", "cached_tokens", "output_tokens")
        return tuple(sum(getattr(line, name) for line in self.rows) for name in names)


def run_spend(folder: Path, by: str = "stage") -> Spend:
    """Return what a run has cost so far; works while another process works on it.

    A reply that several items use counts for the first of them. A reply that was sent back for repair counts
    for the prompt of the question.
    """
    by = "item" if by == "story" else by
    if by not in BY:
        raise ConfigError("--by", expected=", ".join(BY), found=by, fix="choose one of these")
    path = Path(folder) / JOURNAL
    with journal_file.explained(path), closing(journal_file.connect(path, read_only=True)) as connection:
        journal_file.check_format(path, connection)
    of, tables, of_lost = BY[by]
    lines: dict[str, Line] = {}
    for name, *counts in rows_of(path, _ANSWERED.replace("{of}", of).replace("{tables}", tables)):
        known = OTHERS[by] if name is None else name
        lines[known] = Line(known, *counts)
    for name, count, bound in rows_of(path, _LOST.replace("{of}", of_lost)):
        known = LOST if name is None else name
        lines[known] = replace(lines.get(known, Line(known)), lost=count, lost_cost=bound)
    return Spend(by, tuple(sorted(lines.values(), key=lambda line: (-line.most, line.name))))
