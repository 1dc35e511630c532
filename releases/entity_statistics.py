"""Statistics of a set of episodes, by the tiers of its splits."""

from ..validators.entities.measures import measure
from ..validators.entities.statistics import EntityStatistics, entity_statistics
from ..validators.entities.view import view_of
from .entity_tree import EntitySet


def statistics_of_set(entity_set: EntitySet, split: str | None = None) -> EntityStatistics:
    """Return the statistics of a set, by the tiers of one of its split files.

    Raises:
        InputError: there is no split file of this name.
    """
    tiers = entity_set.tiers(split)
    measured = (measure(view_of(one.episode_id, one.script)) for one in entity_set.episodes)
    return entity_statistics(measured, tiers)
