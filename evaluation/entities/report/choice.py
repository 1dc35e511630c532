"""Which episodes and entities a report shows, and what stands behind each of its numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ....schemas.text import counted
from ...report.model import Examples, SeenEntity, Trace, WorstEntities
from ...report.showing import Valued, examples_of
from ..metrics.aggregate import GapUnit
from ..metrics.catalogue import EntityMetric
from ..metrics.decay import GapCurve, GapPair, bin_of
from ..metrics.diagnostics import EntityDetail
from ..metrics.instances import Instance
from ..scores.scores import EntityScores, EpisodeScore
from .seen import Episode, Key, Seen

CELLS = 1500
"""Entities in shots that a page shows, about: whole episodes are taken until there are so many."""
EACH = 6
"""Worst entities in each respect."""
MOST_SCORED, MOST_OTHERS = 8, 4
"""Instances with a value, the lowest, and without one, that stand behind a number."""
MOST_IN_A_BIN = 4
"""Pairs, the least alike, that stand behind a bin of a gap curve."""
LEADS = ("intra_face_fidelity", "intra_character_presence", "imaging_quality")
"""Metrics by which episodes are chosen: the first that has a value."""
_FATES = {
    "skipped": "not admitted by the gate", "failed": "no usable reply or measurement",
    "absent": "not recognised", "missing": "no readable video",
}  # fmt: skip


def shown_episodes(
    scores: EntityScores, methods: Sequence[str], cells: Mapping[Key, int], wanted: Sequence[str]
) -> tuple[list[Key], str]:
    """Return the episodes that a page shows, and how they were chosen.

    ``cells``: method and episode -> how many entities in shots it has.
    """
    values: dict[str, list[float]] = {}
    for method in scores.methods:
        for episode in method.episodes if method.method in methods else ():
            values.setdefault(episode.episode_id, []).extend(_lead(episode))
    order = sorted(values, key=lambda name: (sum(values[name]) / max(1, len(values[name])), name))
    taken: list[str] = []
    used = 0
    for name in wanted or order:
        size = sum(cells.get((method, name), 0) for method in methods)
        if wanted or not taken or used + size <= CELLS:
            taken.append(name)
            used += size
    how = "all" if len(taken) == len(order) else "as chosen" if wanted else "the lowest by fidelity"
    note = f"{len(taken)} of {counted(len(order), 'episode')}, {how}."
    return [(method, name) for name in taken for method in methods if (method, name) in cells], note


def _lead(episode: EpisodeScore) -> list[float]:
    known = (episode.tallies.get(name) for name in LEADS)
    return [tally.value for tally in known if tally is not None and tally.value is not None][:1]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


Ranking = tuple[str, str, Callable[[EntityDetail], float | None]]
RANKINGS: tuple[Ranking, ...] = (
    ("Least like their description", "mean overall fidelity",
     lambda entity: _mean([shot.fidelity for shot in entity.shots])),
    ("Farthest from their own centroid", "mean cosine with the centroid", lambda entity: entity.mean),
    ("Least like their anchor", "mean judged similarity",
     lambda entity: _mean([shot.similarity for shot in entity.shots])),
)  # fmt: skip


def worst_entities(
    scores: EntityScores, episodes: Mapping[Key, Episode], seen: Seen
) -> Iterator[WorstEntities]:
    """Yield the recurring entities that are worst in each respect; perfect ones are none of them."""
    every = [
        ((method.method, episode.episode_id), entity)
        for method in scores.methods
        for episode in method.episodes
        for entity in episode.entities
        if (method.method, episode.episode_id) in episodes
    ]
    for title, label, value_of in RANKINGS:
        ranked = [(value, n) for n, (_, each) in enumerate(every) if (value := value_of(each)) is not None]
        worst = sorted((round(value, 9), n) for value, n in ranked if value < 1 - 1e-9)[:EACH]
        if worst:
            shown = tuple(_alone(episodes[every[n][0]], every[n][1], value, seen) for value, n in worst)
            yield WorstEntities(title=title, label=label, total=len(ranked), entities=shown)


def seen_examples(
    metrics: Sequence[EntityMetric], episodes: Mapping[Key, Episode], seen: Seen
) -> Iterator[Examples]:
    """Yield a card for each metric: crops or frames at its ends and in its middle."""
    for metric in metrics:
        valued = []
        for (method, episode_id), episode in episodes.items():
            for each in metric.instances(episode.facts):
                if each.value is not None:
                    parts = [method, episode_id, *_parts(each)]
                    valued.append(Valued(each.value, ", ".join(parts), (episode, each)))
        meaning = f"Of single instances, range {metric.range[0]:g} to {metric.range[1]:g}."
        made = examples_of(metric, meaning, valued, lambda thing: seen.pictures(*thing))
        if made is not None:
            yield made


def _parts(each: Instance) -> list[str]:
    """Return an instance in words: shot, entity, and what it is compared with."""
    parts = [f"shot {each.shot}"]
    if each.entity is not None:
        parts.append(each.entity.partition(":")[2])
    if each.other is not None:
        parts.append(f"beside {each.other}")
    return parts


def _alone(episode: Episode, entity: EntityDetail, value: float, seen: Seen) -> SeenEntity:
    """Return an entity by itself: its scheduled shots, without names in links, which its episode has."""
    made = seen.entity(episode, entity.entity)
    cells = tuple(cell.model_copy(update={"anchor": ""}) for cell in made.cells if cell is not None)
    where = f"{episode.facts.method} · {episode.facts.episode_id}"
    return made.model_copy(update={"anchor": "", "cells": cells, "value": value, "where": where})


def traces_of(metric: EntityMetric, episodes: Sequence[Episode]) -> tuple[tuple[Trace, ...], str]:
    """Return what a metric of a method was made of in the shown episodes, and how many there are."""
    every = [(episode, each) for episode in episodes for each in metric.instances(episode.facts)]
    scored = sorted(
        ((each.value, n) for n, (_, each) in enumerate(every) if each.value is not None),
        reverse=metric.higher is False,
    )
    others = [n for n, (_, each) in enumerate(every) if each.value is None]
    kept = [*(n for _, n in scored[:MOST_SCORED]), *others[:MOST_OTHERS]]
    note = f"{min(len(scored), MOST_SCORED)} of {len(scored):,} with a value, the lowest first"
    if others:
        note += f"; {min(len(others), MOST_OTHERS)} of {len(others):,} without"
    return tuple(_trace(metric, *every[n]) for n in kept), f"{note}; of the episodes on this page."


def gap_traces(
    curve: GapCurve, pairs: Sequence[tuple[Episode, GapPair]], unit: GapUnit
) -> tuple[tuple[Trace, ...], str]:
    """Return the pairs that stand behind the bins of a curve, and how they were chosen."""
    mine = [
        (each.similarity, n) for n, (_, each) in enumerate(pairs)
        if (each.signal, each.type) == (curve.signal, curve.type)
    ]  # fmt: skip
    made: list[Trace] = []
    for label in curve.bins:
        some = sorted(entry for entry in mine if bin_of(pairs[entry[1]][1].gap, unit) == label)
        made += [_gap_trace(label, *pairs[n]) for _, n in some[:MOST_IN_A_BIN]]
    note = f"{len(made)} of {counted(len(mine), 'pair')}, the lowest of each bin first"
    return tuple(made), f"{note}; of the episodes on this page."


def _gap_trace(label: str, episode: Episode, pair: GapPair) -> Trace:
    parts = [f"gap {label}", episode.facts.episode_id, pair.entity.partition(":")[2]]
    parts += [f"shot {pair.shots[0]} beside {pair.shots[1]}"] if pair.shots else []
    anchor = episode.anchor(pair.entity, pair.shots[0]) if pair.shots else None
    return Trace(label=", ".join(parts), text=f"{pair.similarity:.2f}", anchor=anchor)


def _trace(metric: EntityMetric, episode: Episode, each: Instance) -> Trace:
    anchor = episode.anchor(each.entity, None if metric.unit == "location" else each.shot)
    parts = [episode.facts.episode_id, *_parts(each)]
    text = _FATES[each.fate] if each.value is None else f"{each.value:.2f}"
    return Trace(label=", ".join(parts), text=text, anchor=anchor)
