"""``fabula baseline``: outputs of simple methods that every other one is measured against."""

from pathlib import Path

from .command import command
from .common import answer, released, warn


@command("baseline copy-paste")
def copy_paste(*, release: Path, out: Path, as_json: bool = False) -> int:
    """Make shots by copying the characters' reference images.

    Each shot shows the first reference image of every character on stage, side by side.
    A command that was stopped goes on when it is given again; pictures that are there stay.
    It copies, so similarity and copy-paste rate are as high as they can be, and the script is not followed.

    Options:
        release: Set of shot scripts.
        out: A new folder, or an interrupted one; its name is the method's.

    Examples:
        fabula baseline copy-paste --release runs/vistory --out outputs/copy-paste
    """
    from ..baselines.copy_paste import write_copy_paste
    from ..releases.shots.tree import read_shot_set

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
    document = {"out": str(out), "pictures": written, "left_out": bare, "sha256": shot_set.sha256}
    score = f"fabula evaluate images --release {release} --outputs {out} --metrics cids,copy-paste,occm,csd"
    lines = (f"{out}: {written} pictures", f"next: {score} --out runs/eval")
    return answer(document, lines, as_json=as_json)
