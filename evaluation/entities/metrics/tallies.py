"""How the instances of a metric become the value and the counts of an episode."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..facts import Answer, EpisodeFacts
from .catalogue import EntityMetric
from .instances import Instance


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
        return self.passed + self.skipped + self.failed + self.absent + self.missing + self.unknown


def tally(metric: EntityMetric, facts: EpisodeFacts) -> Tally:
    """Return the value and the counts of a metric in an episode."""
    instances = list(metric.instances(facts))
    fates = Counter(each.fate for each in instances)
    return Tally(
        episode_value(metric, instances), fates["scored"], fates["skipped"], fates["failed"], fates["absent"],
        fates["missing"], 0, _single(metric, facts), _public(metric, facts, instances),
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


def _public_judged(facts: EpisodeFacts, instances: Sequence[Instance]) -> Counters:
    pools = {entity: gate.pool for entity, gate in (facts.gate or {}).items() if gate.pool}
    judged = {each.entity for each in instances if len(pools.get(each.entity or "", ())) > 1}
    tried = [each for each in instances if each.entity in judged and each.fate in ("scored", "failed")]
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
