"""The walk that makes what is missing: map stages in the worker pool, the other shapes in this process."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain, groupby, islice, takewhile
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InputError, Interrupted
from ..models.spec import ModelSettings
from .batches.books import Batching
from .config import RunConfig, models_of
from .hooks import Event, Reporter
from .journal import (
    Basis,
    Decisions,
    Encoded,
    Entry,
    Head,
    Journal,
    Known,
    Listing,
    content_key,
    encode,
    encode_lists,
    read_decisions,
    read_listing,
)
from .machines.ray_pool import check_pool
from .machines.reuse import Held, Reused
from .manifest import copy_made_with, note_made_with
from .model_pool import ModelPool
from .pipeline import NOT_CHOSEN, SOURCES, WAITS, LoadedPipeline, Shard, Stage, unknown_stage
from .pool import Job, Pool, Task, checked
from .spilled import HELD, Spilled
from .stage import UNAVAILABLE, Child, Made, Tools
from .walk import TOGETHER, Group, LazyItems, Table, Walk, root_key

PLACES = "places"
"""The fact in a journal that says where the sources were when they were last taken in."""
STILL = 10.0
"""Seconds without a result after which it is told what is under way."""


@dataclass(frozen=True, slots=True)
class Options:
    """How one execution differs from a plain one. Filters say what may run.

    What the journal holds is used.
    """

    # worker processes; None takes the settings' number, else one per core; 0 runs in this process
    workers: int | None = None
    limit: int | None = None  # only the first so many items may run
    items: tuple[str, ...] = ()  # only these items may run
    stages: tuple[str, ...] = ()  # only these stages may run
    retry_failed: bool = False  # run failed items again, and ask once more what got no usable reply
    # USD that models may cost in all, over the whole life of the run; None for no limit
    max_cost: float | None = None
    # let sources take the place of others, though items of the run are gone in them
    replace_sources: bool = False
    # folders of other runs, whose results, stored files and replies are taken over
    reuse: tuple[Path, ...] = ()
    shard: Shard | None = None  # the part of the items that may run; stages that need all items do not
    # only stages that need all items run, and only where no item waits for another stage
    gather_only: bool = False
    # the journal was put together from those of shards: what they made counts as run now
    merging: bool = False
    # seconds per item and stage, times its patience; None takes the settings' number
    item_timeout: float | None = None
    # where stages run that ask no model: ``local`` processes, or actors of a cluster, ``ray``
    pool: str = "local"
    batching: Batching = field(default_factory=Batching)  # how requests to models go out in batches
    # this host's share of the models' limits per minute; None for that of the settings
    limit_share: float | None = None
    # stage -> USD that models may cost in it, likewise
    stage_costs: Mapping[str, float] = field(default_factory=dict)
    upgrade: bool = False  # let the prompts of now ask anew in a run that was begun with others

    def makes_again(self, stage: Stage, head: Head) -> bool:
        """Whether a known result is to be made again.

        Failed results are on request; those of a model that could not be reached, always. On request also
        those that may hold questions without an answer; what was answered about them is in the journal.
        """
        if head.status == "failed":
            return self.retry_failed or head.code == UNAVAILABLE
        if head.status == "made" and head.code is not None:  # made without an answer
            return self.retry_failed
        settings = stage.spec.settings
        return self.retry_failed and issubclass(settings, ModelSettings) and settings.keeps_unanswered

    def check(self, loaded: LoadedPipeline) -> None:
        """Raise ConfigError when an option does not fit the pipeline."""
        for name in self.stages:
            if name not in loaded.names():
                raise unknown_stage(f"--stage {name}", loaded.names())
        for option, value in (("--limit", self.limit), ("--workers", self.workers)):
            if value is not None and value < 0:
                raise ConfigError(option, expected="0 or more", found=str(value), fix="give another number")
        for stage in self.stage_costs:
            if stage not in loaded.names():
                raise unknown_stage(f"--max-cost {stage}", loaded.names())
        limits = [*self.stage_costs.values(), *([] if self.max_cost is None else [self.max_cost])]
        wrong = [limit for limit in limits if not 0 <= limit < float("inf")]
        if wrong:
            found = str(wrong[0])
            raise ConfigError("--max-cost", expected="USD, 0 or more", found=found, fix="give another number")
        self.batching.check()
        check_pool(self.pool)
        if self.item_timeout is not None and not self.item_timeout > 0:
            found = str(self.item_timeout)
            raise ConfigError(
                "item timeout", expected="more than 0 s", found=found, fix="give another number"
            )


@dataclass(frozen=True, slots=True)
class Means:
    """What a runner works with."""

    pool: Pool  # where map stages run
    models: ModelPool  # where those that ask models run
    reporter: Reporter  # who is told
    stopping: Callable[[], bool]  # whether the user asked to stop
    options: Options  # the filters
    created_at: str  # when the run was created
    paths: tuple[Path, ...]  # the source files and folders
    store: Path | None = None  # where stages keep files
    # where stages that take several items at once run, a process per device; None for the pool
    device: Pool | None = None
    settled: bool = False  # whether the run is finished as it is asked for now, so that no source is needed
    reused: Reused | None = None  # other runs, whose results are taken over; None for none
    work: Path | None = None  # where stages keep what is no result
    # told of every item that a map stage has finished; None where nobody wants to know
    tell_hooks: Callable[[Event], None] | None = None


class Runner(Walk):
    """Makes every result that the journal does not hold.

    Attributes:
        elsewhere: the items of other shards: they are looked at, and never worked on.
        unfinished: whether the options left out items that the run, or its shard, could work on.
        ahead: stage -> keys of results that this execution made before the walk came to the stage.
    """

    def __init__(self, loaded: LoadedPipeline, config: RunConfig, journal: Journal, means: Means) -> None:
        super().__init__(loaded, config, journal)
        self.means = means
        self.elsewhere: set[str] = set()
        self.unfinished = False
        self.ahead: dict[str, Spilled[None]] = {}
        self._allowed: set[str] | None = None
        self._root = True

    def put_root(self, sources: Any) -> Head:  # noqa: ANN401 - a JSON value
        """Write down the item that stands for the sources, unless the journal has it."""
        key = root_key(sources)
        known = self.journal.head(key)
        basis = Basis(SOURCES, 1, {}, {})
        return known or self.put(basis, SOURCES, key, encode(Made({SOURCES: sources})))

    # -- the walk's decisions

    def before(self, stage: Stage) -> None:
        """Tell that a stage begins; go no further when asked to stop."""
        self.check_stop()
        total = len(self.items.live)
        self.means.reporter.emit(Event("stage", stage=stage.name, data={"items": total}))

    def after(self, stage: Stage) -> None:
        """Wait until the stage's results are on disk, then tell; choose the items that may run."""
        self.journal.flush()
        self.ahead.pop(stage.name, None)
        counts = self.counts[stage.name]
        data = {name: getattr(counts, name) for name in ("made", "rejected", "failed", "reused", "ran")}
        self.means.reporter.emit(Event("stage-done", stage=stage.name, data=data))
        self.check_stop()

    def check_stop(self) -> None:
        """Raise Interrupted when the user asked to stop; what was made is on disk by then."""
        if self.means.stopping():
            self.journal.flush()
            raise Interrupted("stopped; finished work is kept, the same command continues it")

    def again(self, stage: Stage, head: Head) -> bool:
        """Whether the options want a known result made again, and let it run."""
        if head.key in self.ahead.get(stage.name, ()):
            return False
        return self.means.options.makes_again(stage, head) and self.may_run(stage, head.item)

    def lacks_sources(self) -> bool:
        """Whether sources are no longer where the first stage found them last; its results name files."""
        if not self._root or self.means.settled:
            return False
        last = self.journal.fact(PLACES)
        now = [str(path) for path in self.means.paths]
        return bool(last and now) and any(source not in now and not Path(source).exists() for source in last)

    def settle(self, stage: Stage, head: Head, *, ran: bool) -> None:
        """Take over a result; what shards have made counts as made now."""
        ran = ran or self.means.options.merging or head.key in self.ahead.get(stage.name, ())
        super().settle(stage, head, ran=ran)

    def leave(self, stage: Stage, item: str, status: str, reason: str) -> None:
        """Stop an item at a stage whose result for it is not known."""
        super().leave(stage, item, status, reason)
        self.unfinished |= reason == NOT_CHOSEN and item not in self.elsewhere

    def taken(self, _stage: Stage, _basis: Basis, _wanted: Sequence[tuple[str, str]]) -> dict[str, Head]:
        """Return results that other runs hold; those of this run's items are copied into its journal."""
        reused = self.means.reused
        if reused is None or self._root:
            return {}
        heads: dict[str, Head] = {}
        for known in reused.results(_stage.spec, [key for _, key in _wanted]):
            head = known.head
            if head.status == "failed" or self.means.options.makes_again(_stage, head):
                continue
            if head.item in self.elsewhere:
                heads[head.key] = head  # its place is in another journal, and nobody reads it there
            elif self.may_run(_stage, head.item):
                heads[head.key] = self._take(_basis, known, reused)
        return heads

    def taken_table(
        self, _stage: Stage, _basis: Basis, _owner: tuple[str, str], _known: Known
    ) -> Listing | None:
        """Return the list of an expansion that another run holds, or in a shard that of a gather."""
        reused, (item, key) = self.means.reused, _owner
        if reused is None or self._root:
            return None
        if _stage.spec.shape == "gather" and self.means.options.shard is None:
            return None  # cheap, and one that knows its past may decide otherwise here
        for table in reused.results(_stage.spec, [key]):
            if any(count > len(held) for count, held in reused.listed(table, _known)):
                continue
            for found in (found for _, held in reused.listed(table, _known) for found in held):
                if item in self.elsewhere:
                    _known.keep(found.head)
                else:
                    _known.add(self._take(_basis, found, reused))
            if item not in self.elsewhere:
                self._take(_basis, table, reused)
            return reused.listing(table)
        return None

    def _take(self, basis: Basis, known: Held, reused: Reused) -> Head:
        """Copy a result, the replies that it was made from and the files that it names."""
        self._keep_meanings(basis)
        copy_made_with(self.journal, known.run.journal, basis.stage)
        entry, calls = reused.entry(known)
        self.journal.write(*calls)
        return known.head._replace(seq=self.journal.put(entry))

    def may_run(self, stage: Stage, item: str | None = None) -> bool:
        """Whether the options let a stage run, on an item."""
        options = self.means.options
        if options.gather_only and (stage.spec.shape != "gather" or self._has_waiting()):
            return False
        if (options.stages and stage.name not in options.stages) or item in self.elsewhere:
            return False
        return item is None or self._allowed is None or item in self._allowed

    def missing_items(self, stage: Stage, basis: Basis, todo: Spilled[str]) -> None:
        """Run a map stage on items."""
        keys: Spilled[str] = Spilled()
        for item, key in todo.items():
            if self.may_run(stage, item):
                keys[item] = key
            else:
                self.leave(stage, item, "pending", NOT_CHOSEN)
        if keys:
            _Course(self, self._following(stage, basis), keys).run()
            self.check_stop()

    def missing_children(
        self, stage: Stage, basis: Basis, parent: tuple[str, str], known: Known
    ) -> Listing | None:
        """Run an expand stage on one item."""
        item, _ = parent
        if not self.may_run(stage, None if self._root else item):
            self.leave(stage, item, "pending", NOT_CHOSEN)
            return None
        self.describe(basis)
        (read,) = LazyItems(self.items, self.journal, [item], stage.spec.reads)
        children = (
            (child.id, self._put_child(stage, basis, child, known))
            for child in stage.run(read, self.tools(stage))
        )
        inputs = dict(zip(stage.spec.reads, self.items.digests(item, stage.spec.reads), strict=True))
        listing = self._put_table(basis, parent, children, inputs, known)
        if self._root:
            self.journal.note(PLACES, [str(path) for path in self.means.paths])
        return listing

    def _put_child(self, stage: Stage, basis: Basis, child: Child, known: Known) -> str:
        self.check_stop()
        try:
            child.id.encode("utf-8")
        except UnicodeEncodeError as error:
            where = f"stage {stage.name}: item {child.id!r}"
            text = "a lone surrogate, which cannot be stored"
            fix = "correct the id in the sources"
            raise InputError.one(where, expected="an id in Unicode", found=text, fix=fix) from error
        return self._put_known(basis, child.id, encode(checked(stage.spec, child.outcome)), known)

    def missing_table(self, stage: Stage, basis: Basis, table: Table, known: Known) -> Listing | None:
        """Run a gather stage on all living items."""
        if self.means.options.shard is not None or not self.may_run(stage):
            for item in table.ids:
                self.leave(stage, item, "pending", WAITS if self.means.options.shard else NOT_CHOSEN)
            return None
        self.describe(basis)
        items = LazyItems(self.items, self.journal, table.ids, stage.spec.reads)
        before = self._previous(stage, table, known)
        rows = stage.run(items, self.tools(stage, previous=before.fields))
        if len(rows) != len(table.ids) or any(item not in rows for item in table.ids):
            wrong = sorted(set(rows) ^ set(table.ids))
            raise ValueError(f"stage {stage.name} must give fields for every item; wrong: {wrong[:5]}")
        decided = (
            (item, self._put_known(basis, item, encode(checked(stage.spec, Made(rows[item]))), known))
            for item in table.ids
        )
        kept = (line for line in before.keys.items() if line[0] not in rows)
        return self._put_table(basis, ("", table.key), decided, table.inputs, known, kept=kept)

    def missing_group(self, stage: Stage, basis: Basis, group: Group) -> None:
        """Run a group stage on the living children of one item."""
        if not self.may_run(stage, group.item):
            self.leave(stage, group.item, "pending", NOT_CHOSEN)
            return
        self.check_stop()
        self.describe(basis)
        members = LazyItems(self.items, self.journal, group.members, stage.spec.reads)
        encoded = encode(checked(stage.spec, stage.run(members, self.tools(stage))))
        self.settle(stage, self.put(basis, group.item, group.key, encoded, group.inputs), ran=True)

    def _previous(self, stage: Stage, table: Table, known: Known) -> Decisions:
        """Return what a stateful stage decided last, for every item that it ever saw."""
        if not stage.spec.stateful or table.latest is None:
            return Decisions({}, {})
        return read_decisions(self.journal, table.latest, known)

    def expanded(self, parents: Mapping[str, str]) -> None:
        """Work out which items may run, once they are known."""
        options = self.means.options
        if self.elsewhere:
            self.elsewhere.update(child for child, parent in parents.items() if parent in self.elsewhere)
        if not self._root:
            if self._allowed is not None:
                self._allowed = {child for child, parent in parents.items() if parent in self._allowed}
            return
        self._root = False
        if options.items:
            missing = [item for item in options.items if item not in parents]
            if missing:
                raise ConfigError(
                    "--items", what=f"the run has no items {', '.join(missing)}",
                    fix=f"use ids such as {', '.join(nsmallest(3, parents)) or 'none: there are no items'}",
                )  # fmt: skip
            self._allowed = set(options.items)
        if options.shard is not None:
            self.elsewhere = self.loaded.others(options.shard, parents)
            self._allowed = {
                child
                for child in parents
                if child not in self.elsewhere and (self._allowed is None or child in self._allowed)
            }
        if options.limit is not None:
            chosen = (item for item in parents if self._allowed is None or item in self._allowed)
            self._allowed = set(islice(chosen, options.limit))

    def grouped(self, parents: Mapping[str, str]) -> None:
        """Items come back whose children may run."""
        self.elsewhere.update(parent for child, parent in parents.items() if child in self.elsewhere)
        if self._allowed is not None:
            self._allowed = {parent for child, parent in parents.items() if child in self._allowed}

    # -- helpers

    def _has_waiting(self) -> bool:
        return any(stop.status == "pending" for stop in self.items.stops.values())

    def _following(self, stage: Stage, basis: Basis) -> list[tuple[Stage, Basis]]:
        """Return a stage, and those right after it if all ask models: an item need not wait for others there.

        Where requests go out in batches, they are to come together, stage by stage.
        """
        chained = self.asks(stage) and not self.means.options.batching.on
        later = self.loaded.stages[self.loaded.stages.index(stage) + 1 :] if chained else ()
        return [(stage, basis), *((other, self.basis(other)) for other in takewhile(self.asks, later))]

    def asks(self, stage: Stage) -> bool:
        """Whether a stage asks models, by its settings."""
        return bool(models_of(self.config.stages[stage.name]))

    def tools(self, stage: Stage, previous: Mapping[str, Mapping[str, Any]] | None = None) -> Tools:
        return Tools(
            settings=self.config.stages[stage.name],
            created_at=self.means.created_at,
            seed=self.config.run.seed,
            previous=previous or {},
            paths=self.means.paths if self._root else (),
            store=self.means.store,
            work=self.means.work,
        )

    def describe(self, basis: Basis) -> None:
        """Note what a stage is about to work with."""
        self._keep_meanings(basis)
        note_made_with(self.journal, basis.stage, self.config.stages[basis.stage])

    def _keep_meanings(self, basis: Basis) -> None:
        """Keep what the digests of settings and libraries stand for, so that changes can be explained."""
        self.journal.note(f"settings:{basis.settings_digest}", basis.settings)
        self.journal.note(f"libraries:{basis.libraries_digest}", basis.libraries)

    def put(
        self,
        basis: Basis,
        item: str,
        key: str,
        encoded: Encoded,
        inputs: Mapping[str, str] | None = None,
        part: str = "item",
    ) -> Head:
        """Write a result into the journal."""
        entry = Entry(
            key=key, stage=basis.stage, item=item, part=part, version=basis.version, inputs=inputs or {},
            settings=basis.settings_digest, libraries=basis.libraries_digest, encoded=encoded,
        )  # fmt: skip
        seq = self.journal.put(entry)
        return Head(seq, key, item, encoded.status, encoded.code, encoded.reason, dict(encoded.outputs or {}))

    def _put_table(
        self,
        basis: Basis,
        owner: tuple[str, str],
        lines: Iterable[Sequence[str]],
        inputs: Mapping[str, str],
        known: Known,
        **more: Iterable[Sequence[str]],
    ) -> Listing:
        """Write a list of items as it is made; return it, where it is long as one that the journal holds."""
        first: list[Sequence[str]] = []

        def noted() -> Iterator[Sequence[str]]:
            for line in lines:
                if len(first) <= HELD:
                    first.append(line)
                yield line

        encoded = encode_lists({"items": noted(), **more})
        table = self.put(basis, *owner, encoded, inputs, part="table")
        if len(first) <= HELD:
            return first
        self.journal.flush()
        known.rewind(known[first[0][1]].seq)
        return read_listing(self.journal, table)

    def _put_known(self, basis: Basis, item: str, encoded: Encoded, known: Known) -> str:
        """Write a result that is addressed by what it holds, unless it is there; return its key."""
        outputs = sorted((encoded.outputs or {}).items())
        held = [encoded.status, encoded.code, encoded.reason, *(text for pair in outputs for text in pair)]
        key = content_key(basis.stage, item, held)
        if key not in known:
            known.add(self.put(basis, item, key, encoded))
        return key


class _Course:
    """Items on their way through stages that follow each other: each goes on as soon as its result is there.

    The walk passes the later stages afterwards, and finds in the journal what was made here. The reporter is
    told of results once they are on disk.
    """

    def __init__(self, runner: Runner, stages: Sequence[tuple[Stage, Basis]], keys: Spilled[str]) -> None:
        self._runner, self._items = runner, runner.items
        self._stages, self._bases = zip(*stages, strict=True)
        self._asks = runner.asks(self._stages[0])
        self._first = iter(keys.items())
        ready = runner.items.live if len(stages) > 1 else ()
        self._others = (item for item in ready if item not in keys and item not in runner.items.stops)
        self._ready: deque[tuple[str, int, str]] = deque()  # items that go on, with the step and the key
        self._unsaid: deque[tuple[int, Head]] = deque()
        # of each step: tasks so far, those of them that are over, and those that are told
        self._begun = [len(keys), *(0 for _ in stages[1:])]
        self._over, self._done = [0 for _ in stages], [0 for _ in stages]
        self._told = time.monotonic()
        runner.describe(self._bases[0])

    def run(self) -> None:
        """Work on all items, as far as they come."""
        runner, means = self._runner, self._runner.means
        jobs = [Job(stage.path, runner.tools(stage), stage.spec.patience) for stage in self._stages]
        if self._asks:
            groups = means.models.run(jobs, self._draw, means.stopping)
        else:
            tasks = chain.from_iterable(iter(lambda: self._draw(TOGETHER), []))
            pool = means.device if self._stages[0].batched else None
            groups = (pool or means.pool).run(jobs[0], tasks, means.stopping)
        for group in groups:
            for task, encoded in group:
                self._land(task, encoded)
            self._tell()
        runner.journal.flush()
        self._tell()

    def _draw(self, most: int) -> list[Task]:
        """Return so many of the next tasks at most; items that are on their way come first."""
        chosen = sorted(islice(self._next(), most), key=lambda task: task[1])
        if chosen and chosen[-1][1]:
            self._runner.journal.flush()  # what they read may have been made just now
        tasks = []
        for step, some in groupby(chosen, key=lambda task: task[1]):
            keys = {item: key for item, _, key in some}
            found = self._items.parts(self._runner.journal, keys, self._stages[step].spec.reads)
            tasks += [Task(item, keys[item], parts, step) for item, parts in found]
        return tasks

    def _next(self) -> Iterator[tuple[str, int, str]]:
        while True:
            if self._ready:
                yield self._ready.popleft()
            elif (first := next(self._first, None)) is not None:
                yield first[0], 0, first[1]
            elif (other := next(self._others, None)) is not None:
                self._go_on(other, 1)
            else:
                return

    def _land(self, task: Task, encoded: Encoded) -> None:
        """Keep a result, and let its item go on."""
        stage, runner = self._stages[task.step], self._runner
        inputs = dict(zip(stage.spec.reads, self._items.digests(task.item, stage.spec.reads), strict=True))
        head = runner.put(self._bases[task.step], task.item, task.key, encoded, inputs)
        self._over[task.step] += 1
        self._unsaid.append((task.step, head))
        if task.step:
            runner.ahead.setdefault(stage.name, Spilled())[head.key] = None
            self._items.place(head)
        else:
            runner.settle(stage, head, ran=True)
        if head.status == "made":
            self._go_on(task.item, task.step + 1)

    def _go_on(self, item: str, step: int) -> None:
        """Let an item go on to the first stage from a step on whose result for it is not known."""
        runner = self._runner
        for later, stage in enumerate(self._stages[step:], step):
            key = self._bases[later].key(item, self._items.digests(item, stage.spec.reads))
            head = runner.journal.head(key)
            head = head or runner.taken(stage, self._bases[later], [(item, key)]).get(key)
            if head is None or runner.again(stage, head):
                if runner.may_run(stage, item):
                    if not self._begun[later]:
                        runner.describe(self._bases[later])
                    self._begun[later] += 1
                    self._ready.append((item, later, key))
                return
            if head.status != "made":
                return
            self._items.place(head)

    def _tell(self) -> None:
        """Tell of results that are on disk; of what is under way, where none came for a while."""
        runner, steps = self._runner, set[int]()
        while self._unsaid and self._unsaid[0][1].seq <= runner.journal.committed:
            step, head = self._unsaid.popleft()
            self._done[step] += 1
            steps.add(step)
            said = {"item": head.item, "status": head.status, "code": head.code, "reason": head.reason}
            if runner.means.tell_hooks is not None:
                runner.means.tell_hooks(Event("item-done", stage=self._stages[step].name, data=said))
            if head.status != "made":
                runner.means.reporter.emit(Event("item", stage=self._stages[step].name, data=said))
        if self._asks and not steps and time.monotonic() - self._told >= STILL:
            steps = {step for step, begun in enumerate(self._begun) if self._over[step] < begun}
        for step in sorted(steps):
            self._told = time.monotonic()
            runner.means.reporter.emit(
                Event("progress", stage=self._stages[step].name, data=self._standing(step))
            )

    def _standing(self, step: int) -> dict[str, float | str]:
        """Return how far a stage is: items that are on their way to it count as those that it has to do."""
        coming = sum(self._begun[:step]) - sum(self._over[:step])
        done, total = self._done[step], self._begun[step] + coming
        data: dict[str, float | str] = {"done": done, "total": total}
        models = self._runner.means.models
        if not self._asks:
            return data
        spending = models.spending(self._stages[step].name) if done else None
        if spending is not None:
            before = spending.spent - spending.own
            projected = before + spending.own / done * total
            money = {"spent": spending.spent, "before": before, "projected": projected}
            data |= {name: round(usd, 6) for name, usd in money.items()}
        return data | models.under_way()
