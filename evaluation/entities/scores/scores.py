"""The scores of an evaluation of episodes: every metric per method, tier and episode; pure."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import InputError
from ....schemas.canonical import plain, plain_fields
from ....schemas.entities import ALL, TIERS, TYPES, EntityType
from ....schemas.text import counted
from ....validators.resampling import Floats, divided, resampled_sums
from ...archive.archive import Difference, read_archive, read_manifest
from ...archive.replies import archive_notes
from ...comparing import method_pairs, read_sides
from ...stats.uncertainty import TOLERANCE, Pair, Paired, cohen_d, known, paired, paired_lines, short
from ..archived import EpisodeFacts, entity_key, read_facts
from ..metrics.aggregate import (
    COUNTED,
    SIGNALS,
    Counters,
    Definitions,
    EntityDetail,
    GapCurve,
    GapPair,
    Number,
    ShotDetail,
    Tally,
    entity_details,
    gap_curves,
    gap_pairs,
    numbers,
    tally,
)
from ..metrics.catalogue import METRICS, EntityMetric, metric_named
from ..published import (
    RESULTS,
    Counted,
    ManifestRule,
    PublicEntity,
    PublicResult,
    Result,
    Schedule,
    check_b5,
    notes_of,
    read_results,
)


@dataclass(frozen=True, slots=True)
class GateCounts:
    """How many appearances the gate let through in an episode; no metric."""

    present: int  # appearances that are present
    admitted: int  # those that are compared
    gated: int  # those that were held back
    unscored: int  # those that were admitted without a fidelity


@dataclass(frozen=True)
class EpisodeScore:
    episode_id: str  # the episode
    tier: str | None  # its tier; None where nobody said
    source: str  # the film that it was made from
    shots: int  # how many it has
    tallies: Mapping[str, Tally]  # metric -> value and counts; only of pillars that were evaluated
    gate: GateCounts | None = None  # what the gate did; None where nothing was compared across shots
    entities: tuple[EntityDetail, ...] = ()  # its recurring entities
    pairs: tuple[GapPair, ...] = field(default=(), repr=False)  # pairs of appearances, with their gaps

    def as_json(self) -> dict[str, Any]:
        own = ("episode_id", "tier", "source", "shots", "gate", "entities")
        return {**{name: plain(getattr(self, name)) for name in own}, "metrics": plain(self.tallies)}


@dataclass(frozen=True)
class MethodScores:
    method: str  # the method
    tiers: Mapping[str, Mapping[str, Number]]  # tier -> metric -> its number; ``all`` has every episode
    curves: tuple[GapCurve, ...]  # similarity by gap, per signal and type
    episodes: tuple[EpisodeScore, ...] = field(repr=False)  # every episode

    @property
    def numbers(self) -> Mapping[str, Number]:
        """Metric -> its number over all episodes."""
        return self.tiers[ALL]

    def as_json(self) -> dict[str, Any]:
        own = ("method", "tiers", "episodes")
        return {**{name: plain(getattr(self, name)) for name in own}, "gap_decay": plain(self.curves)}


@dataclass(frozen=True)
class EntityScores:
    """The scores of an evaluation of episodes."""

    definitions: Definitions  # the named definitions that were used
    methods: tuple[MethodScores, ...]  # one entry per method, sorted
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
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
            head = ("value", "raw", "coverage", *COUNTED)
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


# -- Scoring the archive of an evaluation of episodes: ours, or one made of the public evaluator's results
#
# The public evaluator's result of one episode as the tallies, pairs and diagnostics of ours.

GATE = "_meta_cross_shot_gate"
NO_SCHEDULE = "the schedule is not known: import the results again with --release"
OTHER_UNIT = "the public files count shots, not appearances"
NOTHING = Counted(value=None, n_evaluated=0, n_failed=0, n_skipped=0)
"""A metric that a file leaves out, as the evaluator does where no shot contributed."""
_TYPES: Mapping[str, EntityType] = {"face": "character", "object": "object"}


def score_result(result: Result, pillars: frozenset[int]) -> EpisodeScore:
    """Return an episode's result in the form of our scores."""
    tuples, schedule = result.tuples, result.schedule
    tallies = {
        metric.name: _tally(metric, tuples.get(metric.name, NOTHING), schedule)
        for metric in METRICS
        if metric.pillar in pillars
    }
    shots = None if schedule is None else {key: index for index, key in enumerate(schedule.shots)}
    details = list(_entities(result.entry))
    entry = result.entry
    pairs = (*_crops(entry), *([] if shots is None else _pairs(details, shots)))
    source = entry.episode_id.partition("__")[0]
    return EpisodeScore(
        entry.episode_id,
        entry.tier,
        source,
        entry.num_shots,
        tallies,
        _gate_counts(entry),
        tuple(details),
        pairs,
    )


def _tally(metric: EntityMetric, given: Counted, schedule: Schedule | None) -> Tally:
    """Return an episode's counts; what was evaluated without giving a value passed nowhere."""
    passed = 0 if given.value is None else given.n_evaluated
    public = Counters(given.n_evaluated, given.n_failed, given.n_skipped)
    why = OTHER_UNIT if metric.group == "fidelity" else NO_SCHEDULE if schedule is None else None
    failed = public.failed if metric.group != "quality" else 0
    eligible = 0 if schedule is None else schedule.eligible[metric.name]
    return Tally(
        given.value, passed, failed=failed, unknown=max(0, eligible - passed - failed),
        single=0 if schedule is None else schedule.single[metric.name], public=public, uncorrected=why,
    )  # fmt: skip


def _gate_counts(entry: PublicResult) -> GateCounts | None:
    counts = entry.metrics.get(GATE)
    if counts is None:
        return None
    present, gated = counts.n_evaluated, counts.n_skipped
    return GateCounts(present, present - gated, gated, counts.n_failed)


def _crops(entry: PublicResult) -> Iterator[GapPair]:
    for pair in entry.gap_decay_data:
        key = entity_key(pair.entity_type, pair.entity_name)
        yield GapPair("crops", pair.entity_type, key, pair.gap, pair.similarity)


def _entities(entry: PublicResult) -> Iterator[EntityDetail]:
    for name, details in entry.per_entity_scores.items():
        prefix, _, entity = name.partition("_")
        if prefix in _TYPES:
            yield _entity(entity_key(_TYPES[prefix], entity), _TYPES[prefix], details)


def _entity(entity: str, kind: EntityType, details: PublicEntity) -> EntityDetail:
    judged = {pair.later_shot: pair for pair in details.vlm_per_pair_sims}
    near = {shot.shot: shot for shot in details.per_shot_sim_to_centroid}
    shots = tuple(
        ShotDetail(
            key, "present", admitted=True, fidelity=None,
            clip=near[key].clip_text_sim if key in near else None,
            to_centroid=near[key].sim_to_centroid if key in near else None,
            same=float(judged[key].is_same) if key in judged else None,
            similarity=judged[key].similarity if key in judged else None,
        )
        for key in dict.fromkeys((*near, *judged))  # a judged shot may lack a vector
    )  # fmt: skip
    return EntityDetail(
        entity, kind, shots, details.vlm_anchor_shot, details.mean_sim_to_centroid,
        details.min_sim_to_centroid, details.max_sim_to_centroid, details.pairwise_median_sim,
        details.worst_shot, details.representative_shot, details.vlm_pair_count, details.vlm_pair_accuracy,
    )  # fmt: skip


def _pairs(details: Sequence[EntityDetail], shots: Mapping[str, int]) -> Iterator[GapPair]:
    """Yield judged pairs and neighbouring appearances, which the files name by shot."""
    for entity in details:
        kind: EntityType = "character" if entity.type == "character" else "object"
        for shot in entity.shots:
            if shot.similarity is not None and entity.anchor is not None:
                gap = abs(shots[shot.shot] - shots[entity.anchor])
                yield GapPair("judged", kind, entity.entity, gap, shot.similarity)
        near = sorted(
            (shots[shot.shot], shot.to_centroid) for shot in entity.shots if shot.to_centroid is not None
        )
        for (left, one_near), (right, other_near) in pairwise(near):
            yield GapPair("centroid", kind, entity.entity, right - left, (one_near + other_near) / 2)


Scored = tuple[str, EpisodeScore]
"""Method and episode."""


def score_folder(folder: Path, definitions: Definitions) -> EntityScores:
    """Return the scores of an evaluation folder of episodes."""
    archive = read_archive(folder)
    notes = list(archive_notes(archive.manifest))
    if (Path(folder) / RESULTS).exists():
        results = read_results(Path(folder) / RESULTS)
        pillars = frozenset().union(*(result.pillars for result in results))
        episodes = [(each.method, score_result(each, pillars)) for each in results]
        notes.extend(notes_of(all(each.schedule is not None for each in results)))
    else:
        facts = read_facts(folder, archive)
        episodes = [(each.method, score_episode(each)) for each in facts]
    notes.extend(_score_notes(episodes, definitions))
    return EntityScores(definitions, score_methods(episodes, definitions), tuple(notes))


def _score_notes(episodes: Sequence[Scored], definitions: Definitions) -> Iterator[str]:
    sources = len({episode.source for _, episode in episodes})
    yield from definitions.notes(sources, "source")
    if definitions.coverage == "code":
        yield (
            "code counts every entity of another type as skipped, and nothing that is absent or missing: its "
            "coverage compares with nothing else"
        )
    if definitions.coverage in ("b5", "code"):
        yield "a plain mean of episodes: missing shots and failures do not lower it"
    for method in dict.fromkeys(method for method, _ in episodes):
        gates = [episode.gate for name, episode in episodes if name == method and episode.gate is not None]
        if gates:
            present, gated = sum(gate.present for gate in gates), sum(gate.gated for gate in gates)
            unscored = sum(gate.unscored for gate in gates)
            yield (
                f"{method}: the gate held back {gated} of {counted(present, 'present appearance')}; "
                f"{unscored} were let through without a fidelity"
            )


# -- Methods against each other over the episodes that both have (EntityBench, Tables 5, 16 to 18 and 23)

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
        return {
            "kind": "episodes",
            **plain_fields(self),
            "wins": [
                {"first": first, "second": second, "better": [a, b], "better_by_both_tests": [c, d]}
                for (first, second), (a, b, c, d) in self.wins().items()
            ],
        }

    def lines(self) -> Iterator[str]:
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
        ours.method, theirs.method, differences, {"metric": name}, float(differences.mean()), replicates,
        float(np.ptp(metric_named(name).range)),
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
