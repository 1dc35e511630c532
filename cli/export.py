"""``fabula export``: what others need of a release or an evaluation, in a folder of its own."""

from pathlib import Path
from typing import Annotated

import typer

from . import entity_sets, export_study, shot_material, shot_sets
from .common import JsonOption, emit, example, guarded, released, say, show

app = typer.Typer(
    name="export",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Copy data and results into a folder of their own.",
)


@app.callback()
def _export() -> None:
    """Copy data and results into a folder of their own."""


export_study.register(app)
shot_sets.register_exports(app)
shot_material.register_export(app)
entity_sets.register_exports(app)


@app.command("katha", epilog=example("fabula export katha dist/kathabench --out KathaBench-25K"))
@guarded
def katha(
    folder: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Release, packed or imported.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    as_json: JsonOption = False,
) -> int:
    """Write a release as the official KathaBench files.

    The files have the names of Table 23 of the paper. An imported package comes out as it came in: tables
    line by line in canonical JSON, sorted by id, with the fields that were set aside; every other file byte
    for byte.
    """
    from ..releases.official_export import export_package

    show(export_package(released(folder), out), as_json=as_json)
    return 0


@app.command(
    "archive",
    epilog=example(
        "fabula export archive runs/eval-a --out dist/eval-a",
        "fabula export archive runs/eval-a --so-far --out /tmp/eval-a-so-far",
    ),
)
@guarded
def archive(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Evaluation folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    so_far: Annotated[
        bool,
        typer.Option(
            "--so-far", help="Take what the run has so far, even while it works or after it was killed."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Copy the judgements of an evaluation, for publishing.

    Judgements and manifest are checked, and paths of this machine are removed. Anybody can score the copy
    with the release that it names. An evaluation that somebody else published is checked in the same way.
    With --so-far the copy of a run that is not finished is marked as incomplete.
    """
    from ..evaluation.archive import export_archive
    from ..evaluation.lacking import lacking, lacks
    from ..evaluation.so_far import export_so_far

    archive = export_so_far(folder, out) if so_far else export_archive(folder, out)
    unasked, unreached = lacks(archive.manifest.environment)
    if as_json:
        told = {"out": str(out), "kind": archive.manifest.kind, "judgements": len(archive.judgements)}
        emit({**told, "unasked": unasked, "unreached": unreached})
    else:
        missing = f"; incomplete: {lacking(unasked, unreached)}" if unasked or unreached else ""
        say(f"{out}: {len(archive.judgements)} judgements, {archive.manifest.kind}{missing}")
    return 0
