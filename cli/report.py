"""``fabula report``: an evaluation as one page for people, with JSON and CSV beside it."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, released, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "report",
        epilog=example(
            "fabula report runs/eval-a",
            "fabula report runs/eval-a --release dist/mine-0.1.0 --outputs storyboards/model-x"
            " --out pages/eval-a.html",
        ),
    )(report)


@guarded
def report(
    run: Annotated[Path, typer.Argument(help="Evaluation folder.", show_default=False)],
    release: Annotated[
        Path | None,
        typer.Option("--release", help="Release, or suite, that was judged [where the evaluation found it]."),
    ] = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--outputs", help="Storyboards of one method; repeatable [the run's pictures]."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page, a .html file [evaluation_report.html in the folder]."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Write a self-contained page with the scores and the frames behind them, and JSON and CSV beside it."""
    from ..evaluation.report.writing import PAGE, check_page, make_report, write_report

    page = out or run / PAGE
    check_page(page)
    release = released(release)
    show(write_report(make_report(run, release, tuple(outputs or ())), page), as_json=as_json)
    return 0
