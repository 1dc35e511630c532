"""``fabula report``: an evaluation as one page for people, with JSON and CSV beside it."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, example, guarded, released, show
from .scoring import DefineOption, image_definitions


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "report",
        epilog=example(
            "fabula report runs/eval-a",
            "fabula report runs/eval-a --release dist/mine-0.1.0 --outputs storyboards/model-x"
            " --out pages/eval-a.html",
            "fabula report runs/images --unranked copy-paste --story 07 --story 12",
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
        typer.Option(
            "--outputs", help="Storyboards or shots of one method; repeatable [the run's pictures]."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page, a .html file [evaluation_report.html in the folder]."),
    ] = None,
    define: DefineOption = None,
    unranked: Annotated[
        list[str] | None,
        typer.Option("--unranked", help="Images: a method that is shown and not ranked. Repeatable."),
    ] = None,
    stories: Annotated[
        list[str] | None,
        typer.Option(
            "--story", help="Images: a story to show from end to end. Repeatable [those that tell most]."
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", help="Images: a method whose stories are shown. Repeatable [the first 6]."),
    ] = None,
    megabytes: Annotated[
        float | None,
        typer.Option("--pictures-mb", min=0, help="Images: megabytes of pictures in the page at most [12]."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Write a page with the scores and the frames behind them.

    The page is one file that needs no network. The numbers stand beside it as JSON and CSV.
    """
    from ..evaluation.report.writing import PAGE, check_page, make_report, write_report

    page = out or run / PAGE
    check_page(page)
    release = released(release)
    images = None
    if define or unranked or stories or methods or megabytes is not None:
        from ..evaluation.report.images import ImageReport
        from ..evaluation.report.shot_cards import MEGABYTES
        from ..evaluation.report.shot_stories import Choice

        images = ImageReport(
            image_definitions(define), tuple(unranked or ()),
            Choice(tuple(stories or ()), tuple(methods or ())),
            MEGABYTES if megabytes is None else megabytes,
        )  # fmt: skip
    show(write_report(make_report(run, release, tuple(outputs or ()), images), page), as_json=as_json)
    return 0
