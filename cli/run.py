"""``fabula run``: look at a run, look at one item, retry what failed."""

from collections.abc import Sequence
from pathlib import Path

from .build import incomplete_lines, keep_lines, run_folder, summary_first
from .command import command
from .common import emit, model_bill, say, show, used_since


@command("run status")
def status(run: Path, *, explain: bool = False, settings: Sequence[str] = (), as_json: bool = False) -> int:
    """Show how far each stage of a run is. Changes nothing; works while the run is in progress.

    Options:
        run: Run folder.
        explain: Say for each stage what would run again, and why.
        settings: With --explain: as if this setting were changed.

    Examples:
        fabula run status runs/mine
        fabula run status runs/mine --explain --set draft_scenes.scenes=6
    """
    from ..engine.status import run_status
    from ..kinds.verbs import pipeline_of

    result = run_status(run, pipeline_of(run), explain=explain, sets=settings)
    show(result, as_json=as_json)
    return 0


@command("run spend")
def spend(run: Path, *, by: str = "stage", as_json: bool = False) -> int:
    """Show what a run has cost so far. Changes nothing; works while the run is in progress.

    Options:
        run: Run folder.
        by: stage, model, prompt, or item: a story, in most runs.

    Examples:
        fabula run spend runs/mine
        fabula run spend runs/mine --by prompt
        fabula run spend runs/mine --by item --json
    """
    from ..engine.status import run_spend

    show(run_spend(run, by), as_json=as_json)
    return 0


@command("run show")
def show_one(run: Path, item: str, *, stages: bool = False, as_json: bool = False) -> int:
    """Show the record of one item, whole, with the JSON paths that `fabula edit` takes.

    --stages adds what each stage read, got and wrote, long values cut; --json has all of it, uncut. An item
    without a record is shown by its stages.

    Options:
        run: Run folder.
        item: Item id.
        stages: Show what each stage did, too.

    Examples:
        fabula run show runs/mine kb25k_0001
        fabula run show runs/mine kb25k_0001 --stages
    """
    from ..engine.status import show_item
    from ..kinds.verbs import pipeline_of
    from ..schemas.values import MEANINGS
    from ..viewing.records import drafted_in, record_lines, state_in

    result = show_item(run, pipeline_of(run), item)
    writes = [stage.writes for stage in result.stages]
    state, why = state_in(writes, result.edits)
    if as_json:
        emit({**result.as_json(), **({"state": state} if state else {})})
        return 0
    record = list(record_lines(drafted_in(writes)))
    say(*([f"state: {state}, {why or MEANINGS[state]}"] if state else ()), *record)
    if not record or stages:
        show(result, as_json=False)
    return 0


@command("run check")
def check(run: Path, *, salvage: bool = False, as_json: bool = False) -> int:
    """Check the journal of a run for damage.

    Every row is checked, both replies of models and results. Exits with 1 if something is damaged. With
    --salvage, the damaged journal is put aside and a new one takes its place; it then exits with 0. The next
    build or retry makes again what was lost, and nothing else.

    Options:
        run: Run folder.
        salvage: Write a new journal with all undamaged rows; keep the damaged one.

    Examples:
        fabula run check runs/mine
        fabula run check runs/mine --salvage --json
    """
    if salvage:
        from ..engine.salvage import salvage as salvaged

        show(salvaged(run), as_json=as_json)
        return 0
    from ..engine.check_journal import check_journal

    report = check_journal(run)
    show(report, as_json=as_json)
    return int(bool(report.findings))


@command("run cancel")
def cancel(run: Path, *, as_json: bool = False) -> int:
    """Stop the batches of a run; keep what they have answered.

    It waits until the services say that they are over, which can take minutes. What was answered by then is
    paid for and is used when the run goes on; the rest is not. Exits with 1 if a batch could not be stopped.

    Options:
        run: Run folder.

    Examples:
        fabula run cancel runs/mine
    """
    from ..api.calling import choose_reporter
    from ..engine.batches.cancel import cancel_batches

    result = cancel_batches(run, tell=choose_reporter(as_json=as_json).emit)
    show(result, as_json=as_json)
    return int(bool(result.left))


@command("run merge")
def merge(
    shards: Sequence[Path],
    *,
    out: Path | None = None,
    gather: bool = False,
    sources: Sequence[Path] = (),
    workers: int | None = None,
    pool: str = "local",
    max_cost: float | None = None,
    as_json: bool = False,
) -> int:
    """Make one run of its shards.

    Shards are made by --shard 1/n to n/n of a build or an evaluation. All must be there, finished, and made
    from the same sources with the same settings. The run is what one machine would have made. Stages that
    need all items run here, and those after them, unless --gather leaves these to another round of shards.

    Options:
        shards: Run folders of all shards, in any order.
        gather: Run only stages that need all items; shards go on with --reuse RUN.
        sources: New place of sources that were moved: files, or a folder with them.
        workers: Worker processes [all cores].
        pool: Where stages run that ask no model: local or ray [local].
        max_cost: Most USD that the run may cost in all, that of the shards included [no limit].

    Examples:
        fabula run merge runs/part-1 runs/part-2 runs/part-3 --out runs/whole
        fabula run merge runs/part-* --gather --out runs/whole
    """
    from ..api.calling import choose_reporter
    from ..engine.machines.merging import Merge
    from ..kinds.verbs import merge_runs

    folder = run_folder(out, "runs/whole")
    reporter = choose_reporter(as_json=as_json)
    with summary_first(folder, as_json=as_json):
        how = Merge(workers=workers, max_cost=max_cost, gather_only=gather, pool=pool, sources=tuple(sources))
        result = merge_runs(shards, folder, how, reporter=reporter)
    show(result, as_json=as_json)
    return 0


@command("run retry")
def retry(
    run: Path,
    *,
    failed: bool = False,
    sources: Sequence[Path] = (),
    workers: int | None = None,
    max_cost: Sequence[str] = (),
    pool: str = "local",
    batch: bool = False,
    batch_deadline: float | None = None,
    batch_then_single: bool = False,
    limit_share: str | None = None,
    as_json: bool = False,
) -> int:
    """Continue a run with its own sources and settings.

    It works on all items: --limit, --items and --stage of the first command are not kept. To stay within
    them, give the first command again. The limit of --max-cost stays unless you give another one.

    Options:
        run: Run folder.
        failed: Run failed items again; ask once more what got no usable reply.
        sources: New place of sources that were moved: files, or a folder with them.
        workers: Worker processes [all cores].
        max_cost: Most USD that the run may cost in all, or STAGE=USD that a stage of it may [no limit].
        pool: Where stages run that ask no model: local or ray [local].
        batch: Send questions in batches, at half the price within a day, to services that take them.
        batch_deadline: With --batch: hours after which a batch is cancelled and the rest sent again.
        batch_then_single: With --batch: ask one by one, at the full price, what a batch left open.
        limit_share: This host's share of the models' limits per minute, such as 1/4.

    Examples:
        fabula run retry runs/mine --failed
        fabula run retry runs/mine --max-cost 5 --max-cost draft_scenes=2
        fabula run retry runs/mine --sources /data/stories
    """
    from ..api.calling import choose_reporter
    from ..engine.batches.books import Batching
    from ..engine.run_options import costs_of, share_of
    from ..kinds.verbs import continue_run

    batching = Batching(on=batch, deadline=batch_deadline, then_single=batch_then_single)
    reporter = choose_reporter(as_json=as_json)
    total, stage_costs = costs_of(max_cost)
    before = model_bill(run)
    with summary_first(run, as_json=as_json):
        report = continue_run(
            run,
            retry_failed=failed,
            workers=workers,
            max_cost=total,
            stage_costs=stage_costs,
            pool=pool,
            sources=sources,
            batching=batching,
            limit_share=None if limit_share is None else share_of(limit_share),
            reporter=reporter,
        )
    show(report, as_json=as_json)
    if not as_json:
        used = used_since(before, run)
        say(*((used,) if used else ()), *keep_lines(run, report), *incomplete_lines(run))
    return 0
