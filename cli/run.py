"""``fabula run``: look at a run, look at one item, retry what failed."""

from pathlib import Path
from typing import Annotated

import typer

from .advice import incomplete_lines, summary_first
from .common import JsonOption, MaxCostOption, WorkersOption, example, guarded, say, show

app = typer.Typer(
    name="run",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at a run; check its journal; retry failures.",
)

RunArgument = Annotated[Path, typer.Argument(help="Run folder.", show_default=False)]


@app.command(
    "status",
    epilog=example(
        "fabula run status runs/mine", "fabula run status runs/mine --explain --set draft_scenes.scenes=6"
    ),
)
@guarded
def status(
    run: RunArgument,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say for each stage what would run again, and why.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="With --explain: as if this setting were changed. Repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show how far each stage of a run is. Changes nothing; works while the run is in progress."""
    from ..engine.status import run_status
    from ..kinds.verbs import pipeline_of

    result = run_status(run, pipeline_of(run), explain=explain, sets=settings or ())
    show(result, as_json=as_json)
    return 0


@app.command("show", epilog=example("fabula run show runs/mine kb25k_0001"))
@guarded
def show_one(
    run: RunArgument,
    item: Annotated[str, typer.Argument(help="Item id.", show_default=False)],
    as_json: JsonOption = False,
) -> int:
    """Show what each stage read, got and wrote for one item."""
    from ..engine.inspect import show_item
    from ..kinds.verbs import pipeline_of

    result = show_item(run, pipeline_of(run), item)
    show(result, as_json=as_json)
    return 0


@app.command(
    "check", epilog=example("fabula run check runs/mine", "fabula run check runs/mine --salvage --json")
)
@guarded
def check(
    run: RunArgument,
    salvage: Annotated[
        bool,
        typer.Option("--salvage", help="Write a new journal with all undamaged rows; keep the damaged one."),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Check the journal of a run for damage.

    Every row is checked, both replies of models and results. Exits with 1 if something is damaged. With
    --salvage, the damaged journal is put aside and a new one takes its place; it then exits with 0. The next
    build or retry makes again what was lost, and nothing else.
    """
    if salvage:
        from ..engine.salvage import salvage as salvaged

        show(salvaged(run), as_json=as_json)
        return 0
    from ..engine.check_journal import check_journal

    report = check_journal(run)
    show(report, as_json=as_json)
    return int(bool(report.findings))


@app.command(
    "retry",
    epilog=example(
        "fabula run retry runs/mine --failed",
        "fabula run retry runs/mine --max-cost 5",
        "fabula run retry runs/mine --sources /data/stories",
    ),
)
@guarded
def retry(
    run: RunArgument,
    failed: Annotated[
        bool, typer.Option("--failed", help="Run failed items again; ask once more what got no usable reply.")
    ] = False,
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--sources",
            help="New place of sources that were moved: files, or a folder with them. Repeatable.",
        ),
    ] = None,
    workers: WorkersOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
) -> int:
    """Continue a run with its own sources and settings.

    It works on all items: --limit, --items and --stage of the first command are not kept. To stay within
    them, give the first command again. The limit of --max-cost stays unless you give another one.
    """
    from ..engine.progress import choose_reporter
    from ..kinds.verbs import continue_run

    reporter = choose_reporter(as_json=as_json)
    with summary_first(run, as_json=as_json):
        report = continue_run(
            run,
            retry_failed=failed,
            workers=workers,
            max_cost=max_cost,
            sources=sources or (),
            reporter=reporter,
        )
    show(report, as_json=as_json)
    if not as_json:
        for line in incomplete_lines(run):
            say(line)
    return 0
