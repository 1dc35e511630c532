"""How the tallies of episodes become the number of a method: four definitions (EntityBench, B.4.1, B.5).

``eq23``: raw mean times coverage over everything that the schedule has (Eq. 23-25); what the gate held back,
what failed, what was not recognised and what is missing lower the coverage. Where nothing at all was scored,
whatever the reason, there is no value (the contract of B.5). A criterion that cannot be seen, as the judge
says, counts nowhere unless ``unseen`` is ``inside``. ``table15``: the same, but fidelity and
similarity to the centroid have a coverage of 1 as in Table 15: only shots without a video lower it. ``b5``:
the plain mean of the episodes that have a value. ``code``: likewise, with the public evaluator's counters
beside it, from which raw mean and coverage are computed by Eq. 24 and 25.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ....errors import ConfigError
from ....schemas.entities import TYPES, EntityType
from ....schemas.values import Score
from ....validators.resampling import Floats
from ...stats.uncertainty import Uncertainty
from ..archived import Answer, EpisodeFacts, ShotFacts, appearance_of
from .catalogue import EntityMetric, Instance, pairs_of_entity, similarities_to_centroid, vectors_of_pool

# -- How the instances of a metric become the value and the counts of an episode


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of the public evaluator for one metric of one episode."""

    evaluated: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """One metric of one episode."""

    value: float | None  # the episode's value; None where nothing was scored
    passed: int = 0  # instances that were scored
    skipped: int = 0  # those that the gate held back
    unseen: int = 0  # criteria of which the judge says that they cannot be seen
    failed: int = 0  # those without a usable reply, vector or measurement
    absent: int = 0  # those of entities that were not recognised in their shot
    missing: int = 0  # those of shots without a readable video
    unknown: int = 0  # those of which nobody says why they were not scored, as in results of others
    # entities of the metric's type that are scheduled in one shot only, which are not eligible
    single: int = 0
    public: Counters = Counters()  # what the public evaluator counts
    uncorrected: str | None = None  # why its corrected mean cannot be known; None where it can

    @property
    def eligible(self) -> int:
        """How many instances the schedule has."""
        return sum(getattr(self, name) for name in COUNTED)


COUNTED = ("passed", "skipped", "unseen", "failed", "absent", "missing", "unknown")
"""What becomes of eligible instances, in the order in which it is printed."""


def tally(metric: EntityMetric, facts: EpisodeFacts) -> Tally:
    instances = list(metric.instances(facts))
    fates = Counter(each.fate for each in instances)
    return Tally(
        episode_value(metric, instances), fates["scored"], fates["skipped"], fates["unseen"], fates["failed"],
        fates["absent"], fates["missing"], 0, _single(metric, facts), _public(metric, facts, instances),
    )  # fmt: skip


def episode_value(metric: EntityMetric, instances: Iterable[Instance]) -> float | None:
    """Return the mean of what was scored; of fidelity, the mean over shots of their means (Eq. 16-18)."""
    scored = [(each.shot, each.value) for each in instances if each.value is not None]
    if not scored:
        return None
    if not metric.by_shot:
        return _mean([value for _, value in scored])
    shots: dict[str, list[float]] = {}
    for shot, value in scored:
        shots.setdefault(shot, []).append(value)
    return _mean([_mean(values) for values in shots.values()])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _single(metric: EntityMetric, facts: EpisodeFacts) -> int:
    """Return how many entities cannot recur, for a metric of recurring ones."""
    if metric.pillar != 3 or metric.type is None:
        return 0
    seen = Counter(
        each.entity for shot in facts.shots for each in shot.appearances if each.type == metric.type
    )
    return list(seen.values()).count(1)


def _public(metric: EntityMetric, facts: EpisodeFacts, instances: Sequence[Instance]) -> Counters:
    """Return the counters as the public evaluator keeps them, with what it does not count.

    It counts shots for fidelity, nothing that failed or is absent there, no appearance that is not in the
    pool for centroids, and as skipped, for every metric of judged pairs and locations, each entity with an
    admitted appearance that has no second one or is of another type.
    """
    scored = [each for each in instances if each.fate == "scored"]
    if metric.group in ("quality", "presence", "centroid"):
        measured = len(scored)
        return Counters(measured, 0, len(facts.shots) - measured if metric.group == "quality" else 0)
    if metric.group == "fidelity":
        return Counters(len({each.shot for each in scored}))
    if metric.group == "action":
        return _public_action(metric, facts, len(scored))
    if metric.group == "transition":
        return Counters(len(scored), len(instances) - len(scored))
    return _public_judged(facts, instances)


def _public_action(metric: EntityMetric, facts: EpisodeFacts, scored: int) -> Counters:
    if metric.name != "intra_action_overall":
        return Counters(scored)
    shots = [shot for shot in facts.shots if shot.reached]
    asked = [shot for shot in shots if shot.acts]
    return Counters(scored, sum(not _is_answered(shot.action) for shot in asked), len(shots) - len(asked))


_ASKED = ("scored", "unseen", "failed")


def _public_judged(facts: EpisodeFacts, instances: Sequence[Instance]) -> Counters:
    pools = {entity: gate.pool for entity, gate in (facts.gate or {}).items() if gate.pool}
    judged = {each.entity for each in instances if len(pools.get(each.entity or "", ())) > 1}
    tried = [each for each in instances if each.entity in judged and each.fate in _ASKED]
    scored = sum(each.fate == "scored" for each in tried)
    answered = sum(_answered(facts, each) for each in tried)
    # A value that an answer lacks counts as skipped, an answer that there is not as failed.
    return Counters(scored, len(tried) - answered, len(pools.keys() - judged) + answered - scored)


def _answered(facts: EpisodeFacts, instance: Instance) -> bool:
    """Whether the judge answered, whatever the answer holds."""
    whole = facts.locations.get(instance.entity or "")
    pair = facts.pairs.get((instance.entity or "", instance.shot))
    return instance.fate == "scored" or _is_answered(whole if whole is not None else pair)


def _is_answered(answer: Answer | None) -> bool:
    return answer is not None and answer.outcome == "answered"


# --

Coverage = Literal["eq23", "table15", "b5", "code"]
Actions = Literal["inside", "outside"]
Unseen = Literal["outside", "inside"]
GapUnit = Literal["index", "intervening"]
NOTHING = "nothing was scored"


@dataclass(frozen=True, kw_only=True)
class Definitions(Uncertainty):
    """The definitions that the numbers of episodes depend on; how sure they are is :class:`.Uncertainty`'s.

    Attributes:
        coverage: how the values of episodes become one: ``eq23`` (raw mean times coverage over all
            that is scheduled), ``table15`` (likewise, fidelity and DINOv2 with coverage 1), ``b5`` (plain
            mean of episodes), or ``code`` (likewise, with the public evaluator's counters) [eq23].
        actions: whether failed replies about actions lower their corrected mean: ``inside`` as in
            the paper's text, ``outside`` as in its F.2 [inside].
        unseen: whether criteria that cannot be seen, as the judge says (null), lower the corrected
            mean: ``outside`` of what counts, or ``inside`` as if the reply had failed [outside].
        gap: a gap is the difference of shot ``index``, as in the paper's tables, or the number of
            ``intervening`` shots, as in its words [index].
    """

    coverage: Coverage = "eq23"
    actions: Actions = "inside"
    unseen: Unseen = "outside"
    gap: GapUnit = "index"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("coverage", Coverage), ("actions", Actions), ("unseen", Unseen),
                           ("gap", GapUnit)):  # fmt: skip
            if getattr(self, name) not in get_args(kind):
                raise ConfigError(
                    name, what=f"there is no {name} {getattr(self, name)!r}",
                    fix=f"choose {', '.join(get_args(kind))}",
                )  # fmt: skip

    def named(self) -> str:
        names = ("coverage", "actions", "unseen", "gap")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


MEANINGS: Mapping[Coverage, str] = {
    "eq23": "Corrected means: raw mean x coverage over all that is scheduled (Eq. 23)",
    "table15": "Corrected means, fidelity and DINOv2 with a coverage of 1 (Table 15)",
    "b5": "Plain means of episodes (B.5)",
    "code": "Plain means of episodes, as the public code has them",
}
"""Definition -> what its numbers are, for captions."""


@dataclass(frozen=True)
class Number:
    """One metric over some episodes of one method."""

    # the value under the chosen definition, with its interval and its counts: those of ``COUNTED``,
    # ``eligible``, ``episodes`` and ``episodes_counted``
    score: Score
    # raw mean x coverage (Eq. 23); None where nothing was scored
    corrected: float | None
    # mean of the episodes' values weighted by what was scored in each (Eq. 24); None without any.
    raw: float | None
    coverage: float | None  # share of what counts that was scored (Eq. 25); None where nothing is eligible.
    mean: float | None  # plain mean of the episodes that have a value

    @property
    def value(self) -> float | None:
        """The value under the chosen definition."""
        return self.score.value

    def as_json(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("corrected", "raw", "coverage", "mean")}
        return {**self.score.as_json(), **parts}


def number(metric: EntityMetric, tallies: Sequence[Tally], definitions: Definitions) -> Number:
    """Return a metric over episodes, without an interval."""
    terms = [terms_of(metric, each, definitions) for each in tallies]
    known = [(each.value, each.scored) for each in terms if each.value is not None]
    weighted, weights = sum(value * scored for value, scored in known), sum(scored for _, scored in known)
    scored, counted = sum(each.scored for each in terms), sum(each.counted for each in terms)
    values = [each.value for each in tallies if each.value is not None]
    plain = definitions.coverage in ("b5", "code")
    unknown = next((each.uncorrected for each in tallies if each.uncorrected and not plain), None)
    raw = weighted / weights if weights and unknown is None else None
    coverage = scored / counted if counted and unknown is None else None
    corrected = None if raw is None or coverage is None else raw * coverage
    counts = _counts(tallies, definitions) | {"episodes": len(tallies), "episodes_counted": len(values)}
    if plain:
        score = Score.ratio(sum(values), len(values), NOTHING, **counts)
    elif corrected is None:
        score = Score(value=None, status="undefined", reason=unknown or NOTHING, counts=counts)
    else:
        score = Score(value=corrected, status="ok", numerator=weighted, denominator=counted, counts=counts)
    mean = sum(values) / len(values) if values else None
    return Number(score, corrected, raw, coverage, mean)


@dataclass(frozen=True, slots=True)
class Terms:
    """What an episode adds to the sums of Eq. 23: its value, how much of it was scored, how much counts."""

    value: float | None
    scored: int
    counted: int


def terms_of(metric: EntityMetric, each: Tally, definitions: Definitions) -> Terms:
    """Return what an episode adds to Eq. 23 under the chosen definition."""
    if definitions.coverage == "code":
        public = each.public
        return Terms(each.value, public.evaluated, public.evaluated + public.failed + public.skipped)
    uncorrected = definitions.coverage == "table15" and metric.group in ("fidelity", "centroid")
    if uncorrected or (metric.group == "action" and definitions.actions == "outside"):
        return Terms(each.value, each.passed, each.passed + each.missing)
    left_out = each.unseen if definitions.unseen == "outside" else 0
    return Terms(each.value, each.passed, each.eligible - left_out)


def _counts(tallies: Sequence[Tally], definitions: Definitions) -> dict[str, int]:
    counts = {name: sum(getattr(each, name) for each in tallies) for name in (*COUNTED, "eligible")}
    if definitions.coverage == "b5":
        counts["skipped"] = sum(each.single for each in tallies)
    if definitions.coverage == "code":
        public = [each.public for each in tallies]
        counts = {
            "passed": sum(each.evaluated for each in public),
            "skipped": sum(each.skipped for each in public),
            "failed": sum(each.failed for each in public),
        }
    return counts


Rows = Sequence[tuple[str, Mapping[str, Tally]]]
"""Source and tallies by metric of each episode."""


def numbers(metrics: Sequence[EntityMetric], rows: Rows, definitions: Definitions) -> dict[str, Number]:
    """Return metrics over episodes, with 95 % intervals over drawn sources.

    Episodes of one source are drawn together: they show the same film, and some of them the same shots.
    """
    made = {
        metric.name: number(metric, [tallies[metric.name] for _, tallies in rows], definitions)
        for metric in metrics
    }
    if not definitions.resamples or not rows:
        return made
    tops, bottoms = _columns(metrics, rows, definitions)
    bounds = np.array([metric.range for metric in metrics]).T
    scores = definitions.with_ends(
        [known.score for known in made.values()], tops, bottoms, (bounds[0], bounds[1])
    )
    return {
        name: replace(known, score=score) for (name, known), score in zip(made.items(), scores, strict=True)
    }


def _columns(metrics: Sequence[EntityMetric], rows: Rows, definitions: Definitions) -> tuple[Floats, Floats]:
    """Return what is divided, and by what, per source and metric: each of shape (sources, metrics)."""
    sources = {source: index for index, source in enumerate(dict.fromkeys(source for source, _ in rows))}
    tops, bottoms = np.zeros((2, len(sources), len(metrics)))
    plain = definitions.coverage in ("b5", "code")
    for source, tallies in rows:
        for index, metric in enumerate(metrics):
            each = tallies[metric.name]
            terms = terms_of(metric, each, definitions)
            tops[sources[source], index] += (each.value or 0.0) * (1 if plain else terms.scored)
            bottoms[sources[source], index] += (each.value is not None) if plain else terms.counted
    return tops, bottoms


# -- How alike appearances of an entity are by the number of shots between them (EntityBench, B.4.5 and F.5)
#
# Question: does an entity change the more, the longer it was away?
# Formula: the mean similarity of pairs of appearances whose gap falls in a bin. Three signals: ``judged``,
# what the judge said of the anchor beside each other shot (Tables 19 and 21); ``centroid``, neighbours,
# each pair with the mean of their similarities to the centroid (Tables 20 and 21); ``crops``, the cosine of
# the crops of every pair (Eq. 44). Input: admitted appearances, as the gate left them. Output: per bin a
# mean in [-1, 1] (``judged``: [0, 1]), the number of pairs, a 95 % interval over sources. Undefined when: a
# bin has no pair. Source: EntityBench, B.4.5, F.5, Tables 19 to 21. Departures from the source: the paper's
# words count the shots between two appearances, its tables differences of shot index; the index is the
# default, and with ``intervening`` bin 0 is printed, which its bins lack. What is more than 50 apart gets a
# bin of its own. Example: shots 3 and 5 of an episode have a gap of 2 by index and of 1 by intervening
# shots.

Signal = Literal["judged", "centroid", "crops"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
BINS = ((1, 2), (3, 5), (6, 10), (11, 20), (21, 50))
"""First and last gap of each bin (Tables 19 to 21)."""


class GapPair(NamedTuple):
    """Two appearances of an entity."""

    signal: Signal  # what compares them
    type: EntityType  # of the entity
    entity: str  # its key
    gap: int  # difference of their shots' indices
    similarity: float  # how alike they are
    # keys of the two; of a judged pair the anchor stands last. Empty where nobody says.
    shots: tuple[str, ...] = ()


def gap_pairs(facts: EpisodeFacts) -> Iterator[GapPair]:
    """Yield every pair of an episode under every signal."""
    index = {shot.key: shot.index for shot in facts.shots}
    for kind in TYPES:
        for entity, shots in facts.recurring(kind):
            for each in pairs_of_entity(facts, entity, shots, "similarity"):
                if each.value is not None and each.other is not None:
                    gap = abs(index[each.shot] - index[each.other])
                    yield GapPair("judged", kind, entity, gap, each.value, (each.shot, each.other))
            if kind != "location":
                yield from _encoded(facts, kind, entity)


def _encoded(facts: EpisodeFacts, kind: EntityType, entity: str) -> Iterator[GapPair]:
    known = vectors_of_pool(facts, entity)
    near = None if known is None else similarities_to_centroid(known[1])
    if known is None or near is None:
        return
    shots, rows = known
    for (left, one_near), (right, other_near) in pairwise(zip(shots, near, strict=True)):
        mean = float(one_near + other_near) / 2
        both = (left.key, right.key)
        yield GapPair("centroid", kind, entity, right.index - left.index, mean, both)
    cosines = rows @ rows.T
    for left_row, right_row in combinations(range(len(shots)), 2):
        left, right = shots[left_row], shots[right_row]
        cosine = float(cosines[left_row, right_row])
        yield GapPair("crops", kind, entity, right.index - left.index, cosine, (left.key, right.key))


@dataclass(frozen=True)
class GapCurve:
    """One signal for the entities of one type."""

    signal: Signal  # what compares appearances
    type: EntityType  # of the entities
    # label of a bin, such as ``3-5`` -> mean similarity; ``counts`` holds ``pairs`` and ``sources``
    bins: dict[str, Score]


def bin_of(gap: int, unit: GapUnit = "index") -> str:
    """Return the label of the bin of a gap.

    ``gap``: difference of shot indices, from 1.
    """
    size = gap if unit == "index" else gap - 1
    for first, last in BINS:
        if first <= size <= last:
            return f"{first}-{last}"
    return "0" if size < BINS[0][0] else f"{BINS[-1][1] + 1}+"


def labels_of(unit: GapUnit) -> tuple[str, ...]:
    """Return the labels of the bins that are always shown, in order."""
    return (*(["0"] if unit == "intervening" else []), *(f"{first}-{last}" for first, last in BINS))


def gap_curves(
    pairs: Sequence[tuple[str, GapPair]],
    signals: Sequence[tuple[Signal, EntityType]],
    definitions: Definitions,
) -> tuple[GapCurve, ...]:
    """Return the curves of the signals that are asked for, with intervals over drawn sources."""
    sources = {source: index for index, source in enumerate(dict.fromkeys(source for source, _ in pairs))}
    bins = {gap: bin_of(gap, definitions.gap) for gap in {pair.gap for _, pair in pairs}}
    labels = list(dict.fromkeys((*labels_of(definitions.gap), *bins.values())))
    columns = [(*signal, label) for signal in signals for label in labels]
    order = {column: index for index, column in enumerate(columns)}
    sums, counts = np.zeros((2, len(sources), len(columns)))
    for source, pair in pairs:
        column = order.get((pair.signal, pair.type, bins[pair.gap]))
        if column is not None:
            sums[sources[source], column] += pair.similarity
            counts[sources[source], column] += 1
    scores = _scores(sums, counts, definitions)
    return tuple(
        GapCurve(signal, kind, {label: scores[order[signal, kind, label]] for label in labels})
        for signal, kind in signals
    )


def _scores(
    sums: np.ndarray[Any, np.dtype[np.float64]],
    counts: np.ndarray[Any, np.dtype[np.float64]],
    definitions: Definitions,
) -> list[Score]:
    """Return the mean of each column with its interval; both arrays are of shape (sources, columns)."""
    columns = zip(sums.sum(axis=0), counts.sum(axis=0), (counts > 0).sum(axis=0), strict=True)
    scores = [
        Score.ratio(
            float(total), float(pairs), "no pair so far apart", pairs=int(pairs), sources=int(sources)
        )
        for total, pairs, sources in columns
    ]
    return definitions.with_ends(scores, sums, counts)


# -- Each recurring entity by itself: how near its appearances are to each other (EntityBench, B.4.2)


@dataclass(frozen=True, slots=True)
class ShotDetail:
    """One scheduled shot of an entity."""

    shot: str  # its key
    # ``present``, ``weak``, ``absent``, ``missing`` without a video, or None where nobody looked
    status: str | None
    admitted: bool  # whether it is compared across shots
    clip: float | None  # similarity of crop and description
    fidelity: float | None  # overall fidelity
    to_centroid: float | None  # similarity to the centroid
    same: float | None  # the judge's verdict beside the anchor
    similarity: float | None  # the judge's score beside the anchor


@dataclass(frozen=True, slots=True)
class EntityDetail:
    """One recurring entity of one episode."""

    entity: str  # its key
    type: str  # its type
    shots: tuple[ShotDetail, ...]  # every shot that schedules it
    anchor: str | None  # the shot that all others were compared with
    # mean similarity to the centroid; None without one, and of locations, as are those below
    mean: float | None
    least: float | None  # of the shot that is farthest from it
    most: float | None  # of the nearest
    median_of_pairs: float | None  # median cosine of all pairs of crops
    worst: str | None  # the shot that is farthest
    representative: str | None  # the nearest
    judged: int  # pairs with a verdict
    # share of them that the judge calls the same; of a location judged as a whole, its verdict
    accuracy: float | None


def entity_details(facts: EpisodeFacts) -> Iterator[EntityDetail]:
    """Yield every entity that is scheduled in two shots or more, by type."""
    for kind in TYPES:
        for entity, shots in facts.recurring(kind):
            yield _detail(facts, entity, kind, shots)


def _detail(facts: EpisodeFacts, entity: str, kind: str, shots: tuple[ShotFacts, ...]) -> EntityDetail:
    near, median = (None, None) if kind == "location" else _nearness(facts, entity)
    verdicts, scores = (
        {each.shot: each.value for each in pairs_of_entity(facts, entity, shots, name)}
        for name in ("same", "similarity")
    )
    whole = facts.locations.get(entity)
    known = [value for value in verdicts.values() if value is not None]
    accuracy = whole.of("consistent") if whole is not None else sum(known) / len(known) if known else None
    gate = (facts.gate or {}).get(entity)
    details = []
    for shot in shots:
        seen = appearance_of(shot, entity)
        status = seen.status if shot.reached else "missing"
        details.append(
            ShotDetail(
                shot.key, status, shot.key in facts.pool(entity), seen.clip,
                None if seen.fidelity is None else seen.fidelity.of("overall"), (near or {}).get(shot.key),
                verdicts.get(shot.key), scores.get(shot.key),
            )
        )  # fmt: skip
    worst = min(near, key=near.__getitem__) if near else None
    best = max(near, key=lambda key: round((near or {})[key], 12)) if near else None
    return EntityDetail(
        entity, kind, tuple(details), None if gate is None else gate.anchor,
        sum(near.values()) / len(near) if near else None, near[worst] if near and worst else None,
        near[best] if near and best else None, median, worst, best, len(known), accuracy,
    )  # fmt: skip


def _nearness(facts: EpisodeFacts, entity: str) -> tuple[dict[str, float] | None, float | None]:
    """Return shot -> similarity to the centroid, and the median cosine of pairs; None without a centroid."""
    known = vectors_of_pool(facts, entity)
    near = None if known is None else similarities_to_centroid(known[1])
    if known is None or near is None:
        return None, None
    cosines = known[1] @ known[1].T
    median = float(np.median([cosines[pair] for pair in combinations(range(len(near)), 2)]))
    return {shot.key: float(value) for shot, value in zip(known[0], near, strict=True)}, median
