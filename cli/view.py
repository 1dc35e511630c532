"""``fabula view``: pages of this machine that show what a folder holds."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .command import command
from .common import emit, released, say


@command("view")
def view(
    path: Path,
    other: Path | None = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8760,
    edit: bool = False,
    as_json: bool = False,
) -> int:
    """Look at a run, a release or an evaluation in a browser.

    Records with all their parts, who made each, corrections, what models were asked and answered, storyboards
    with the answers about them; the progress of a run, its audit, report and diff. Pages are for this machine
    alone, change nothing without --edit, and show large files without loading them. With two evaluations:
    what both were asked, side by side, and where answers differ.

    Options:
        path: Folder of a run, a release or an evaluation.
        other: A second evaluation, to compare the first with.
        port: Port; 0 takes a free one.
        edit: Let whoever has the link change texts; corrections go to the run's edits.jsonl.

    Examples:
        fabula view runs/mine
        fabula view dist/mine-0.1.0 --port 0
        fabula view runs/mine --edit
        fabula view runs/eval-a runs/eval-b
    """
    from ..viewing.editing import serve
    from ..viewing.shelf import Differing, open_shelf
    from ..viewing.site import Site

    if edit and other is not None:
        raise ConfigError("--edit", what="two folders are given", fix="edit one run at a time")
    with ExitStack() as opened:
        shelf = opened.enter_context(open_shelf(released(path)))
        differing = None
        if other is not None:
            second = opened.enter_context(open_shelf(other))
            for each in (shelf, second):
                if not each.judged:
                    raise ConfigError(
                        str(each.folder),
                        what="this is no evaluation",
                        fix="give two evaluations, or one folder",
                    )
            differing = opened.enter_context(Differing(shelf, second))

        def started(address: str) -> None:
            if as_json:
                emit({"folder": str(path), "address": address})
            else:
                changes = f"changes go to {path / 'edits.jsonl'}" if edit else "nothing is changed"
                say(f"{path} is shown at {address}", f"stop with Ctrl-C; {changes}")

        if edit:
            from ..kinds.verbs import editable_of
            from ..viewing.editing import Editing, serve_editing

            serve_editing(Editing(Site(shelf), editable_of(path)), port, started)
        else:
            serve(Site(shelf, differing), port, started)
    return 0
