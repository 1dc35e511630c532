"""The report on an evaluation of episodes: numbers, gap curves, worst entities, and each entity by shot."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

from ....pages.figures import Plot, PlotPoint
from ....releases.entities.tree import read_entity_set
from ....releases.loading import evaluated_name
from ....schemas.entities import ALL, TYPES
from ....schemas.judgement import EvaluationManifest
from ....schemas.plain_files import json_lines
from ....schemas.text import counted
from ....schemas.values import Score
from ...archive.archive import Archive, read_archive, sources_of
from ...archive.replies import last_attempts
from ...report.model import (
    Comparison,
    CountRow,
    CountTable,
    Definition,
    EpisodesPart,
    Examples,
    Measure,
    ReportDocument,
    ScoreRow,
    ScoreTable,
    SeenEntity,
    WorstEntities,
)
from ...report.people import Column, TableForm, people_of, plain_score
from ...report.showing import (
    Accounts,
    Thumbnails,
    Valued,
    Wanted,
    comparison,
    comparison_note,
    day_of,
    examples_of,
    resampling_definition,
    sentences,
)
from ..archived import EPISODES, EpisodeFacts, read_facts
from ..metrics.aggregate import MEANINGS, Definitions, EntityDetail, Number, Signal
from ..metrics.catalogue import METRICS, EntityMetric, Instance, metric_named
from ..scores.scores import EntityScores, EpisodeScore, entity_effects, score_folder
from ..scores.tables import TABLE_4, counts_text, score_tables
from .seen import NOT_LOOKED, Episode, Key, Seen, asked_about

# -- What the scores say, without any picture

TITLES = {"fidelity": "appearances", "pair": "pairs"}
AGREED = (
    Column("judge", "Judge against people", "number", better="high"),
    Column("people", "Between people, mean", "number", better="high"),
    Column("least", "Lowest", "number", why="no two people compare"),
    Column("greatest", "Highest", "number", why="no two people compare"),
)
PILLARS = {1: "1: quality", 2: "2: prompt following", 3: "3: across shots"}
FATES = ("passed", "eligible")
"""What stands below a main number; all counts are in the table of its method."""
SIGNALS: Mapping[Signal, tuple[str, str]] = {
    "judged": ("as judged", "What the judge said of the anchor beside each other appearance."),
    "centroid": ("DINOv2, to the centroid", "Neighbouring appearances: the mean of their cosines with it."),
    "crops": ("DINOv2, every pair", "Cosines of the crops of every pair of appearances."),
}
ALWAYS = ("passed", "skipped", "failed")
"""What is said of every number, though it is 0."""
MOST_PAIRS = 60
"""Comparisons up to which the page lists every one."""


def headline(scores: EntityScores) -> ScoreTable:
    """Return the main numbers (Table 4), methods beside each other."""
    rows = []
    for section in TABLE_4.sections:
        made = [row for name in section.rows if (row := _main(scores, metric_named(name))) is not None]
        rows += [ScoreRow(label=section.heading, scores={}, heading=True), *made] if made else []
    return ScoreTable(
        name="main", title="Main results", heading="Metric", rows=tuple(rows),
        measures=tuple(
            Measure(name=method.method, label=method.method, unit="number", better="high")
            for method in scores.methods
        ),
        note=f"{MEANINGS[scores.definitions.coverage]}. Of 0 to 1, imaging quality of 0 to 100; in brackets "
        "95 % intervals over sources.",
    )  # fmt: skip


def _main(scores: EntityScores, metric: EntityMetric) -> ScoreRow | None:
    values: dict[str, Score] = {}
    for method in scores.methods:
        known = method.numbers.get(metric.name)
        if known is not None:
            counts = {name: known.score.counts[name] for name in FATES if name in known.score.counts}
            values[method.method] = known.score.model_copy(update={"counts": counts})
    return ScoreRow(label=metric.label, note=metric.name, scores=values) if values else None


def every_metric(scores: EntityScores) -> Iterator[ScoreTable]:
    """Yield a table per method: every metric with raw mean, coverage and what became of its instances."""
    corrected = scores.definitions.coverage in ("eq23", "table15")
    first = "Corrected mean" if corrected else "Mean of episodes"
    for number, method in enumerate(scores.methods, 1):
        rows = []
        for pillar, title in PILLARS.items():
            some = [metric for metric in METRICS if metric.pillar == pillar and metric.name in method.numbers]
            made = [_metric_row(method.numbers[metric.name], metric) for metric in some]
            rows += [ScoreRow(label=f"Pillar {title}", scores={}, heading=True), *made] if made else []
        yield ScoreTable(
            name=f"metrics_{number}", title=f"Every metric of {method.method}", heading="Metric",
            rows=tuple(rows),
            measures=(
                Measure(name="value", label=first, unit="number", better="high"),
                Measure(name="raw", label="Raw mean", unit="number", better="high"),
                Measure(name="coverage", label="Coverage", better="high"),
            ),
            note="Corrected mean = raw mean x coverage. Below a name: how many instances passed, were "
            "skipped by the gate, cannot be seen as the judge says (unseen), failed (no usable reply or "
            "measurement), are of entities that were not recognised (absent), or of shots without a video "
            "(missing).",
        )  # fmt: skip


def _metric_row(known: Number, metric: EntityMetric) -> ScoreRow:
    return ScoreRow(
        label=metric.label, note=f"{metric.name}: {counts_text(known, ALWAYS)}",
        scores={
            "value": known.score.model_copy(update={"counts": {}, "denominator": None}),
            "raw": plain_score(known.raw, known.score.reason or "nothing was scored"),
            "coverage": plain_score(known.coverage, known.score.reason or "nothing is eligible"),
        },
    )  # fmt: skip


def further_tables(scores: EntityScores) -> Iterator[ScoreTable]:
    """Yield the numbers by tier and by gap, where there are some."""
    yield from (table for table in score_tables(scores) if table.name in ("table_22", "gaps") and table.rows)


def gap_plot(scores: EntityScores) -> Plot | None:
    """Return similarity by gap of one type by one signal, the first that has pairs; the table has all."""
    by_index = scores.definitions.gap == "index"
    unit = "difference of shot index" if by_index else "number of shots between"
    for kind, signal in product(TYPES, SIGNALS):
        curves = [
            (method.method, curve) for method in scores.methods for curve in method.curves
            if (curve.type, curve.signal) == (kind, signal)
        ]  # fmt: skip
        bins = {
            f"Gap {label}": tuple(
                PlotPoint(series=method, score=curve.bins[label])
                for method, curve in curves
                if label in curve.bins
            )
            for label in dict.fromkeys(
                label for _, curve in curves for label, score in curve.bins.items() if score.value is not None
            )
        }
        if bins:
            words, meaning = SIGNALS[signal]
            return Plot(
                name="gap", title=f"Similarity of {kind}s by gap, {words}", axis="Similarity", unit="number",
                groups=bins,
                note=f"{meaning} Gap: {unit}; with 95 % intervals over sources. The table \"Similarity by "
                'gap" has every signal and type.',
            )  # fmt: skip
    return None


def main_metrics() -> list[EntityMetric]:
    """Return the metrics of the main results (Table 4), in its order."""
    return [metric_named(name) for section in TABLE_4.sections for name in section.rows]


def comparisons(scores: EntityScores) -> tuple[Comparison, ...]:
    """Return every pair of methods in every metric; of many the page shows those of the main results."""
    effects = entity_effects(list(combinations(scores.methods, 2)), scores.definitions)
    main = {metric.name for metric in main_metrics()}
    tested = [(each, each.paired) for each in effects if each.tier == ALL and each.paired is not None]
    return tuple(
        comparison(
            pair, metric_named(each.metric).label, higher=metric_named(each.metric).higher, unit="number",
            shown=len(tested) <= MOST_PAIRS or each.metric in main,
        )
        for each, pair in tested
    )  # fmt: skip


def people_tables(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    """Yield the tables of a calibration: kappa of verdicts, Pearson's r of scores, people as the ceiling."""
    for kind, scopes in document["judges"].items():
        title = f"{document['judge']} against people: {TITLES[kind]}"
        yield from TableForm(f"people_{kind}", title, "Type and question", AGREED).of(
            (
                (f"{scope}, {name.replace('_', ' ')} ({agreed['name']})", agreed)
                for scope, asked in scopes.items()
                for name, agreed in asked.items()
            ),
            lambda agreed: f"{counted(agreed['judge']['counts']['used'], 'answer')} compared",
        )


# -- Which episodes and entities a report shows

CELLS = 1500
"""Entities in shots that a page shows, about: whole episodes are taken until there are so many."""
EACH = 6
"""Worst entities in each respect."""
LEADS = ("intra_face_fidelity", "intra_character_presence", "imaging_quality")
"""Metrics by which episodes are chosen: the first that has a value."""


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
    """Return an entity by itself, in the shots that it is scheduled in."""
    made = seen.entity(episode, entity.entity)
    cells = tuple(cell for cell in made.cells if cell is not None)
    where = f"{episode.facts.method} · {episode.facts.episode_id}"
    return made.model_copy(update={"cells": cells, "value": value, "where": where})


# -- The report on an evaluation of episodes

READING = (
    "Corrected means are lowered by what the gate held back, what failed, was not recognised, or has no "
    "video; raw mean, coverage and counts stand beside them in each method's own table. A failure is never "
    "counted as a score.",
)


def episodes_report(folder: Path, wanted: Wanted[Definitions] | None = None) -> ReportDocument:
    """Return the report on an evaluation folder of episodes.

    ``wanted``: how it is scored and what is shown; None for all defaults.
    """
    wanted = wanted or Wanted(Definitions())
    archive, scores = read_archive(folder), score_folder(folder, wanted.definitions)
    there = sorted({episode.episode_id for method in scores.methods for episode in method.episodes})
    wanted.check(there, [method.method for method in scores.methods])
    manifest = archive.manifest
    snaps = Thumbnails.within(wanted.megabytes)
    episodes, how = _episodes(folder, archive, scores, wanted)
    seen = Seen(folder, snaps)
    part = _part(scores, episodes, seen, how)
    examples = tuple(seen_examples(main_metrics(), episodes, seen)) if snaps.made else ()
    accounts = Accounts.of(archive.judgements)
    pairs = comparisons(scores)
    few = "" if all(pair.shown for pair in pairs) else " The page lists the metrics of the main results."
    people = people_of(folder, "episodes", people_tables)
    return ReportDocument(
        kind="episodes", protocol="EntityBench", units="episodes",
        benchmark=_benchmark(folder, manifest), title=_title(scores),
        facts=_facts(scores, episodes, accounts, manifest),
        warnings=(*_warnings(scores, episodes, accounts, snaps), *people.warnings), reading=READING,
        headline=headline(scores), plots=(plot,) if (plot := gap_plot(scores)) else (),
        details=(*every_metric(scores), *further_tables(scores)),
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


def _episodes(
    folder: Path, archive: Archive, scores: EntityScores, wanted: Wanted[Definitions]
) -> tuple[dict[Key, Episode], str]:
    """Return every episode of which something was seen, the shown ones first, and how these were chosen."""
    if not (folder / EPISODES).exists():
        return {}, ""
    facts = {(each.method, each.episode_id): each for each in read_facts(folder, archive)}
    lines = {(line["method"], line["episode_id"]): line for line in json_lines(folder / EPISODES)}
    replies = asked_about(list(last_attempts(archive.judgements)))
    methods = wanted.shown([method.method for method in scores.methods])
    cells = {
        key: sum(len(shot.appearances) for shot in each.shots)
        for key, each in facts.items() if key[0] in methods
    }  # fmt: skip
    shown, how = shown_episodes(scores, methods, cells, wanted.units)
    order = dict.fromkeys((*shown, *facts))
    made = {key: Episode(key in shown, facts[key], lines[key], replies.get(key, {})) for key in order}
    if len(methods) < len(scores.methods):
        how += f" {len(methods)} of {len(scores.methods)} methods are shown."
    return made, how


def _part(scores: EntityScores, episodes: Mapping[Key, Episode], seen: Seen, how: str) -> EpisodesPart:
    worst = tuple(worst_entities(scores, episodes, seen))
    shown = tuple(seen.episode(each) for each in episodes.values() if each.shown)
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
    scores: EntityScores, episodes: Mapping[Key, Episode], accounts: Accounts, snaps: Thumbnails
) -> Iterator[str]:
    yield from sentences(scores.notes, (method.method for method in scores.methods))
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
    yield Definition(name="unseen", value=used.unseen,
                     meaning="Whether criteria that cannot be seen lower their corrected mean.")  # fmt: skip
    yield Definition(name="gap", value=used.gap,
                     meaning="Difference of shot index, or number of intervening shots.")  # fmt: skip
    yield resampling_definition(used, "source")
    for name in ("definitions", "models"):
        listed: Any = manifest.protocol.get(name)
        for key, value in listed.items() if isinstance(listed, Mapping) else ():
            yield Definition(name=str(key), value=str(value))
