"""``fabula extend``: add stories to a run; what it holds stays as it is."""

from pathlib import Path
from typing import Annotated

import typer

from .advice import incomplete_lines, summary_first
from .common import JsonOption, MaxCostOption, RetryFailedOption, WorkersOption, example, guarded, say, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "extend",
        epilog=example(
            "fabula extend runs/mine new_stories.jsonl",
            "fabula extend runs/mine new_stories.jsonl --records hand.jsonl --dry-run",
            "fabula release pack runs/mine --version auto --since dist/mine-0.1.0 --out dist/mine-0.2.0",
        ),
    )(extend)


@guarded
def extend(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    sources: Annotated[
        list[Path],
        typer.Argument(help="JSONL or CSV files, or folders of .txt and .md files.", show_default=False),
    ],
    records: Annotated[
        Path | None, typer.Option("--records", help="JSONL of hand-written records for new stories.")
    ] = None,
    created_at: Annotated[
        str | None, typer.Option("--created-at", help="Creation time of the new records, RFC 3339 [now].")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check whether the stories can be added; write nothing.")
    ] = False,
    retry_failed: RetryFailedOption = False,
    moved: Annotated[
        list[Path] | None,
        typer.Option(
            "--sources",
            help="New place of the run's sources that were moved: files, or a folder with them. Repeatable.",
        ),
    ] = None,
    workers: WorkersOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
) -> int:
    """Add stories to a finished run.

    The records, ids and splits that the run has stay as they are, byte for byte. The new stories pass the
    same stages with the settings of the run. A story is refused if the run has it already (the same text,
    nearly the same, or a translation of it), or if its id was withdrawn.
    """
    from ..builders.katha.extend import ExtendOptions, extend_katha
    from ..engine.progress import choose_reporter

    options = ExtendOptions(records, created_at, workers, max_cost, dry_run, retry_failed, moved or ())
    with summary_first(run, as_json=as_json):
        report = extend_katha(run, sources, options, reporter=choose_reporter(as_json=as_json))
    show(report, as_json=as_json)
    if not as_json and report.run is not None:
        for line in incomplete_lines(run):
            say(line)
        say(f"next: fabula release pack {run} --version auto --since RELEASE --out NEW")
    elif not as_json and dry_run:
        say("nothing was written")
    return 0
