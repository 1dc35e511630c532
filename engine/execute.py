"""Executing a pipeline in a run folder: make what is missing, write the outputs, say how it went."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from .. import version
from ..errors import (
    BelowThreshold,
    BudgetStop,
    ConfigError,
    FabulaError,
    Interrupted,
    ModelUnavailable,
    RunError,
    TargetError,
)
from ..media.kept_files import check_shared_store
from ..schemas.canonical import digest, digest_rows, sha256_file, write_atomic
from ..schemas.plain_files import network_disk
from . import edits, lock, manifest, status
from .asker import FACT as ATTEMPTS
from .asker import attempts_of
from .batches.books import running_lines
from .budget import asked_singly, check_models
from .calls import model_uses
from .config import RunConfig
from .edits import Change, changed_by, refuse_gone
from .hooks import Event, Hooked, Reporter, SilentReporter
from .journal import Journal
from .journal_file import NAME as JOURNAL
from .journal_file import unwritable
from .lock import HOLDER, LOCK, Stopper, hold, is_private, keep_private, stop_on_signals
from .machines.ray_pool import open_pools
from .machines.reuse import Reused, bring_stored, check_reused
from .manifest import (
    EDITS,
    EPOCH,
    LAST_SEEN,
    Fingerprint,
    Manifest,
    Source,
    creation_time,
    fingerprints,
    make_manifest,
    normal_time,
    read_manifest,
    with_added,
    write_manifest,
)
from .manifest import NAME as MANIFEST
from .model_pool import ModelPool
from .pipeline import (
    STATE,
    LoadedPipeline,
    Pipeline,
    Shard,
    check_same_shard,
    library_versions,
    load_pipeline,
)
from .runner import Means, Options, Runner
from .stage import PROGRESS
from .status import NAME as REPORT
from .status import ItemReport, RunReport, StageReport, meaning, read_report, write_report
from .walk import Items, LazyItems

# -- The files of a finished run: its pipeline writes them, unless those on disk are what it would write

_FACT = "outputs"
_OWN = {manifest.NAME, status.NAME, edits.NAME, lock.LOCK, lock.HOLDER}


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that ``finish`` wrote, by name, with their hashes; and whether it wrote them just now."""

    written: bool
    files: Mapping[str, str]


def write_outputs(
    folder: Path, loaded: LoadedPipeline, items: Items, journal: Journal, settings: Mapping[str, Any]
) -> Outputs:
    """Write the outputs of a run unless the files on disk are those that it would write.

    They are when the final fields, the settings and the version of Fabula are as they were, and no file has
    changed since.
    """
    ids = items.live.in_order()
    state = _state(loaded, items, ids, settings)
    known = journal.fact(_FACT)
    if known is not None and known["state"] == state and known["files"] == _digests(folder, known["files"]):
        return Outputs(False, known["files"])
    before = _stamps(folder)
    journal.note(_FACT, None)  # until they are complete, no output counts as written
    journal.flush()
    try:
        loaded.finish(folder, LazyItems(items, journal, ids, loaded.outputs))
    except OSError as error:
        raise unwritable(folder, error) from error
    written = [name for name, stamp in _stamps(folder).items() if before.get(name) != stamp]
    files = _digests(folder, written)
    journal.note(_FACT, {"state": state, "files": files})
    journal.flush()
    return Outputs(True, {name: str(sha256) for name, sha256 in files.items()})


def _state(loaded: LoadedPipeline, items: Items, ids: Collection[str], settings: Mapping[str, Any]) -> str:
    rows = digest_rows([item, items.digests(item, loaded.outputs)] for item in ids)
    return digest([version.__version__, loaded.pipeline.finish, loaded.outputs, dict(settings), rows])


def _stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return something that changes when a file is written again, for each file that is not the engine's."""
    stamps = {}
    for path in folder.iterdir():
        if path.is_file() and path.name not in _OWN and not path.name.startswith((JOURNAL, ".")):
            stat = path.stat()
            stamps[path.name] = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
    return stamps


def _digests(folder: Path, names: Any) -> dict[str, str | None]:  # noqa: ANN401 - names, or a mapping of them
    return {name: sha256_file(folder / name) if (folder / name).is_file() else None for name in sorted(names)}


# -- Executing a pipeline in a run folder

MAX_COST = "max_cost"
"""The fact in a journal that says which cost limit its run was last given."""
STAGE_COSTS = "stage_costs"
"""The same for the limits of stages, by stage."""
SHOWN = 3
"""Of so many items that were not made an error of the whole run gives the reasons."""
STOPS = (BudgetStop, ModelUnavailable, Interrupted, BelowThreshold)
"""What stops a run that the same command continues."""
STORE = "store"
"""The folder of a run where stages keep files that fields name by their hash."""
WORK = "work"
"""The folder of a run for what is no result: see :class:`.stage.Tools`."""

__all__ = ["STORE", "Options", "RunRequest", "Source", "execute"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to execute."""

    folder: Path  # the run folder; made if missing, continued if it is a run
    pipeline: Pipeline  # the stages
    config: RunConfig  # the settings; see :func:`.config.resolve_config`
    # the sources; none takes those that the run was last made from. Those that it was extended with belong to
    # it in any case.
    sources: tuple[Source, ...] = ()
    created_at: str | None = None  # creation time of a new run (RFC 3339); a run that exists keeps its own
    options: Options = field(default_factory=Options)  # what to run of it, and how
    # whether the sources are all that the run has, those that it was extended with among them
    complete: bool = False
    # looks at the items when all stages are done, before any output is written; what it raises keeps the
    # outputs as they are
    accept: Callable[[Items], None] | None = None

    def of_role(self, role: str) -> list[Path]:
        """Return the sources that hold something, in order."""
        return [source.path for source in self.sources if source.role == role]


def execute(request: RunRequest, reporter: Reporter | None = None) -> RunReport:
    """Execute a pipeline; results that the run's journal holds are used, the rest is made.

    One that fails leaves the ``run.json`` of a run that was there as it was. Works from any thread; in the
    main thread SIGINT, SIGTERM and SIGHUP stop it in order (see :mod:`.signals`).
    """
    loaded = load_pipeline(request.pipeline)
    request.options.check(loaded)
    for stage in loaded.stages:  # before anything is written
        library_versions(stage.spec)
    folder = Path(request.folder).absolute()
    told_to = Hooked(reporter if reporter is not None else SilentReporter(), folder)
    prepare_folder(folder)
    stopper = Stopper(lambda: told_to.emit(Event("stopping")))
    try:
        with hold(folder), _kept_private(folder, request), stop_on_signals(stopper):
            _tidy(folder)
            request = with_attempts(request)
            check_shared_store(private=_is_private(request))
            report = _execute(folder, loaded, request, told_to, stopper)
    except KeyboardInterrupt:
        text = "stopped at once; what was committed is kept, and the same command continues it"
        raise Interrupted("\n".join([text, *_running(folder)])) from None
    except Interrupted as stop:
        raise Interrupted("\n".join([str(stop), *_running(folder)])) from None
    except (BudgetStop, ModelUnavailable):
        _tell_running(folder, told_to)
        raise
    finally:
        told_to.close()
    _check_share(folder, report, request)
    return report


def _running(folder: Path) -> list[str]:
    """Return what people must know of batches that go on though the run has stopped."""
    with suppress(FabulaError):  # why the run stopped matters more
        return running_lines(folder / JOURNAL, folder)
    return []


def _tell_running(folder: Path, reporter: Reporter) -> None:
    lines = _running(folder)
    if lines:
        reporter.emit(Event("batch", data={"message": "\n".join(lines)}))


def _is_private(request: RunRequest) -> bool:
    """Whether a run holds secrets, or what only its owner may read."""
    return request.pipeline.private or any(is_private(source.path) for source in request.sources)


@contextmanager
def _kept_private(folder: Path, request: RunRequest) -> Iterator[None]:
    """Keep a private run from everybody but its owner."""
    if not _is_private(request):
        yield
        return
    keep_private(folder)  # the folder first: what is written into it takes its rights
    try:
        yield
    finally:
        keep_private(folder)


def with_attempts(request: RunRequest) -> RunRequest:
    """Return a request with the attempts at each question that its run allows now."""
    attempts = attempts_of(request.folder, request.config, retry_failed=request.options.retry_failed)
    options = replace(request.options, retry_failed=attempts.again)
    return replace(request, config=attempts.config(request.config), options=options)


def _check_share(folder: Path, report: RunReport, request: RunRequest) -> None:
    """Raise BelowThreshold when too few of the items that were tried were made, or none at all.

    Items that wait because stages were left out on purpose are on their way: they do not count against it.
    """
    totals, threshold = report.totals, request.config.run.threshold
    options = request.options
    underway = totals["pending"] if options.stages or options.shard or options.gather_only else 0
    share = report.share_with(underway)
    if share >= threshold or (options.shard is not None and share > 0):  # the merged run has to reach it
        return
    made, words = totals["made"] + underway, "made or are on their way" if underway else "made"
    said = f"{made} of {made + totals['failed']} items were {words}, a share of {share:.4g}"
    if not made + totals["failed"]:
        said = f"no item was made: all {totals['rejected']} that were tried were rejected"
    reasons = [
        f"  {item.id}: {item.reason or item.meaning}\n" for item in report.items if item.status != "pending"
    ]
    raise BelowThreshold(
        f"{folder}: {said}; the threshold is {threshold:g}, and report.json lists the others\n"
        f"{''.join(reasons[:SHOWN])}"
        "  fix: see their reasons there, or one in detail with `fabula run show`; the same command again asks"
        " again where a model was unavailable, and with --retry-failed runs all that failed: each question to"
        " which no reply could be used is asked once more"
    )


def _execute(
    folder: Path, loaded: LoadedPipeline, request: RunRequest, reporter: Hooked, stopper: Stopper
) -> RunReport:
    known = _known_manifest(folder, loaded)
    last = known.source_list(folder) if known else ()
    sources = request.sources if request.complete else with_added(request.sources, last)
    prints = fingerprints(sources, folder)
    if not prints:
        raise ConfigError("sources", what="no file or folder is given", fix="name one")
    if known is not None:
        check_same_shard(str(folder), known.shard, request.options.shard)
    _keep_items(folder, loaded, request, prints, reporter)
    listed = tuple(entry.as_json(folder) for entry in prints)
    options, settings = request.options, request.config.run
    created_at = _created_at(known, request.created_at, options.shard)
    manifest = make_manifest(loaded, request.config, listed, created_at, options.shard)
    options = replace(options, reuse=_reused(folder, options))
    for other in options.reuse:
        check_reused(other)  # before anything is paid for
    asked_before = set(known.models) if known is not None and (folder / JOURNAL).exists() else set()
    asked_before.update(*(read_manifest(other).models for other in options.reuse))
    check_models(request.config, options.max_cost, options.stage_costs, asked_before)
    _warn(folder, request, reporter)
    workers = options.workers if options.workers is not None else settings.workers
    pool, device, workers = open_pools(options.pool, workers, _timeout(request))
    with (
        ExitStack() as stack,
        Journal.open(folder) as journal,
        pool,
        device,
        _model_pool(journal, replace(request, options=options), manifest, reporter) as models,
        Reused(options.reuse, folder / STORE, manifest.created_at) as reused,
    ):
        stack.enter_context(_or_as_it_was(folder))
        write_manifest(folder, manifest)
        journal.note(MAX_COST, options.max_cost)
        journal.note(STAGE_COSTS, dict(options.stage_costs))
        if options.shard is not None:
            journal.note(STATE, _state_of(options, finished=False))
        journal.note(LAST_SEEN, [str(entry.path) for entry in prints])
        names = list(loaded.names())
        start = {"folder": str(folder), "pipeline": loaded.name, "stages": names, "workers": workers}
        reporter.emit(Event("run", data=start))
        means = Means(
            pool,
            models,
            reporter,
            stopper,
            options,
            manifest.created_at,
            tuple(entry.path for entry in prints),
            folder / STORE,
            device,
            is_settled(folder, options),
            reused if options.reuse else None,
            folder / WORK,
            reporter.hooks.tell if reporter.hooks else None,
        )
        runner = Runner(loaded, request.config, journal, means)
        return _run(folder, runner, prints, manifest, request.accept)


def _warn(folder: Path, request: RunRequest, reporter: Reporter) -> None:
    """Tell what may not be as the user thinks: models without batches, a disk that SQLite cannot lock."""
    kind = network_disk(folder)
    disk = None if kind is None else (
        f"{folder} is on a network disk ({kind}), where SQLite cannot lock reliably: let one machine work on"
        " this run, or put it on a local disk and copy it when it is finished"
    )  # fmt: skip
    singly = asked_singly(request.config) if request.options.batching.on else None
    for text in (disk, singly):
        if text is not None:
            reporter.emit(Event("warning", data={"message": text}))


def check_sources(request: RunRequest) -> None:
    """Refuse sources in which items of the run are gone, for who change something before they execute."""
    folder, loaded = Path(request.folder).absolute(), load_pipeline(request.pipeline)
    known = _known_manifest(folder, loaded)
    if known is not None:
        last = known.source_list(folder)
        sources = request.sources if request.complete else with_added(request.sources, last)
        _keep_items(folder, loaded, request, fingerprints(sources, folder), SilentReporter())


def _keep_items(
    folder: Path,
    loaded: LoadedPipeline,
    request: RunRequest,
    prints: tuple[Fingerprint, ...],
    reporter: Reporter,
) -> None:
    """Refuse sources in which items of the run are gone, unless that is wanted; tell what has changed."""
    known = _known_manifest(folder, loaded)
    if known is None or not request.sources:
        return
    change = changed_by(folder, loaded, known, request.config, prints)
    if not request.options.replace_sources:
        refuse_gone(folder, loaded, change)
    if change != Change():
        reporter.emit(Event("sources", data={**asdict(change), "message": change.line()}))


@contextmanager
def _or_as_it_was(folder: Path) -> Iterator[None]:
    """Leave the manifest of a run as it was where an execution fails; one that is stopped can go on."""
    path = folder / MANIFEST
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    except (*STOPS, KeyboardInterrupt):
        raise
    except BaseException:
        if before is not None:
            with suppress(OSError):  # why it failed matters more
                write_atomic(path, [before])
        raise


def is_settled(folder: Path, options: Options) -> bool:
    """Whether a run was finished with the manifest that it has now, and no item is to be tried again."""
    with suppress(FabulaError):
        report = read_report(folder) if (folder / REPORT).exists() and not options.retry_failed else None
        if report is not None and not report.totals["pending"]:
            return report.manifest_sha256 == sha256_file(folder / MANIFEST)
    return False


def _model_pool(journal: Journal, request: RunRequest, manifest: Manifest, reporter: Hooked) -> ModelPool:
    options, day = request.options, date.fromisoformat(manifest.created_at[:10])
    config = request.config
    models = config.models
    if options.limit_share is not None:
        share = {"limit_share": options.limit_share}
        models = {spec: known.model_copy(update=share) for spec, known in models.items()}
    return ModelPool(
        journal, models, options.max_cost, options.reuse, day, attempts=config.run.attempts,
        batching=options.batching, tell=reporter.emit, stage_costs=options.stage_costs,
        tell_call=reporter.hooks.tell if reporter.hooks else None,
    )  # fmt: skip


def _run(
    folder: Path,
    runner: Runner,
    prints: tuple[Fingerprint, ...],
    manifest: Manifest,
    accept: Callable[[Items], None] | None,
) -> RunReport:
    root = runner.put_root([entry.field() for entry in prints])
    runner.journal.flush()
    runner.walk(root)
    bring_stored(runner.journal, folder / STORE)  # a run that is finished is whole by itself
    report = make_report(runner)
    options = runner.means.options
    if options.shard is not None:
        runner.journal.note(STATE, _state_of(options, finished=not runner.unfinished))
    elif not (options.stages or options.gather_only) or not report.totals["pending"]:
        if accept is not None:
            accept(runner.items)
        settings = {"manifest": manifest.created_at, "settings": manifest.as_json()["settings"]}
        outputs = write_outputs(folder, runner.loaded, runner.items, runner.journal, settings)
        report = replace(report, manifest_sha256=sha256_file(folder / MANIFEST), outputs=outputs.files)
        runner.means.reporter.emit(Event("outputs", data={"written": outputs.written}))
    write_report(folder, report)
    if not report.totals["pending"]:
        shutil.rmtree(folder / WORK / PROGRESS, ignore_errors=True)
    runner.journal.note(ATTEMPTS, runner.config.run.attempts)
    runner.means.reporter.emit(Event("run-done", data={"totals": dict(report.totals)}))
    return report


def make_report(runner: Runner) -> RunReport:
    """Return the report of a walk that is done."""
    elsewhere = runner.elsewhere
    live = sum(item not in elsewhere for item in runner.items.live)
    totals = {"made": live, "rejected": 0, "failed": 0, "pending": 0}
    specs = {stage.name: stage.spec for stage in runner.loaded.stages}
    items = []
    for item, stop in runner.items.stops.items():
        if item in elsewhere:
            continue
        totals[stop.status] += 1
        why = meaning(specs[stop.stage], stop.status, stop.code)
        items.append(ItemReport(item, stop.stage, stop.status, stop.code, stop.reason, why))
    stages = []
    for stage in runner.loaded.stages:
        counts = runner.counts[stage.name]
        stages.append(
            StageReport(
                stage.name, stage.spec.version, counts.made, counts.rejected, counts.failed,
                counts.reused, counts.ran,
            )
        )  # fmt: skip
    items.sort(key=lambda entry: entry.id)
    without = tuple(
        ItemReport(item, *stop, "Nothing of use was answered; the item was made without.")
        for item, stop in sorted(runner.without)
        if item not in elsewhere
    )
    uses = model_uses(runner.journal.path)
    return RunReport(totals, tuple(stages), tuple(items), models=uses, without=without)


def prepare_folder(folder: Path) -> None:
    """Make the run folder; refuse one that holds something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise unwritable(folder, error) from error
    begun = {name for name in names if name.startswith((JOURNAL, ".")) or name in (LOCK, HOLDER, EDITS)}
    if JOURNAL in begun:
        begun.add(STORE)  # of shards that were being merged
    if MANIFEST not in names and names - begun:
        raise TargetError(
            str(folder), what=f"the folder holds other files and no run: {min(names - begun)}",
            fix="choose another folder with --out",
        )  # fmt: skip


def _tidy(folder: Path) -> None:
    """Remove half-written files that a kill left behind.

    While we hold the run, nobody else writes here but those who add corrections: their file is left to them.
    """
    try:
        for part in folder.glob(".*.part"):
            if not part.name.startswith(f".{EDITS}."):
                part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def _known_manifest(folder: Path, loaded: LoadedPipeline) -> Manifest | None:
    if not (folder / MANIFEST).exists():
        return None
    known = read_manifest(folder)
    if known.kind != loaded.name:
        raise RunError(
            str(folder), what=f"this folder holds a run of kind {known.kind}, not {loaded.name}",
            fix="choose another folder with --out",
        )  # fmt: skip
    return known


def _state_of(options: Options, *, finished: bool) -> dict[str, Any]:
    """Return what a shard's journal says of how far it is, and what it takes over."""
    return {"finished": finished, "reuse": [str(path.absolute()) for path in options.reuse]}


def _reused(folder: Path, options: Options) -> tuple[Path, ...]:
    """Return the runs whose results are taken over; a shard goes on with those that it was last given."""
    if options.reuse or options.shard is None or not (folder / JOURNAL).exists():
        return options.reuse
    with Journal.open(folder, writable=False) as journal:
        last = (journal.fact(STATE) or {}).get("reuse", [])
    return tuple(path for path in map(Path, last) if (path / JOURNAL).exists())


def _created_at(known: Manifest | None, option: str | None, shard: Shard | None = None) -> str:
    if known is None and shard is not None and option is None and not os.environ.get(EPOCH):
        raise ConfigError(
            f"--shard {shard}", what="all shards of a run need the same creation time, and none is given",
            fix=f"add the same to the command of every shard, such as --created-at {creation_time(None)}",
        )  # fmt: skip
    if known is None:
        return creation_time(option)
    if option is not None and normal_time(option) != known.created_at:
        raise ConfigError(
            "--created-at", what=f"this run was created at {known.created_at}, and {option} is another time",
            fix="leave the option out, or build into a new folder",
        )  # fmt: skip
    return known.created_at


def last_limit(folder: Path) -> float | None:
    """Return the cost limit that a run was last given, in USD; None for none."""
    if not (folder / JOURNAL).exists():
        return None
    with Journal.open(folder, writable=False) as journal:
        limit: float | None = journal.fact(MAX_COST)
        return limit


def last_stage_costs(folder: Path) -> dict[str, float]:
    """Return the cost limits of stages that a run was last given, in USD."""
    if not (folder / JOURNAL).exists():
        return {}
    with Journal.open(folder, writable=False) as journal:
        limits: dict[str, float] = journal.fact(STAGE_COSTS) or {}
        return limits


def creation_of(request: RunRequest) -> str:
    """Return the creation time that the run of a request has, or would have if it were made now."""
    folder = Path(request.folder)
    known = read_manifest(folder) if (folder / MANIFEST).exists() else None
    return _created_at(known, request.created_at)


def _timeout(request: RunRequest) -> float:
    option = request.options.item_timeout
    return option if option is not None else request.config.run.item_timeout
