"""Counts over a set of episodes on disk."""

from pathlib import Path

from ..validators.entities.measures import measure
from ..validators.entities.statistics import EntityStatistics, entity_statistics
from ..validators.entities.view import view_of
from .entity_tree import EntitySet, holds_episodes, read_entity_set


def statistics_of_set(entity_set: EntitySet, split: str | None = None) -> EntityStatistics:
    """Return the statistics of a set, by the tiers of one of its split files.

    Raises:
        InputError: there is no split file of this name.
    """
    tiers = entity_set.tiers(split)
    measured = (measure(view_of(one.episode_id, one.script)) for one in entity_set.episodes)
    return entity_statistics(measured, tiers)


def statistics_of_episodes(path: Path, split: str | None = None) -> EntityStatistics | None:
    """Return the statistics of the episodes at a path: the official tree, or a run or release that holds it.

    Returns:
        None where the path is nothing of the kind.

    Raises:
        InputError: there is no split file of this name, or no script that can be used.
    """
    if not holds_episodes(path):
        return None
    return statistics_of_set(read_entity_set(path)[0], split)
