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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from ....errors import ConfigError
from ....schemas.values import Score
from ....validators.resampling import Floats
from ...stats.uncertainty import Uncertainty
from ..facts import Answer, EpisodeFacts
from .catalogue import EntityMetric
from .instances import Instance

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
    """Return the value and the counts of a metric in an episode."""
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
        """Return the definitions as a line for people."""
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
        """Return it as plain JSON."""
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
    scores = definitions.with_ends([known.score for known in made.values()], tops, bottoms)
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
