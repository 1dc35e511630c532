"""The scores of an evaluation of episodes: every metric per method, tier and episode; pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....schemas.canonical import plain, plain_fields
from ....schemas.entities import ALL, TIERS, TYPES
from ....schemas.text import counted
from ..facts import EpisodeFacts
from ..metrics.aggregate import Definitions, Number, numbers
from ..metrics.catalogue import METRICS, EntityMetric
from ..metrics.decay import SIGNALS, GapCurve, GapPair, gap_curves, gap_pairs
from ..metrics.diagnostics import EntityDetail, entity_details
from ..metrics.tallies import Tally, tally


@dataclass(frozen=True, slots=True)
class GateCounts:
    """How many appearances the gate let through in an episode; no metric."""

    present: int  # appearances that are present
    admitted: int  # those that are compared
    gated: int  # those that were held back
    unscored: int  # those that were admitted without a fidelity


@dataclass(frozen=True)
class EpisodeScore:
    """One episode of one method."""

    episode_id: str  # the episode
    tier: str | None  # its tier; None where nobody said
    source: str  # the film that it was made from
    shots: int  # how many it has
    tallies: Mapping[str, Tally]  # metric -> value and counts; only of pillars that were evaluated
    gate: GateCounts | None = None  # what the gate did; None where nothing was compared across shots
    entities: tuple[EntityDetail, ...] = ()  # its recurring entities
    pairs: tuple[GapPair, ...] = field(default=(), repr=False)  # pairs of appearances, with their gaps

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        own = ("episode_id", "tier", "source", "shots", "gate", "entities")
        return {**{name: plain(getattr(self, name)) for name in own}, "metrics": plain(self.tallies)}


@dataclass(frozen=True)
class MethodScores:
    """One method."""

    method: str  # the method
    tiers: Mapping[str, Mapping[str, Number]]  # tier -> metric -> its number; ``all`` has every episode
    curves: tuple[GapCurve, ...]  # similarity by gap, per signal and type
    episodes: tuple[EpisodeScore, ...] = field(repr=False)  # every episode

    @property
    def numbers(self) -> Mapping[str, Number]:
        """Metric -> its number over all episodes."""
        return self.tiers[ALL]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        own = ("method", "tiers", "episodes")
        return {**{name: plain(getattr(self, name)) for name in own}, "gap_decay": plain(self.curves)}


@dataclass(frozen=True)
class EntityScores:
    """The scores of an evaluation of episodes."""

    definitions: Definitions  # the named definitions that were used
    methods: tuple[MethodScores, ...]  # one entry per method, sorted
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON."""
        return {"kind": "episodes", **plain_fields(self)}

    def lines(self) -> Iterator[str]:
        """Yield every metric with raw mean, coverage and counts, for people."""
        yield f"episodes ({self.definitions.named()})"
        yield from (f"note: {note}" for note in self.notes)
        for method in self.methods:
            shots = sum(episode.shots for episode in method.episodes)
            episodes = counted(len(method.episodes), "episode")
            yield ""
            yield f"{method.method}: {episodes}, {counted(shots, 'shot')}"
            head = ("value", "raw", "coverage", "passed", "skipped", "failed", "absent", "missing", "unknown")
            yield f"  {'':<34}" + "".join(f"{name:>10}" for name in head)
            for name, each in method.numbers.items():
                counts = (f"{each.score.counts.get(key, '-'):>10}" for key in head[3:])
                values = (f"{_shown(value):>10}" for value in (each.value, each.raw, each.coverage))
                yield f"  {name:<34}" + "".join([*values, *counts])
            for curve in method.curves:
                bins = (
                    f"{label}: {_shown(score.value)} ({score.counts['pairs']})"
                    for label, score in curve.bins.items()
                )
                yield f"  {curve.type} by gap, {curve.signal}: " + ", ".join(bins)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def score_episode(facts: EpisodeFacts) -> EpisodeScore:
    """Return the values and counts of an episode, of the pillars that were evaluated."""
    tallies = {metric.name: tally(metric, facts) for metric in METRICS if metric.pillar in facts.pillars}
    across = 3 in facts.pillars
    return EpisodeScore(
        facts.episode_id, facts.tier, facts.source, len(facts.shots), tallies, _gate(facts),
        tuple(entity_details(facts)) if across else (), tuple(gap_pairs(facts)) if across else (),
    )  # fmt: skip


def _gate(facts: EpisodeFacts) -> GateCounts | None:
    if facts.gate is None:
        return None
    admitted, gated, unscored = (
        sum(len(getattr(gate, name)) for gate in facts.gate.values())
        for name in ("pool", "gated", "unscored")
    )
    return GateCounts(admitted + gated, admitted, gated, unscored)


def score_methods(
    episodes: Iterable[tuple[str, EpisodeScore]], definitions: Definitions
) -> tuple[MethodScores, ...]:
    """Return the scores of methods."""
    methods: dict[str, list[EpisodeScore]] = defaultdict(list)
    for method, episode in episodes:
        methods[method].append(episode)
    return tuple(_method(method, some, definitions) for method, some in sorted(methods.items()))


def _method(method: str, episodes: Sequence[EpisodeScore], definitions: Definitions) -> MethodScores:
    metrics = [metric for metric in METRICS if any(metric.name in each.tallies for each in episodes)]
    tiers = {ALL: list(episodes)}
    for tier in dict.fromkeys([*TIERS, *sorted({each.tier for each in episodes if each.tier})]):
        if some := [each for each in episodes if each.tier == tier]:
            tiers[tier] = some
    pairs = [(each.source, pair) for each in episodes for pair in each.pairs]
    there = {pair[:2] for _, pair in pairs}
    signals = [(signal, kind) for kind in TYPES for signal in SIGNALS if (signal, kind) in there]
    return MethodScores(
        method,
        {tier: numbers(metrics, _rows(metrics, some), definitions) for tier, some in tiers.items()},
        gap_curves(pairs, signals, definitions),
        tuple(episodes),
    )


def _rows(
    metrics: Sequence[EntityMetric], episodes: Sequence[EpisodeScore]
) -> list[tuple[str, Mapping[str, Tally]]]:
    nothing = Tally(None)
    return [
        (each.source, {metric.name: each.tallies.get(metric.name, nothing) for metric in metrics})
        for each in episodes
    ]
