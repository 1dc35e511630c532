"""Counts over a set of shot scripts, as in ViStoryBench, section C; a pure function of its parts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...schemas.canonical import Json
from ...schemas.shots import ShotScript, StoryFacts
from ..statistics import NO_VALUE, distribution
from .script_rules import LISTS, read_camera

PUBLISHED: Mapping[str, float] = {
    "stories": 80,
    "shots": 1317,
    "shots_per_story": 16.5,
    "characters": 344,
    "references": 509,
    "characters_with_several_references": 89,
}
"""What the paper gives of its set; shown beside a set's own numbers, which need not be the same."""


@dataclass
class ShotCounts:
    """Takes stories one by one; all it keeps are counts."""

    lengths: list[int] = field(default_factory=list)  # shots of each story
    references: list[int] = field(default_factory=list)  # reference images of each character
    tables: dict[str, Counter[str]] = field(default_factory=dict)  # name of a distribution -> value -> count

    def add(self, script: ShotScript, facts: StoryFacts | None, references: Mapping[str, int]) -> None:
        """Count one story.

        ``references``: character key -> number of reference images.
        """
        self.lengths.append(len(script.shots))
        self.references += [references.get(key, 0) for key in script.characters]
        self._count("story_type", script.kind)
        self._count("style_category", facts.style if facts else None)
        self._count("culture", facts.culture if facts else None)
        realistic = facts.realistic if facts else None
        self._count("realism", None if realistic is None else "realistic" if realistic else "unrealistic")
        for key, sheet in script.characters.items():
            known = facts.characters.get(key) if facts else None
            self._count("character_tag", sheet.tag)
            self._count("gender", known.gender if known else None)
        for shot in script.shots:
            self._count("characters_on_stage", str(len(script.cast(shot))))
            camera = read_camera(shot.perspective.of("en") if shot.perspective is not None else "")
            for name, value in zip(LISTS, camera.words, strict=True):
                self._count(name, value)

    def _count(self, name: str, value: str | None) -> None:
        self.tables.setdefault(name, Counter())[value or NO_VALUE] += 1

    def document(self) -> dict[str, Json]:
        """Return totals, each beside the published one, and the distributions with their targets."""
        stories, shots = len(self.lengths), sum(self.lengths)
        own = {
            "stories": stories,
            "shots": shots,
            "shots_per_story": round(shots / stories, 6) if stories else 0.0,
            "characters": len(self.references),
            "references": sum(self.references),
            "characters_with_several_references": sum(count > 1 for count in self.references),
        }
        return {
            "kind": "shots",
            "totals": own,
            "published": dict(PUBLISHED),
            "shots_per_story": _span(self.lengths),
            "references_per_character": _span(self.references),
            **{name: distribution(name, counts) for name, counts in self.tables.items()},
        }


def shot_statistics(
    stories: Iterable[tuple[ShotScript, StoryFacts | None, Mapping[str, int]]],
) -> dict[str, Json]:
    """Return the counts over stories, each with its facts and its numbers of reference images."""
    counts = ShotCounts()
    for script, facts, references in stories:
        counts.add(script, facts, references)
    return counts.document()


def _span(numbers: list[int]) -> dict[str, Json]:
    return {"least": min(numbers, default=0), "most": max(numbers, default=0)}
