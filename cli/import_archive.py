"""``fabula import archive``: several archives of judgements become one."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, say, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "archive",
        epilog=example(
            "fabula import archive runs/judge-a runs/judge-b --out runs/both",
            "fabula import archive machine-1/eval machine-2/eval --first-wins --out runs/all",
        ),
    )(archive)


@guarded
def archive(
    folders: Annotated[
        list[Path], typer.Argument(help="Evaluation folders, two or more.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Part of the protocol that may differ, such as decoding. Repeatable."),
    ] = None,
    first_wins: Annotated[
        bool,
        typer.Option("--first-wins", help="Where answers to one question differ, keep the first folder's."),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Merge evaluations into one; no model is asked.

    They must have been made under the same protocol, and may differ in judges, methods, stories or machines.
    What is in several of them is kept once. If one judge answered one question differently in two of them,
    the merge is refused and both answers are shown, unless --first-wins is given. The new folder is scored
    like any other.
    """
    from ..evaluation.archive import read_manifest
    from ..evaluation.merging import merge_archives

    merged = merge_archives(folders, out, allowed=allow or (), first_wins=first_wins)
    if as_json:
        emit({"out": str(out), **merged.as_json()})
    else:
        show(merged, as_json=False)
        release = " --release RELEASE" if read_manifest(out).kind == "katha" else ""
        say(f"next: fabula score {out}{release}")
    return 0
