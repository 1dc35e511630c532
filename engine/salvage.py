"""A new journal with all that is sound in a damaged one. The damaged one is kept beside it."""

import json
import math
import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..models.chat import ChatRequest, Reply
from ..models.prices import estimate_tokens
from ..schemas.canonical import Json, canonical_text
from ..schemas.text import quoted
from . import journal_file
from .asker import Desk, is_under_way
from .budget import Budget
from .calls import Calls, answered, model_uses
from .check_journal import Audit, JournalReport, Row, defaults, is_hash
from .execute import MAX_COST, STORE, WORK, RunRequest
from .hooks import SilentReporter
from .journal import NAME as JOURNAL
from .journal import Journal
from .journal_file import NAME, SALVAGED, explained, finish_salvage
from .lock import hold
from .machines.reuse import check_reused
from .manifest import Manifest, read_manifest
from .model_pool import ModelPool
from .pipeline import LoadedPipeline, Pipeline, load_pipeline
from .pool import WorkerPool
from .runner import Means, Options, Runner
from .stage import UNASKED, NoAnswer
from .walk import LazyItems, Walk

DAMAGED = "journal.sqlite.damaged"
_TOGETHER = 1000
_SETTLED = (  # of pages that are not in use any more: a line goes when the reply comes
    "DELETE FROM sent WHERE state = 'open' AND EXISTS"
    " (SELECT 1 FROM calls c WHERE c.request = sent.request AND c.sample = sent.sample)"
)


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was salvaged."""

    report: JournalReport  # what was found
    # the damaged journal; None where nothing was damaged, and nothing was written
    kept_as: Path | None = None
    notes: tuple[str, ...] = ()  # what a person should know

    def as_json(self) -> dict[str, Any]:
        damaged = None if self.kept_as is None else str(self.kept_as)
        return {**self.report.as_json(), "damaged": damaged, "notes": list(self.notes)}

    def lines(self) -> Iterator[str]:
        if self.kept_as is None:
            yield from self.report.lines()
            return
        *lines, _ = self.report.lines()
        yield from lines
        yield f"salvaged into {self.report.folder / NAME}; the damaged journal is kept as {self.kept_as}"
        yield from (f"note: {note}" for note in self.notes)
        yield f"next: fabula run retry {quoted(self.report.folder)}"


def salvage(folder: Path) -> Salvage:
    """Write a new journal with every sound row of a damaged one, replies first; leave a sound one alone.

    Killed at any moment, the run has either journal, whole; the next command goes on from there.
    """
    folder = Path(folder).absolute()
    path = folder / NAME
    if not path.is_file():
        raise journal_file.missing(path)
    with hold(folder), journal_file.explained(path), closing(Audit()) as audit:
        finish_salvage(path)
        part = folder / f".{SALVAGED}.part"
        try:
            facts = _write(part, path, audit)
            report = JournalReport(folder, audit.rows, tuple(audit.findings()))
            if not report.findings:
                return Salvage(report)
            part.chmod(path.stat().st_mode & 0o777)
            kept = _keep(path)
            part.replace(folder / SALVAGED)
        finally:
            part.unlink(missing_ok=True)
        finish_salvage(path)
        return Salvage(report, kept, tuple(_notes(audit, facts)))


def _write(part: Path, path: Path, audit: Audit) -> dict[str, Any]:
    """Write the sound rows of a journal into a new file; return the facts among them."""
    part.unlink(missing_ok=True)
    part.touch(0o600)
    facts: dict[str, Any] = {}
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(journal_file.TABLES)
        connection.execute("BEGIN")
        for number, (table, row) in enumerate(audit.sound_rows(path)):
            if table == "meta":
                facts[row[0]] = json.loads(row[1])
                if row[0] == "format":
                    _require_known(path, facts["format"])
                    continue
            _put(connection, table, row)
            if number % _TOGETHER == 0:
                connection.execute("COMMIT")
                connection.execute("BEGIN")
        connection.execute(journal_file.PUT_META, ("format", str(journal_file.FORMAT)))
        connection.execute(_SETTLED)
        for key in audit.broken_lists():
            connection.execute("DELETE FROM results WHERE key = ?", (key,))
        for key in audit.broken_asks():
            connection.execute("DELETE FROM asks WHERE result = ?", (key,))
        _keep_on_the_books(connection, audit)
        connection.execute("COMMIT")
    return facts


def _put(connection: sqlite3.Connection, table: str, row: Row) -> None:
    missing = defaults(table)[len(row) :]  # columns that came with a later format
    whole = (*row, *missing)[: len(defaults(table))]
    marks = ",".join("?" * len(whole))
    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", whole)


def _keep_on_the_books(connection: sqlite3.Connection, audit: Audit) -> None:
    """Count what a reply cost that cannot be read any more: it will be paid for once more."""
    for (table, _), row in audit.unread.items():
        if table != "calls" or len(row) < 10 or not isinstance(row[8], float) or not 0 < row[8] < 1e6:
            continue
        request = row[0] if is_hash(row[0]) else "0" * 64
        stage, model = (value if _is_text(value) else "unknown" for value in (row[2], row[3]))
        sample = row[1] if isinstance(row[1], int) and row[1] >= 0 else 0
        connection.execute(
            "INSERT INTO sent (request, sample, stage, model, bound, state) VALUES (?, ?, ?, ?, ?, 'lost')",
            (request, sample, stage, model, row[8]),
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value.isascii()


def _require_known(path: Path, version: object) -> None:
    if isinstance(version, int) and version > journal_file.FORMAT:
        raise RunError(
            str(path),
            what=f"the journal has format {version}, of a newer version of fabula",
            fix="use the version of fabula that made the run",
        )


def _keep(path: Path) -> Path:
    """Keep a damaged journal and its log under another name; return that."""
    kept, number = path.with_name(DAMAGED), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{DAMAGED}-{number}")
    for suffix in ("-wal", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            target = kept.with_name(kept.name + suffix)
            target.unlink(missing_ok=True)
            os.link(source, target)
    return kept


def _notes(audit: Audit, facts: dict[str, Any]) -> Iterator[str]:
    lists = sorted(set(audit.broken_lists().values()))
    if lists:
        yield f"{', '.join(lists)} will decide anew: compare what comes of it with the records of before"
    if MAX_COST not in facts:
        yield "the cost limit of the run is lost: give it again with --max-cost"
    yield "what lost replies have cost is no longer on the books, unless it could be read"


# -- What a journal tells: a run so far, by a pass that asks nobody, and how big answers to come will be


@dataclass(frozen=True, slots=True)
class Replay:
    """A run as far as it has come."""

    manifest: Manifest  # the manifest of the run
    loaded: LoadedPipeline  # its pipeline
    items: LazyItems  # those that reach the end on what is known, with the fields that ``finish`` needs
    # how many items there are, by what became of them; ``pending`` are not far enough
    totals: Mapping[str, int]


@contextmanager
def replayed(folder: Path, pipeline: Pipeline) -> Iterator[Replay]:
    """Give a run as far as it has come; whoever works on it meanwhile is not disturbed."""
    manifest = read_manifest(folder)
    loaded = load_pipeline(pipeline)
    config = manifest.config(loaded)
    with tempfile.TemporaryDirectory(prefix="fabula-replay-") as name:
        _copy_journal(folder / journal_file.NAME, Path(name) / journal_file.NAME)
        with (
            Journal.open(Path(name)) as journal,
            WorkerPool(0, manifest.run.item_timeout) as pool,
            _KnownReplies(journal, config.models, attempts=config.run.attempts) as models,
        ):
            means = Means(
                pool, models, SilentReporter(), lambda: False,
                Options(
                    stages=_after_replies(loaded),
                    retry_failed=is_under_way(folder, config.run.attempts),
                ),
                manifest.created_at, (), folder / STORE, work=folder / WORK,
            )  # fmt: skip
            runner = Runner(loaded, config, journal, means)
            sources = [entry.as_json() for entry in manifest.sources]
            root = runner.put_root(
                [{key: source[key] for key in ("role", "name", "sha256")} for source in sources]
            )
            journal.flush()
            runner.walk(root)
            totals = {"made": len(runner.items.live)}
            for stop in runner.items.stops.values():
                totals[stop.status] = totals.get(stop.status, 0) + 1
            items = LazyItems(runner.items, journal, runner.items.live.in_order(), loaded.outputs)
            yield Replay(manifest, loaded, items, totals)


def _after_replies(loaded: LoadedPipeline) -> tuple[str, ...]:
    """Return the stages that ask models, and those that read what these make of replies."""
    names: list[str] = []
    made: set[str] = set()
    for stage in loaded.stages:
        if stage.is_async or made.intersection(stage.spec.reads):
            names.append(stage.name)
            made.update(stage.spec.writes)
    return tuple(names)


def _copy_journal(path: Path, target: Path) -> None:
    """Copy a journal as it is at this moment, also while somebody writes to it."""
    with (
        explained(path),
        closing(journal_file.connect(path, read_only=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        journal_file.check_format(path, source)
        source.backup(copy)


class _KnownReplies(ModelPool):
    """Runs model stages on the replies that the journal holds."""

    def desk(self, calls: Calls, budget: Budget) -> Desk:
        """Return a desk that asks nobody."""
        return _KnownDesk(calls, budget, self._options, self._open_line, self._attempts)

    def kept_batches(self, calls: Calls) -> list[Any]:  # noqa: ARG002 - as the pool that asks
        """Return none: whoever asks nobody leaves open batches to those who do."""
        return []


class _KnownDesk(Desk):
    async def reply(
        self,
        request: ChatRequest,
        sample: int,
        stage: str,
        prompt: str | None = None,  # noqa: ARG002
    ) -> tuple[str, Reply]:
        """Return the key of a request and the reply to it from the journal."""
        # A request with pictures takes its time to be hashed: not where the stage has asked nothing at all.
        key = request.key() if stage in self._asking else ""
        known = self.calls.find(key, sample) if key else None
        if known is None:
            raise NoAnswer(UNASKED, "not asked yet")
        return key, known

    @cached_property
    def _asking(self) -> frozenset[str]:
        return self.calls.stages()


@dataclass(frozen=True, slots=True)
class Experience:
    """What calls of one stage to one model were like."""

    # calls for one item, those to repair replies included; None where only some questions of an item are
    # asked
    calls_per_item: float | None
    input_ratio: float  # input tokens as counted by the service, by those estimated
    output_tokens: float  # mean per call
    cached: float = 0.0  # share of the input tokens that a service had kept
    written: float = 0.0  # share of the input tokens that it kept and charged for


@dataclass(frozen=True, slots=True)
class Past:
    """What a run has done so far."""

    spent: float = 0.0  # USD
    # the files that hold replies: the run's own journal, and those of runs that are reused
    journals: tuple[Path, ...] = ()
    # experience by stage and model
    stages: Mapping[tuple[str, str], Experience] = field(default_factory=dict)
    # (stage, item) -> the inputs of results that still count as far as stage and settings go
    results: Mapping[tuple[str, str], list[Mapping[str, str]]] = field(default_factory=dict)

    def has(self, stage: str, item: str, inputs: Mapping[str, str]) -> bool:
        """Whether there is a result of the stage for the item that was made from these inputs."""
        known = self.results.get((stage, item), [])
        return any(inputs.items() <= origin.items() for origin in known)

    def question_by_question(self) -> "Past":
        """Return the same for a run that asks once more what failed, not everything about an item."""
        stages = {key: replace(stage, calls_per_item=None) for key, stage in self.stages.items()}
        return replace(self, stages=stages)


def past_of(request: RunRequest) -> Past:
    """Return what a request's run has done so far, and what runs that it reuses answer. Reads only."""
    folder = Path(request.folder).absolute()
    for run in request.options.reuse:
        check_reused(Path(run))
    reused = tuple(Path(run) / JOURNAL for run in request.options.reuse)
    if not (folder / JOURNAL).exists():
        return Past(journals=reused)
    with Journal.open(folder, writable=False) as journal:
        spent = math.fsum(usd for use in model_uses(journal.path) for usd in (use.cost, use.uncertain_cost))
        journals = (journal.path, *reused)
        return Past(spent, journals, _experience(journal), _results(journal, request))


def _results(journal: Journal, request: RunRequest) -> dict[tuple[str, str], list[Mapping[str, str]]]:
    loaded = load_pipeline(request.pipeline)
    walk = Walk(loaded, request.config, journal)
    inputs: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    for stage in loaded.stages:
        if not stage.is_async:
            continue
        basis = walk.basis(stage)
        wanted = (basis.version, basis.settings_digest, basis.libraries_digest)
        again = {head.seq for head in journal.heads(stage.name) if request.options.makes_again(stage, head)}
        for origin in journal.origins(stage.name):
            if (origin.version, origin.settings, origin.libraries) == wanted and origin.seq not in again:
                inputs[stage.name, origin.item].append(origin.inputs)
    return inputs


def _experience(journal: Journal) -> dict[tuple[str, str], Experience]:
    sums: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    for call in answered(journal.path):
        total, usage = sums[call.stage, call.model], call.reply.usage
        total.calls += 1
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            total.counted += 1
            total.estimated += _estimate(call.asked)
            total.input += usage.input_tokens
            total.output += usage.output_tokens
            total.cached += usage.cached_tokens or 0
            total.written += usage.cache_write_tokens or 0
    items = {stage: len(journal.last_of_items(stage)) for stage, _ in sums}
    return {
        (stage, model): total.experience(items[stage])
        for (stage, model), total in sums.items()
        if total.estimated and items[stage]
    }


@dataclass(slots=True)
class _Sums:
    calls: int = 0
    counted: int = 0
    estimated: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def experience(self, items: int) -> Experience:
        cached, written = (
            (count / self.input if self.input else 0.0) for count in (self.cached, self.written)
        )
        return Experience(
            self.calls / items, self.input / self.estimated, self.output / self.counted, cached, written
        )


def _estimate(asked: Mapping[str, Json]) -> int:
    """Return the estimate for a request from its canonical form; pictures count nothing."""
    texts = [part.get("text", "") for message in asked["messages"] for part in message["parts"]]
    schema = asked["schema"]
    if schema is not None:
        texts.append(canonical_text(schema["schema"]))
    return sum(map(estimate_tokens, texts))
