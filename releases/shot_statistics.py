"""Counts over a set of shot scripts on disk."""

from pathlib import Path

from ..schemas.canonical import Json
from ..validators.shots.statistics import shot_statistics
from .shot_facts import read_story_facts
from .shot_tree import FOLDER, SCRIPT, read_shot_set


def holds_scripts(path: Path) -> bool:
    """Return whether a path is a set of shot scripts, or a run that holds one."""
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    return folder.is_dir() and any(folder.glob(f"*/{SCRIPT}"))


def statistics_of_shots(path: Path) -> dict[str, Json] | None:
    """Return the counts over a set of shot scripts: the official tree, or a run or release that holds it.

    Returns:
        None where the path is nothing of the kind.

    Raises:
        InputError: it is, and what is known of its stories cannot be read.
    """
    if not holds_scripts(path):
        return None
    shot_set, _ = read_shot_set(path)
    facts = read_story_facts(shot_set)
    return shot_statistics(
        (
            story.script,
            facts.get(story.story_id),
            {key: len(images) for key, images in story.references.items()},
        )
        for story in shot_set.stories
    )
