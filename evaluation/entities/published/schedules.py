"""What the script of an episode makes eligible, before any video is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass

from ....schemas.entities import LISTS, EntityEpisode
from ..entities import entity_key, names_any
from ..facts import Appearance, EpisodeFacts, ShotFacts
from ..metrics.catalogue import METRICS
from ..metrics.tallies import tally


@dataclass(frozen=True)
class Schedule:
    """What the numbers of an episode need of its script."""

    shots: tuple[str, ...]  # keys of its shots, in story order
    eligible: Mapping[str, int]  # metric -> how many instances it has
    single: Mapping[str, int]  # metric -> how many entities of its type are scheduled in one shot only


def unseen(script: EntityEpisode, episode_id: str, method: str = "", tier: str | None = None) -> EpisodeFacts:
    """Return the facts of an episode without any video: all that it schedules, and nothing else."""
    shots = []
    for index, shot in enumerate(script.shots()):
        appearances = tuple(
            Appearance(entity_key(kind, name), kind, name)
            for kind in LISTS.values()
            for name in shot.scheduled.names(kind)
        )
        asks = names_any(shot.action, shot.scheduled.objects)
        shots.append(
            ShotFacts(
                shot.key, index, shot.scene, shot.cut, reached=False, acts=bool(shot.action),
                names_object=asks, appearances=appearances,
            )
        )  # fmt: skip
    return EpisodeFacts(method, episode_id, tier, tuple(shots))


def schedule_of(script: EntityEpisode, episode_id: str) -> Schedule:
    """Return what an episode's script makes eligible."""
    facts = unseen(script, episode_id)
    tallies = {metric.name: tally(metric, facts) for metric in METRICS}
    return Schedule(
        tuple(shot.key for shot in facts.shots),
        {name: each.eligible for name, each in tallies.items()},
        {name: each.single for name, each in tallies.items()},
    )
