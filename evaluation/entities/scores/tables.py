"""Scores and comparisons of episodes in the layout of the paper's tables (4, 5, 12 to 23)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ....schemas.entities import ALL, TYPES, EntityType
from ....schemas.text import tallied
from ....schemas.values import Score
from ...report.formats import p_measures
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.people import plain_score
from ...stats.ranks import ranks
from ..metrics.aggregate import MEANINGS, Number
from ..metrics.catalogue import EntityMetric, metric_named
from ..metrics.decay import GapCurve, Signal
from .compare import Effect, EntityComparisons
from .layouts import (
    BY_TIER,
    CATEGORIES,
    CURVES,
    EFFECTS,
    GAPS_BY_TIER,
    TABLE_4,
    TABLE_12,
    TABLE_13,
    TABLE_14,
    TABLE_15,
    Layout,
)
from .scores import EntityScores, MethodScores

NO_EFFECT = "fewer than two episodes that both have, or no spread"


EVERY_SIGNAL: tuple[tuple[str, Signal], ...] = (
    ("LLM", "judged"), ("DINOv2, centroid", "centroid"), ("DINOv2, every pair", "crops"),
)  # fmt: skip


def score_tables(scores: EntityScores) -> Iterator[ScoreTable]:
    """Yield the tables of an evaluation; those without any value are left out."""
    for layout in (TABLE_4, TABLE_12, TABLE_13, TABLE_14):
        yield _values(layout, scores)
    yield _coverage(scores)
    for name, title, signals in CURVES:
        yield _gaps(name, title, signals, scores, ("character",))
    yield _gaps("gaps", "Similarity by gap, every signal and type", EVERY_SIGNAL, scores, TYPES)
    yield _tiers(scores)


def methods_table(scores: EntityScores) -> ScoreTable:
    """Return the metrics of Table 4 with a row for each method, as a leaderboard shows them."""
    labels = {metric_named(name): name for section in TABLE_4.sections for name in section.rows}
    values = {metric: _of_methods(metric.name, scores.methods) for metric in labels}
    return ScoreTable(
        name="by_method", title="Metrics of Table 4, by method", heading="Method",
        note=f"{MEANINGS[scores.definitions.coverage]}; in brackets 95 % intervals.",
        measures=tuple(
            Measure(
                name=metric.name, label=labels[metric], unit="number",
                better="low" if metric.higher is False else "high",
            )
            for metric in labels if values[metric]
        ),
        rows=tuple(
            ScoreRow(
                label=each.method,
                scores={
                    metric.name: known[each.method]
                    for metric, known in values.items() if each.method in known
                },
            )
            for each in scores.methods
        ),
    )  # fmt: skip


def _measures(scores: EntityScores) -> tuple[Measure, ...]:
    return tuple(
        Measure(name=method.method, label=method.method, unit="number", better="high")
        for method in scores.methods
    )


def _values(layout: Layout, scores: EntityScores) -> ScoreTable:
    rows = []
    for section in layout.sections:
        made = [
            ScoreRow(label=name, scores=values, note=_best(metric_named(name), values))
            for name in section.rows
            if (values := _of_methods(metric_named(name).name, scores.methods))
        ]
        rows += [*([ScoreRow(label=section.heading, scores={})] if section.heading and made else []), *made]
    return ScoreTable(
        name=layout.name, title=layout.title, heading="Metric", measures=_measures(scores), rows=tuple(rows),
        note=f"{MEANINGS[scores.definitions.coverage]}; in brackets 95 % intervals. {layout.note}".strip(),
    )  # fmt: skip


def _best(metric: EntityMetric, values: Mapping[str, Score]) -> str | None:
    """Return whose value is the best, as the paper prints it bold; None with one method, or of equals."""
    known = {method: score.value for method, score in values.items() if score.value is not None}
    places = ranks(np.array(list(known.values()), dtype=np.float64), higher=metric.higher is not False)
    winners = [method for method, rank in zip(known, places, strict=True) if rank == 1]
    return f"best: {winners[0]}" if len(known) > 1 and len(winners) == 1 else None


def _of_methods(name: str, methods: Sequence[MethodScores], tier: str = ALL) -> dict[str, Score]:
    numbers = {method.method: method.tiers.get(tier, {}).get(name) for method in methods}
    return {method: number.score for method, number in numbers.items() if number is not None}


def _coverage(scores: EntityScores) -> ScoreTable:
    parts = ("raw", "coverage")
    rows = []
    for section in TABLE_15.sections:
        made = []
        for name in section.rows:
            values = {
                f"{method.method}: {part}": plain_score(getattr(number, part), number.score.reason)
                for method in scores.methods
                if (number := method.numbers.get(name)) is not None
                for part in parts
            }
            if values:
                made.append(ScoreRow(label=name, scores=values, note=_counted(scores.methods, name)))
        rows += [*([ScoreRow(label=section.heading, scores={})] if made else []), *made]
    columns = [f"{method.method}: {part}" for method in scores.methods for part in parts]
    return ScoreTable(
        name=TABLE_15.name, title=TABLE_15.title, heading="Metric", note=TABLE_15.note, rows=tuple(rows),
        measures=tuple(Measure(name=name, label=name, unit="plain") for name in columns),
    )  # fmt: skip


def _counted(methods: Sequence[MethodScores], name: str) -> str:
    numbers = {method.method: method.numbers[name] for method in methods if name in method.numbers}
    return "; ".join(f"{method}: {counts_text(number)}" for method, number in numbers.items())


def counts_text(number: Number, always: Sequence[str] = ("passed",)) -> str:
    """Return what became of the instances of a number, such as ``passed 5, skipped 1``."""
    left_out = ("eligible", "episodes", "episodes_counted")
    counts = {name: count for name, count in number.score.counts.items() if name not in left_out}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count or name in always)


def _gaps(
    name: str,
    title: str,
    signals: Sequence[tuple[str, Signal]],
    scores: EntityScores,
    types: Sequence[EntityType],
) -> ScoreTable:
    rows, labels = [], dict[str, None]()
    for word, method, curve in curves_of(signals, scores, types):
        labels.update(dict.fromkeys(curve.bins))
        named = [*([word] if len(signals) > 1 else []), *([curve.type] if len(types) > 1 else [])]
        pairs = ", ".join(str(score.counts["pairs"]) for score in curve.bins.values())
        label = ", ".join([*named, method])
        rows.append(ScoreRow(label=label, scores=curve.bins, note=f"pairs: {pairs}"))
    unit = scores.definitions.gap
    shots = "difference of shot index" if unit == "index" else "shots between two appearances"
    return ScoreTable(
        name=name, title=title, heading="Method", rows=tuple(rows),
        note=f"Gap: {shots}; in brackets 95 % intervals over sources.",
        measures=tuple(Measure(name=label, label=f"Gap {label}", unit="number") for label in labels),
    )  # fmt: skip


def curves_of(
    signals: Sequence[tuple[str, Signal]], scores: EntityScores, types: Sequence[EntityType]
) -> Iterator[tuple[str, str, GapCurve]]:
    """Yield word of the signal, method and curve, in the order of the rows of a table of gaps."""
    for word, signal in signals:
        for kind in types:
            for method in scores.methods:
                for curve in method.curves:
                    if (curve.signal, curve.type) == (signal, kind):
                        yield word, method.method, curve


def _tiers(scores: EntityScores) -> ScoreTable:
    tiers = dict.fromkeys(tier for method in scores.methods for tier in method.tiers if tier != ALL)
    rows = [
        ScoreRow(label=f"{name}, {tier}", scores=values, note=_best(metric_named(name), values))
        for name in BY_TIER
        for tier in tiers
        if (values := _of_methods(name, scores.methods, tier))
    ]
    return ScoreTable(
        name="table_22", title="Table 22: headline metrics by tier", heading="Metric and tier",
        measures=_measures(scores), rows=tuple(rows),
    )  # fmt: skip


def comparison_tables(made: EntityComparisons) -> Iterator[ScoreTable]:
    """Yield the tables of a comparison, pair by pair of methods."""
    for first, second in dict.fromkeys((each.first, each.second) for each in made.effects):
        effects = [each for each in made.effects if (each.first, each.second) == (first, second)]
        yield _categories(first, second, [each for each in effects if each.tier == ALL])
        for layout in EFFECTS:
            yield _effects(layout, first, second, [each for each in effects if each.tier == ALL])
        yield _by_tier(first, second, effects)


_EFFECT = (
    Measure(name="difference", label="Difference", unit="number"),
    Measure(name="d", label="d", unit="plain"),
    Measure(name="d_z", label="d_z", unit="plain"),
)


def _effects(layout: Layout, first: str, second: str, effects: Sequence[Effect]) -> ScoreTable:
    known = {each.metric: each for each in effects}
    rows = []
    for section in layout.sections:
        made = [_effect(known[name]) for name in section.rows if name in known]
        rows += [*([ScoreRow(label=section.heading, scores={})] if section.heading and made else []), *made]
    return ScoreTable(
        name=layout.name, title=f"{layout.title}: {first} less {second}", heading="Metric",
        measures=(*_EFFECT, *p_measures([each.paired for each in effects if each.paired is not None])),
        note=f"d: pooled variance; d_z: paired; p-values corrected. {layout.note}".strip(), rows=tuple(rows),
    )  # fmt: skip


def _effect(effect: Effect) -> ScoreRow:
    test = effect.paired
    assert test is not None
    difference = plain_score(effect.difference, NO_EFFECT)
    values = {
        "difference": difference.model_copy(update={"low": test.low, "high": test.high}),
        "d": plain_score(effect.d, NO_EFFECT),
        "d_z": plain_score(effect.d_z, NO_EFFECT),
        "p_bootstrap": plain_score(test.p_bootstrap_corrected, "too few episodes"),
        "p_wilcoxon": plain_score(test.p_wilcoxon_corrected, "too few episodes"),
    }
    wins = f"n paired {effect.n}; higher {test.higher}, lower {test.lower}, equal {test.equal}"
    return ScoreRow(label=effect.metric, scores=values, note=wins)


def _categories(first: str, second: str, effects: Sequence[Effect]) -> ScoreTable:
    known = {each.metric: each for each in effects}
    rows = []
    for section in CATEGORIES:
        some = [known[name] for name in section.rows if name in known and known[name].d is not None]
        if not some:
            continue
        d = sum(each.d for each in some if each.d is not None) / len(some)
        paired = sum(each.n for each in some) / len(some)
        note = f"{tallied(len(some), 'metrics')}, n paired {paired:.0f}"
        rows.append(ScoreRow(label=section.heading, scores={"d": plain_score(d, None)}, note=note))
    return ScoreTable(
        name="table_5", title=f"Table 5: effect sizes by category, {first} less {second}", heading="Category",
        note="d: mean of the metrics' d with pooled variance.", rows=tuple(rows),
        measures=(Measure(name="d", label="Avg. d", unit="plain"),),
    )  # fmt: skip


def _by_tier(first: str, second: str, effects: Sequence[Effect]) -> ScoreTable:
    tiers = [tier for tier in dict.fromkeys(each.tier for each in effects) if tier != ALL]
    rows = []
    for name in GAPS_BY_TIER:
        gaps = {each.tier: each.gap for each in effects if each.metric == name and each.tier != ALL}
        if gaps:
            scores = {tier: plain_score(gap, "one of them has no value") for tier, gap in gaps.items()}
            rows.append(ScoreRow(label=name, scores=scores, note=trend([gaps.get(tier) for tier in tiers])))
    return ScoreTable(
        name="table_23", title=f"Table 23: gap by tier, {first} less {second}", heading="Metric",
        note="Differences of the numbers of Table 22, not of paired episodes.", rows=tuple(rows),
        measures=tuple(Measure(name=tier, label=tier.capitalize(), unit="number") for tier in tiers),
    )  # fmt: skip


def trend(gaps: Sequence[float | None]) -> str:
    """Return in a word how a gap changes by tier: rises, falls or mixed; empty where it is unknown."""
    known = [gap for gap in gaps if gap is not None]
    if len(known) < 2 or len(known) < len(gaps):
        return ""
    if known == sorted(known):
        return "rises"
    return "falls" if known == sorted(known, reverse=True) else "mixed"
