"""``fabula export``: what others need of an evaluation, in a folder of its own."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, say

app = typer.Typer(
    name="export",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Copy results into a folder of their own.",
)


@app.callback()
def _export() -> None:
    """Copy results into a folder of their own."""


@app.command("archive", epilog=example("fabula export archive runs/eval-a --out dist/eval-a"))
@guarded
def archive(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Evaluation folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    as_json: JsonOption = False,
) -> int:
    """Write the judgements and the manifest of an evaluation, checked, without paths of this machine.

    Anybody can score the copy with the release that it names; a folder that somebody else published is
    checked in the same way.
    """
    from ..evaluation.archive import export_archive

    archive = export_archive(folder, out)
    if as_json:
        emit({"out": str(out), "kind": archive.manifest.kind, "judgements": len(archive.judgements)})
    else:
        say(f"{out}: {len(archive.judgements)} judgements, {archive.manifest.kind}")
    return 0
