"""How many questions a bank takes: at least, if all passes at once, and at most."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...schemas.text import counted
from .candidates import DrawSettings
from .list_references import ReferenceSettings
from .owners import classify_by_rules
from .scripts import MemoryScript


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """What a build asks."""

    episodes: int  # how many
    characters: int  # scheduled ones, each with a portrait
    locations: int  # each with a panorama
    objects: int  # all of them
    alone: int  # objects with a picture of their own, as rules classify them
    kept: int  # entities that a person saw to; nobody is asked about these
    texts: int  # questions about texts: objects, styles, prompts
    pictures: int  # pictures if all pass at once
    looks: int  # questions about pictures then
    most_pictures: int  # pictures if nothing ever passes
    most_looks: int  # questions about pictures at most, whatever happens

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        lines = [
            f"{counted(self.episodes, 'episode')}: {counted(self.characters, 'character')},"
            f" {counted(self.locations, 'location')}, {counted(self.objects, 'object')}"
            f" ({self.alone:,} stand alone, by rules)"
        ]
        if self.kept:
            lines.append(f"{counted(self.kept, 'entity')} left as a person made them")
        if self.texts or self.pictures:
            lines.append(
                f"questions about texts: {self.texts:,}; pictures: {self.pictures:,} if all pass at once,"
                f" at most {self.most_pictures:,}; questions about pictures: {self.looks:,}, at most"
                f" {self.most_looks:,}"
            )
        return lines


def budget_of(
    scripts: Sequence[MemoryScript],
    drawing: DrawSettings,
    listing: ReferenceSettings,
    *,
    agent: bool,
    asks_style: bool,
) -> MemoryBudget:
    """Return what a build of some episodes asks."""
    kept = set(listing.kept)
    counts = {"character": 0, "location": 0, "object": 0, "alone": 0, "kept": 0}
    portraits = panoramas = 0
    for script in scripts:
        for entity in script.entities:
            counts[entity.type] += 1
            alone = entity.type == "object" and classify_by_rules(entity, script).owner is None
            counts["alone"] += alone
            if f"{script.episode_id}/{entity.key}" in kept:
                counts["kept"] += 1
            elif entity.type == "location":
                panoramas += 1
            elif entity.type == "character" or alone:
                portraits += 1
    drawn = drawing.model is not None
    if not drawn:
        portraits = panoramas = 0
    tries = drawing.retries + 1 if drawing.verify else 1
    pictures = portraits * drawing.candidates + panoramas
    viewed = drawn and drawing.viewer is not None
    looks = portraits * ((drawing.candidates > 1) + drawing.verify) if viewed else 0
    return MemoryBudget(
        episodes=len(scripts), characters=counts["character"], locations=counts["location"],
        objects=counts["object"], alone=counts["alone"], kept=counts["kept"],
        texts=agent * (counts["object"] + (portraits + panoramas if drawn else 0))
        + asks_style * len(scripts),
        pictures=pictures, looks=looks, most_pictures=pictures * tries, most_looks=looks * tries,
    )  # fmt: skip
