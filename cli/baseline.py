"""``fabula baseline``: outputs of simple methods that every other one is measured against."""

from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, emit, example, guarded, released, say, warn

app = typer.Typer(
    name="baseline",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make the outputs of a baseline.",
)


@app.callback()
def _baseline() -> None:
    """Make the outputs of a baseline."""


@app.command(
    "copy-paste", epilog=example("fabula baseline copy-paste --release runs/vistory --out outputs/copy-paste")
)
@guarded
def copy_paste(
    release: Annotated[Path, typer.Option("--release", help="Set of shot scripts.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", help="A new folder, or an interrupted one; its name is the method's.")
    ],
    as_json: JsonOption = False,
) -> int:
    """Make shots by copying the characters' reference images.

    Each shot shows the first reference image of every character on stage, side by side.
    A command that was stopped goes on when it is given again; pictures that are there stay.
    It copies, so similarity and copy-paste rate are as high as they can be, and the script is not followed.
    """
    from ..baselines.copy_paste import write_copy_paste
    from ..releases.shot_tree import read_shot_set

    shot_set, _ = read_shot_set(released(release))
    written = write_copy_paste(shot_set, out)
    bare = sum(
        not story.references.get(key)
        for story in shot_set.stories
        for shot in story.script.shots
        for key in dict.fromkeys(story.script.cast(shot))
    )
    if bare:
        warn(f"characters on stage that have no reference image and are left out: {bare}")
    if as_json:
        emit({"out": str(out), "pictures": written, "left_out": bare, "sha256": shot_set.sha256})
    else:
        say(f"{out}: {written} pictures")
        say(
            f"next: fabula evaluate images --release {release} --outputs {out}"
            " --metrics cids,copy-paste,occm,csd --out runs/eval"
        )
    return 0
