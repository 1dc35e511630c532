"""Scoring the archive of an evaluation of episodes: ours, or one made of the public evaluator's results.

The public evaluator's result of one episode as the tallies, pairs and diagnostics of ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ....schemas.entities import EntityType
from ....schemas.text import counted
from ...archive.archive import read_archive
from ...archive.replies import archive_notes
from ..archived import read_facts
from ..entities import entity_key
from ..metrics.aggregate import Definitions
from ..metrics.catalogue import METRICS, EntityMetric
from ..metrics.decay import GapPair
from ..metrics.diagnostics import EntityDetail, ShotDetail
from ..metrics.tallies import Counters, Tally
from ..published import (
    RESULTS,
    Counted,
    PublicEntity,
    PublicResult,
    Result,
    Schedule,
    notes_of,
    read_results,
)
from .scores import EntityScores, EpisodeScore, GateCounts, score_episode, score_methods

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
        entry.episode_id, entry.tier, source, entry.num_shots, tallies, _gate(entry), tuple(details), pairs
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


def _gate(entry: PublicResult) -> GateCounts | None:
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
    notes.extend(_notes(episodes, definitions))
    return EntityScores(definitions, score_methods(episodes, definitions), tuple(notes))


def _notes(episodes: Sequence[Scored], definitions: Definitions) -> Iterator[str]:
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
