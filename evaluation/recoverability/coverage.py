"""What was asked and what came back, per judge and condition, and which generations are valid (Table 57)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ...schemas.judgement import EvaluationManifest, JudgementOutcome
from .items import Items
from .replies import Replies

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Generations:
    """The generations of one method."""

    requested: Mask = field(repr=False)  # which were asked for, shape (seeds, stories)
    valid: Mask = field(repr=False)  # which of them can be judged, shape (seeds, stories)

    def as_json(self) -> dict[str, Any]:
        """Return the counts of Table 57. A story is valid where at least one of its generations is."""
        requested, valid = int(self.requested.sum()), int(self.valid.sum())
        return {
            "stories_requested": int(self.requested.any(axis=0).sum()),
            "stories_valid": int(self.valid.any(axis=0).sum()),
            "generations_requested": requested,
            "generations_valid": valid,
            "generations_invalid": requested - valid,
            "invalid_rate": (requested - valid) / requested if requested else None,
        }


def invalid_generations(manifest: EvaluationManifest, method: str) -> Iterator[tuple[str, int | None]]:
    """Yield story and seed of each generation of a method that cannot be judged, as the manifest says."""
    listed = manifest.about(method).get("invalid")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("story_id"), str):
            yield entry["story_id"], entry.get("seed")


def generations(manifest: EvaluationManifest, replies: Replies, items: Items) -> dict[str, Generations]:
    """Return method -> its generations.

    Every scored story is requested of every method with each of the method's seeds: those that the manifest
    names, else those that judgements are about. All are valid but those that the manifest calls invalid.
    """
    places = {seed: index for index, seed in enumerate(replies.seeds)}
    made = {}
    for number, method in enumerate(replies.methods):
        requested = np.zeros((len(places), items.stories), dtype=bool)
        listed = manifest.about(method).get("seeds")
        named = [places[seed] for seed in places if isinstance(listed, list) and seed in listed]
        requested[named or _judged_seeds(replies, number)] = True
        valid = requested.copy()
        for story, seed in invalid_generations(manifest, method):
            if story in items.story_places and seed in places:
                valid[places[seed], items.story_places[story]] = False
        made[method] = Generations(requested, valid)
    return made


def requested_of(manifest: EvaluationManifest) -> tuple[set[str], set[int | None]]:
    """Return the methods that the manifest names, and the seeds that it names for any of them."""
    methods = manifest.subject.get("methods")
    names = set(methods) if isinstance(methods, Mapping) else set()
    seeds: set[int | None] = set()
    for name in names:
        listed = manifest.about(name).get("seeds")
        named = listed if isinstance(listed, list) else []
        seeds.update(seed for seed in named if seed is None or isinstance(seed, int))
    return names, seeds


def _judged_seeds(replies: Replies, method: int) -> list[int]:
    seeds: set[int] = set()
    for rows in replies.columns.values():
        seeds.update(rows.seed[rows.method == method].tolist())
    return sorted(seeds - {-1})


OUTCOMES: tuple[str, ...] = get_args(JudgementOutcome)


@dataclass(frozen=True)
class Coverage:
    """The replies of one judge to one kind of question under one condition."""

    judge: str  # its spec
    method: str | None  # whose outputs were shown; None under text-only evidence
    kind: str  # of question
    condition: str  # evidence
    asked: int  # how many replies there are, votes counted apart
    outcomes: dict[str, int]  # outcome -> how many; all outcomes, in a fixed order

    @property
    def answered(self) -> float:
        """Share of what was asked that was answered."""
        return self.outcomes["answered"] / self.asked

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "answered_share": self.answered}


def coverage_of(replies: Replies) -> tuple[Coverage, ...]:
    """Return one entry per judge, method, kind and condition that anything was asked under."""
    groups: dict[tuple[str, str | None, str, str], Counter[str]] = {}
    for (judge, method, kind, condition, outcome), count in replies.outcomes.items():
        groups.setdefault((judge, method, kind, condition), Counter())[outcome] += count
    order = sorted(groups, key=lambda group: (group[0], group[1] or "", *group[2:]))
    return tuple(
        Coverage(*group, groups[group].total(), {name: groups[group][name] for name in OUTCOMES})
        for group in order
    )
