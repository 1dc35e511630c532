"""The report on an evaluation of episodes: numbers, gap curves, worst entities, and each entity by shot."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import ConfigError
from ....releases.entities.tree import read_entity_set
from ....releases.loading import evaluated_name
from ....schemas.judgement import EvaluationManifest
from ....schemas.plain_files import json_lines
from ....schemas.text import counted
from ...archive.archive import Archive, read_archive, sources_of
from ...archive.replies import last_attempts
from ...report.model import (
    CountRow,
    CountTable,
    Definition,
    EpisodesPart,
    Examples,
    ReportDocument,
    SeenEntity,
    Trace,
    WorstEntities,
)
from ...report.people import people_of
from ...report.showing import Accounts, Valued, comparison_note, day_of, examples_of, resampling_definition
from ...shots.report.cards import MEGABYTES, Snaps
from ..archived import read_facts
from ..facts import EPISODES, EpisodeFacts
from ..metrics.aggregate import MEANINGS, Definitions, GapUnit
from ..metrics.catalogue import EntityMetric
from ..metrics.decay import EntityDetail, GapCurve, GapPair, bin_of
from ..metrics.instances import Instance
from ..scores.scores import EntityScores, EpisodeScore, score_folder
from . import numbers
from .seen import NOT_LOOKED, Episode, Key, Seen, asked_about

# -- Which episodes and entities a report shows, and what stands behind each of its numbers

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


# -- The report on an evaluation of episodes

METHODS = 6
"""Methods whose episodes are shown, where no others are asked for."""
READING = (
    "Corrected means are lowered by what the gate held back, what failed, was not recognised, or has no "
    "video; raw mean, coverage and counts stand beside them in each method's own table. A failure is never "
    "counted as a score.",
    'Open "behind it" under a name: it leads to the instances of a number, these to crops and replies.',
)


@dataclass(frozen=True)
class EpisodesReport:
    """What a report on episodes shows."""

    definitions: Definitions = field(default_factory=Definitions)  # how scores are made
    # ids of the episodes that are shown; none for those that fit, the lowest first
    episodes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()  # whose episodes are shown; none for the first ones
    megabytes: float = MEGABYTES  # how large all pictures together may be


def episodes_report(folder: Path, wanted: EpisodesReport | None = None) -> ReportDocument:
    """Return the report on an evaluation folder of episodes.

    ``wanted``: how it is scored and what is shown; None for all defaults.
    """
    wanted = wanted or EpisodesReport()
    archive, scores = read_archive(folder), score_folder(folder, wanted.definitions)
    _check(scores, wanted)
    manifest = archive.manifest
    snaps = Snaps(int(wanted.megabytes * 1_000_000))
    episodes, how = _episodes(folder, archive, scores, wanted)
    seen = Seen(folder, snaps)
    part = _part(scores, episodes, seen, how)
    examples = tuple(seen_examples(numbers.main_metrics(), episodes, seen)) if snaps.made else ()
    accounts = Accounts.of(archive.judgements)

    def traces(method: str, metric: EntityMetric) -> tuple[tuple[Trace, ...], str]:
        shown = [each for (name, _), each in episodes.items() if name == method and each.number]
        return traces_of(metric, shown)

    def gaps(method: str, curve: GapCurve) -> tuple[tuple[Trace, ...], str]:
        scored = {each.method: each for each in scores.methods}[method].episodes
        shown = [(episodes.get((method, each.episode_id)), each.pairs) for each in scored]
        pairs = [(each, pair) for each, some in shown if each is not None and each.number for pair in some]
        return gap_traces(curve, pairs, wanted.definitions.gap)

    pairs = numbers.comparisons(scores)
    few = "" if all(pair.shown for pair in pairs) else " The page lists the metrics of the main results."
    people = people_of(folder, "episodes", numbers.people_tables)
    return ReportDocument(
        kind="episodes", protocol="EntityBench", units="episodes",
        benchmark=_benchmark(folder, manifest), title=_title(scores),
        facts=_facts(scores, episodes, accounts, manifest),
        warnings=(*_warnings(scores, episodes, accounts, snaps), *people.warnings), reading=READING,
        headline=numbers.headline(scores), plots=(plot,) if (plot := numbers.gap_plot(scores)) else (),
        details=(*numbers.every_metric(scores, traces), *numbers.further_tables(scores, gaps)),
        comparisons=pairs, comparison_note=comparison_note(
            len(scores.methods), len(pairs), "a value for the same episode",
            "The first method minus the second, over the values of the episodes that both have, which "
            f"coverage does not lower. p-values are corrected for all metrics and pairs together.{few}",
        ),
        accounting=(*accounting(scores, [each.facts for each in episodes.values()]),
                    *([accounts.outcome_table()] if accounts.total else [])),
        episodes=part, examples=examples,
        agreement_note="An evaluation of episodes has one judge, whose fidelity decides what is compared."
        if accounts.total else "No reply of a judge is kept here.",
        people=people.tables, people_note=people.note,
        cost=accounts.cost_table() if accounts.total else None,
        definitions=tuple(definitions_of(wanted.definitions, manifest)), manifest=manifest.as_json(),
    )  # fmt: skip


def _check(scores: EntityScores, wanted: EpisodesReport) -> None:
    methods = [method.method for method in scores.methods]
    there = sorted({episode.episode_id for method in scores.methods for episode in method.episodes})
    for option, asked, known in (("--story", wanted.episodes, there), ("--method", wanted.methods, methods)):
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise ConfigError(
                option, what=f"{', '.join(unknown)} is not in the evaluation",
                fix=f"use some of {', '.join(known[:20])}",
            )  # fmt: skip


def _episodes(
    folder: Path, archive: Archive, scores: EntityScores, wanted: EpisodesReport
) -> tuple[dict[Key, Episode], str]:
    """Return every episode of which something was seen, those that are shown with a number; how chosen."""
    if not (folder / EPISODES).exists():
        return {}, ""
    facts = {(each.method, each.episode_id): each for each in read_facts(folder, archive)}
    lines = {(line["method"], line["episode_id"]): line for line in json_lines(folder / EPISODES)}
    replies = asked_about(list(last_attempts(archive.judgements)))
    methods = wanted.methods or tuple(method.method for method in scores.methods)[:METHODS]
    cells = {
        key: sum(len(shot.appearances) for shot in each.shots)
        for key, each in facts.items() if key[0] in methods
    }  # fmt: skip
    shown, how = shown_episodes(scores, methods, cells, wanted.episodes)
    places = {key: number for number, key in enumerate(shown, 1)}
    order = [*shown, *(key for key in facts if key not in places)]
    made = {key: Episode(places.get(key, 0), facts[key], lines[key], replies.get(key, {})) for key in order}
    if len(methods) < len(scores.methods):
        how += f" {len(methods)} of {len(scores.methods)} methods are shown."
    return made, how


def _part(scores: EntityScores, episodes: Mapping[Key, Episode], seen: Seen, how: str) -> EpisodesPart:
    worst = tuple(worst_entities(scores, episodes, seen))
    shown = tuple(seen.episode(each) for each in episodes.values() if each.number)
    snaps = seen.snaps
    parts = [f"{how} Each row is an entity, each column a shot; an empty cell is not scheduled. A cell opens "
             f"to scores and replies. {counted(snaps.made, 'picture')} in this page"]  # fmt: skip
    if snaps.gone:
        parts.append(f"{counted(snaps.gone, 'picture')} not available")
    if snaps.spent:
        parts.append(f"{counted(snaps.spent, 'picture')} left out because of the limit (--pictures-mb)")
    return EpisodesPart(worst=worst, note=f"{'; '.join(parts)}.", episodes=shown)


def _benchmark(folder: Path, manifest: EvaluationManifest) -> str:
    wanted = (manifest.protocol.get("release") or {}).get("sha256")
    places = [path for _, path in sources_of(folder, manifest)]
    return evaluated_name(places, lambda place: read_entity_set(place, rules=False)[0].sha256, wanted)


def _title(scores: EntityScores) -> str:
    methods = [method.method for method in scores.methods]
    return f"Episodes of {methods[0]}" if len(methods) == 1 else f"Episodes of {len(methods)} methods"


def _facts(
    scores: EntityScores, episodes: Mapping[Key, Episode], accounts: Accounts, manifest: EvaluationManifest
) -> dict[str, str]:
    named = {episode.episode_id for method in scores.methods for episode in method.episodes}
    shots = [shot for each in episodes.values() for shot in each.facts.shots]
    return {
        "Episodes": f"{len(named):,}",
        "Methods": f"{len(scores.methods):,}",
        **({"Shots scheduled": f"{len(shots):,}"} if shots else {}),
        **({"With video": f"{sum(shot.reached for shot in shots):,}"} if shots else {}),
        **({"Judge": ", ".join(sorted(accounts.replies))} if accounts.replies else {}),
        "Replies": f"{accounts.total:,}",
        **day_of("Evaluated", manifest),
    }


def _warnings(
    scores: EntityScores, episodes: Mapping[Key, Episode], accounts: Accounts, snaps: Snaps
) -> Iterator[str]:
    names = tuple(f"{method.method}:" for method in scores.methods)
    for note in scores.notes:
        yield f"{note if note.startswith(names) else note[:1].upper() + note[1:]}."
    for method in scores.methods:
        shots = [
            shot for key, each in episodes.items() if key[0] == method.method for shot in each.facts.shots
        ]
        gone = sum(not shot.reached for shot in shots)
        if gone:
            yield f"{gone:,} of {counted(len(shots), 'shot')} of {method.method} have no readable video."
    yield from accounts.warnings()
    if not episodes:
        yield "The archive has numbers alone: no crops, no replies."
    elif snaps.gone and not snaps.made:
        yield "The pictures were not found: only the folder of the run itself has them."


def accounting(scores: EntityScores, facts: Sequence[EpisodeFacts]) -> Iterator[CountTable]:
    """Yield what was scheduled and recognised, what the gate did, and which shots have no video."""
    columns = {
        "scheduled": "Scheduled", "present": "Present", "weak": "Weak", "absent": "Absent",
        "missing": "Without video", NOT_LOOKED: "Not looked for",
    }  # fmt: skip
    rows, gone = [], []
    for method in scores.methods:
        mine = [each for each in facts if each.method == method.method]
        found: dict[str, Counter[str]] = {}
        for shot in (shot for each in mine for shot in each.shots):
            for seen in shot.appearances:
                status = (seen.status or NOT_LOOKED) if shot.reached else "missing"
                found.setdefault(seen.type, Counter()).update(["scheduled", status])
        rows += [
            CountRow(label=f"{method.method} · {kind}", values={name: some[name] for name in columns})
            for kind, some in found.items()
        ]
        lost = [f"{each.episode_id} {shot.key}" for each in mine for shot in each.shots if not shot.reached]
        if lost:
            gone.append(CountRow(label=method.method, values={"count": len(lost), "which": "; ".join(lost)}))
    if rows:
        yield CountTable(
            name="appearances", title="Scheduled entities, shot by shot", heading="Method and type",
            columns=columns, rows=tuple(rows),
        )  # fmt: skip
    if gone:
        yield CountTable(
            name="missing", title="Shots without a readable video", rows=tuple(gone),
            columns={"count": "Shots", "which": "Episode and shot"},
        )  # fmt: skip
    yield from _gates(scores)


def _gates(scores: EntityScores) -> Iterator[CountTable]:
    columns = {
        "present": "Present",
        "admitted": "Admitted",
        "gated": "Held back",
        "unscored": "Without fidelity",
    }
    rows = []
    for method in scores.methods:
        gates = [episode.gate for episode in method.episodes if episode.gate is not None]
        if gates:
            values = {name: sum(getattr(gate, name) for gate in gates) for name in columns}
            rows.append(CountRow(label=method.method, values=dict(values)))
    if rows:
        yield CountTable(
            name="gate", title="What the gate let through", columns=columns, rows=tuple(rows),
            note="Present appearances with an overall fidelity of 0.5 or more, or without a fidelity, are "
            "admitted (Eq. 22); the others are not compared across shots.",
        )  # fmt: skip


def definitions_of(used: Definitions, manifest: EvaluationManifest) -> Iterator[Definition]:
    """Yield how numbers were made, and the settings under which episodes were looked at."""
    yield Definition(name="coverage", value=used.coverage, meaning=f"{MEANINGS[used.coverage]}.")
    yield Definition(name="actions", value=used.actions,
                     meaning="Whether failed replies about actions lower their corrected mean.")  # fmt: skip
    yield Definition(name="gap", value=used.gap,
                     meaning="Difference of shot index, or number of intervening shots.")  # fmt: skip
    yield resampling_definition(used, "source")
    for name in ("definitions", "models"):
        listed: Any = manifest.protocol.get(name)
        for key, value in listed.items() if isinstance(listed, Mapping) else ():
            yield Definition(name=str(key), value=str(value))
