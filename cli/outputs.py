"""``fabula outputs``: look at generated storyboards before anything is spent on judging them."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, released, say

app = typer.Typer(
    name="outputs", no_args_is_help=True, rich_markup_mode=None, help="Check generated storyboards."
)


@app.callback()
def _outputs() -> None:
    """Check generated storyboards."""


@app.command(
    "check",
    epilog=example(
        "fabula outputs check storyboards/model-x --release dist/mine-0.1.0",
        "fabula outputs check storyboards/* --release dist/mine-0.1.0 --split public_test --json",
    ),
)
@guarded
def check(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Outputs of one method each.", show_default=False)
    ],
    release: Annotated[Path, typer.Option("--release", help="Release folder.", show_default=False)],
    splits: Annotated[
        list[str] | None, typer.Option("--split", help="Only stories of this split. Repeatable [all].")
    ] = None,
    ocr: Annotated[
        bool, typer.Option("--ocr", help="Also report text rendered inside pictures (extra `ocr`).")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """List missing, unreadable, wrongly numbered and incomplete storyboards. Exits with 1 if there are any.

    Rendered text is reported and is no finding.
    """
    from ..evaluation.judges.outputs import check_methods
    from ..evaluation.judges.rendered import rendered_in
    from ..media.ocr import open_reader
    from ..releases.loading import load

    loaded = load(released(release))
    reports = check_methods(folders, loaded, tuple(splits or ()))
    shown = []
    reader = open_reader() if ocr else None
    for report in reports:
        texts = rendered_in(report, loaded.by_id, reader) if reader else []
        if as_json:
            rendered = {"rendered": [text.as_json() for text in texts]} if reader else {}
            shown.append({**report.as_json(), **rendered})
            continue
        for issue in report.issues:
            say(f"{issue.level}: {report.method}/{issue}")
        for text in texts:
            say(f"text: {report.method}/{text}")
        say(report.summary())
    if as_json:
        emit({"outputs": shown})
    return int(any(not report.ok for report in reports))
