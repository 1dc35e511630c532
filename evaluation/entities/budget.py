"""What an evaluation of episodes takes, by rule: what is looked at, and how many questions are asked."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...releases.entities.tree import EntitySet, Episode
from ...schemas.text import tallied, tallies
from .entities import entity_parts
from .judging.settings import LocationSettings
from .looking.settings import Grounding, looking_budget, scheduled


@dataclass(frozen=True, slots=True)
class EpisodeBudget:
    """How much an evaluation takes at most: everything there, seen and admitted; over all methods."""

    episodes: int  # episodes
    shots: int  # scheduled shots
    frames: int = 0  # frames that are grounded: passes of the detector's backbone
    queries: int = 0  # pairs of a frame and an entity
    crops: int = 0  # appearances: crops that are compared with their descriptions, and encoded
    calls: Mapping[str, int] = field(default_factory=dict)  # what is asked -> calls of the judge
    errors: Mapping[str, int] = field(default_factory=dict)  # what is wrong with the set: code -> how often

    @property
    def pictures(self) -> int | None:
        """How many frames models look at, crops left out; None if that is not known."""
        return self.frames or None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain JSON."""
        return {**asdict(self), "calls": dict(self.calls), "errors": dict(self.errors)}

    def lines(self) -> Iterator[str]:
        """Yield the numbers as lines for people."""
        yield f"{tallied(self.episodes, 'episodes')} of {self.shots} shots to be looked at"
        if self.frames:
            yield (
                f"at most {self.frames} frames through the detector's backbone, "
                + tallies({"queries": self.queries, "crops": self.crops})
            )
        if self.calls:
            listed = tallies(self.calls)
            yield f"at most {sum(self.calls.values())} calls of the judge: {listed}"
        for code, count in self.errors.items():
            yield f"the set: {count} {code}; fabula validate lists them, with what to do"


def budget_of(
    entity_set: EntitySet, pillars: Collection[int], grounding: Grounding, locations: LocationSettings
) -> EpisodeBudget:
    """Return what evaluating one method takes."""
    looked = looking_budget(entity_set, grounding)
    budget = EpisodeBudget(len(entity_set.episodes), looked.shots)
    if not {2, 3} & {*pillars}:
        return budget
    calls = {"fidelity": looked.appearances}
    if 2 in pillars:
        calls["action"] = sum(
            bool(shot.action.strip()) for episode in entity_set.episodes for shot in episode.script.shots()
        )
    if 3 in pillars:
        pairs, places = _compared(entity_set, locations)
        calls |= {"pair": pairs, "location": places}
    return EpisodeBudget(
        budget.episodes, looked.shots, looked.frames, looked.queries, looked.appearances,
        calls if locations.judges else {},
    )  # fmt: skip


def for_methods(budget: EpisodeBudget, methods: int, errors: Mapping[str, int]) -> EpisodeBudget:
    """Return what several methods take."""
    times = {name: methods * count for name, count in budget.calls.items()}
    return EpisodeBudget(
        methods * budget.episodes, methods * budget.shots, methods * budget.frames,
        methods * budget.queries, methods * budget.crops, times, errors,
    )  # fmt: skip


def _compared(entity_set: EntitySet, locations: LocationSettings) -> tuple[int, int]:
    """Return how many pairs of characters and objects are compared, and pairs or sets of locations."""
    pairs = places = 0
    for episode in entity_set.episodes:
        for key, count in _appearances(episode).items():
            if count > 1 and entity_parts(key)[0] != "location":
                pairs += count - 1
            elif count > 1:
                places += count - 1 if locations.definition == "paper" else 1
    return pairs, places


def _appearances(episode: Episode) -> Counter[str]:
    return Counter(key for shot in episode.script.shots() for key in scheduled(shot))
