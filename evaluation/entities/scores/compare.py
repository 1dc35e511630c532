"""Methods against each other over the episodes that both have (EntityBench, Tables 5, 16 to 18 and 23)."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import InputError
from ....schemas.canonical import plain_fields
from ....schemas.entities import ALL
from ....validators.resampling import Floats, divided, resampled_sums
from ...archive.archive import Difference, read_manifest
from ...comparing import method_pairs, read_sides
from ...stats.paired import Pair, Paired, cohen_d, paired, paired_lines, short
from ...stats.ranks import TOLERANCE, known
from ..metrics.aggregate import Definitions
from ..metrics.catalogue import METRICS, metric_named
from ..published import ManifestRule, check_b5
from .scores import EntityScores, EpisodeScore, MethodScores, score_folder

UNIT = "episode"


@dataclass(frozen=True)
class Effect:
    """One metric of two methods over the episodes of a tier that both have a value in."""

    metric: str  # its name
    tier: str  # the tier; ``all`` for every episode
    first: str  # method
    second: str  # method
    n: int  # how many episodes
    difference: float | None  # mean over them of the first less the second; None without any
    d: float | None  # Cohen's d with pooled variance: the same over the root of the mean of both variances
    d_z: float | None  # of paired differences: their mean over their standard deviation
    gap: float | None  # difference of the two numbers of the tier, under the chosen definition (Table 23)
    # the method whose number there is the better one, whatever chance has to say; None if neither
    better: str | None
    paired: Paired | None = None  # interval, tests and wins over all episodes; None for a tier

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "paired"}
        return {**fields, "tests": None if self.paired is None else self.paired.as_json()}


@dataclass(frozen=True)
class EntityComparisons:
    """Methods against each other."""

    definitions: Definitions  # the named definitions that were used
    effects: tuple[Effect, ...]  # one entry per metric, tier and pair of methods that share an episode
    differences: tuple[Difference, ...] = ()  # parts of the protocols that were allowed to differ
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    @property
    def comparisons(self) -> tuple[Paired, ...]:
        """The paired tests over all episodes, corrected together."""
        return tuple(effect.paired for effect in self.effects if effect.paired is not None)

    def wins(self) -> Mapping[tuple[str, str], tuple[int, int, int, int]]:
        """Return pair of methods -> metrics better in the first, in the second; the same by both tests."""
        made: dict[tuple[str, str], list[int]] = {}
        for effect in self.effects:
            if effect.paired is None:
                continue
            counts = made.setdefault((effect.first, effect.second), [0, 0, 0, 0])
            winner = effect.paired.winner(higher=metric_named(effect.metric).higher is not False)
            for offset, name in enumerate((effect.better, winner)):
                if name is not None:
                    counts[2 * offset + (name == effect.second)] += 1
        return {pair: (a, b, c, d) for pair, (a, b, c, d) in made.items()}

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "kind": "episodes",
            **plain_fields(self),
            "wins": [
                {"first": first, "second": second, "better": [a, b], "better_by_both_tests": [c, d]}
                for (first, second), (a, b, c, d) in self.wins().items()
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the comparisons for people."""
        for difference in self.differences:
            yield f"the protocols differ in {difference.path}"
        yield f"differences of episodes ({self.definitions.named()})"
        effects = {id(effect.paired): effect for effect in self.effects if effect.paired is not None}

        def pooled(pair: Paired) -> str:
            return f", pooled d={short(effects[id(pair)].d)}" if pair.tests else ""

        pairs = [effect.paired for effect in self.effects if effect.paired is not None]
        yield from paired_lines(pairs, 1, 3, pooled)
        for (first, second), (a, b, c, d) in self.wins().items():
            yield f"{first} is better in {a} metrics ({c} by both tests), {second} in {b} ({d})"
        yield from (f"note: {note}" for note in self.notes)


def compare_folders(
    first: Path,
    second: Path,
    definitions: Definitions,
    allowed: Collection[str] = (),
    rule: ManifestRule = "ours",
) -> EntityComparisons:
    """Compare the methods of two evaluation folders of episodes; of one, its methods with each other.

    ``rule``: what else must be the same; see :mod:`..published.importing`.
    """
    if rule == "b5" and Path(first).resolve() != Path(second).resolve():
        check_b5(read_manifest(first), read_manifest(second), allowed)
    sides = read_sides(first, second, lambda folder: score_folder(folder, definitions), allowed)
    pairs = method_pairs([scores.methods for scores in sides.scores])
    effects = entity_effects(pairs, definitions)
    if not effects:
        raise InputError.one(
            str(second), what="no two methods have a value for the same episode",
            fix="compare the same episodes; name one folder alone to compare the methods in it",
        )  # fmt: skip
    notes = (*sides.notes, *_notes(*sides.scores))
    return EntityComparisons(definitions, effects, sides.differences, tuple(dict.fromkeys(notes)))


def _notes(*scores: EntityScores) -> Iterator[str]:
    yield (
        "differences, d and tests are of the values of episodes, which coverage does not lower; the gap is "
        "of the numbers that fabula score gives"
    )
    yield "intervals and the bootstrap draw sources; the signed-rank test takes episodes as if independent"
    for some in scores:
        yield from some.notes


def entity_effects(
    pairs: Sequence[tuple[MethodScores, MethodScores]], definitions: Definitions
) -> tuple[Effect, ...]:
    """Return every metric of every pair, p-values corrected for their number; then those of the tiers."""
    compared = [
        (ours, theirs, metric.name, both)
        for ours, theirs in pairs
        for metric in METRICS
        if (both := _both(ours, theirs, metric.name, ALL))
    ]
    tests = paired(
        [_pair(ours, theirs, name, both, definitions) for ours, theirs, name, both in compared],
        UNIT,
        definitions,
    )
    whole = [
        _effect((ours, theirs), name, ALL, both, test)
        for (ours, theirs, name, both), test in zip(compared, tests, strict=True)
    ]
    by_tier = [
        _effect((ours, theirs), name, tier, _both(ours, theirs, name, tier))
        for ours, theirs, name, _ in compared
        for tier in ours.tiers
        if tier != ALL and tier in theirs.tiers
    ]
    return (*whole, *by_tier)


Both = list[tuple[str, float, float]]
"""Source, value of the first and of the second, of each episode that both have."""


def _both(ours: MethodScores, theirs: MethodScores, name: str, tier: str) -> Both:
    others = {episode.episode_id: _value(episode, name) for episode in theirs.episodes}
    both = []
    for episode in ours.episodes:
        value, other = _value(episode, name), others.get(episode.episode_id)
        if value is not None and other is not None and tier in (ALL, episode.tier):
            both.append((episode.source, value, other))
    return both


def _value(episode: EpisodeScore, name: str) -> float | None:
    tally = episode.tallies.get(name)
    return None if tally is None else tally.value


def _pair(ours: MethodScores, theirs: MethodScores, name: str, both: Both, definitions: Definitions) -> Pair:
    differences = np.array([a - b for _, a, b in both])
    replicates = _drawn([source for source, _, _ in both], differences, definitions)
    return Pair(
        ours.method, theirs.method, differences, {"metric": name}, float(differences.mean()), replicates
    )  # fmt: skip


def _drawn(sources: Sequence[str], differences: Floats, definitions: Definitions) -> Floats:
    """Return the mean difference in each resample of sources, shape (resamples,)."""
    _, index = np.unique(sources, return_inverse=True)
    columns = np.stack([np.bincount(index, differences), np.bincount(index).astype(np.float64)], axis=1)
    sums = resampled_sums(columns, definitions.resamples, definitions.seed)
    return divided(sums[:, 0], sums[:, 1])


def _effect(
    methods: tuple[MethodScores, MethodScores], name: str, tier: str, both: Both, test: Paired | None = None
) -> Effect:
    ours, theirs = methods
    first, second = (np.array([each[index] for each in both], dtype=np.float64) for index in (1, 2))
    values = [some.tiers[tier][name].value if name in some.tiers[tier] else None for some in methods]
    gap = None if values[0] is None or values[1] is None else values[0] - values[1]
    better = None
    if gap is not None and abs(gap) > TOLERANCE:
        better = ours.method if (gap > 0) == (metric_named(name).higher is not False) else theirs.method
    return Effect(
        name, tier, ours.method, theirs.method, len(both), float((first - second).mean()) if both else None,
        pooled_d(first, second), known(cohen_d(first - second)), gap, better, test,
    )  # fmt: skip


def pooled_d(first: Floats, second: Floats) -> float | None:
    """Return Cohen's d with pooled variance: difference of means over the root of the mean of both variances.

    ``first``: shape (n,). ``second``: shape (n,).

    Returned: None with fewer than two values, or where neither varies.
    """
    if len(first) < 2:
        return None
    spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    return float(first.mean() - second.mean()) / spread if spread > 1e-12 else None
