"""Tables and the plot of a report on episodes: what the scores say, without any picture."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from typing import Any

from ....pages.figures import Plot, PlotPoint
from ....pages.grid import value_text
from ....schemas.entities import ALL, TYPES
from ....schemas.text import counted
from ....schemas.values import Score
from ...report.model import (
    Comparison,
    Measure,
    ScoreRow,
    ScoreTable,
    Trace,
)
from ...report.people import if_any, plain_score, score_of
from ...report.showing import comparison
from ..metrics.aggregate import MEANINGS, Number
from ..metrics.catalogue import METRICS, EntityMetric, metric_named
from ..metrics.decay import GapCurve, Signal
from ..scores.compare import entity_effects
from ..scores.scores import EntityScores, MethodScores
from ..scores.tables import EVERY_SIGNAL, TABLE_4, counts_text, curves_of, score_tables

TITLES = {"fidelity": "appearances", "pair": "pairs"}
AGREED = (
    Measure(name="judge", label="Judge against people", unit="number", better="high"),
    Measure(name="people", label="Between people, mean", unit="number", better="high"),
    Measure(name="least", label="Lowest", unit="number"),
    Measure(name="greatest", label="Highest", unit="number"),
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
Traces = Callable[[str, EntityMetric], tuple[tuple[Trace, ...], str]]
"""Method and metric -> what the number was made of, and how that was chosen."""


GapTraces = Callable[[str, GapCurve], tuple[tuple[Trace, ...], str]]
"""Method and curve -> the pairs that its bins were made of, and how these were chosen."""


def anchor_of(number: int, metric: str) -> str:
    """Return the name in links of a metric of the method with this number."""
    return f"m{number}-{metric}"


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
    values, traces = dict[str, Score](), []
    for number, method in enumerate(scores.methods, 1):
        known = method.numbers.get(metric.name)
        if known is not None:
            counts = {name: known.score.counts[name] for name in FATES if name in known.score.counts}
            values[method.method] = known.score.model_copy(update={"counts": counts})
            text, anchor = value_text(known.value, "number"), anchor_of(number, metric.name)
            traces.append(Trace(label=method.method, text=text, anchor=anchor))
    if not values:
        return None
    return ScoreRow(label=metric.label, note=metric.name, scores=values, traces=tuple(traces))


def every_metric(scores: EntityScores, traces: Traces) -> Iterator[ScoreTable]:
    """Yield a table per method: every metric with raw mean, coverage and what became of its instances."""
    corrected = scores.definitions.coverage in ("eq23", "table15")
    first = "Corrected mean" if corrected else "Mean of episodes"
    for number, method in enumerate(scores.methods, 1):
        rows = []
        for pillar, title in PILLARS.items():
            some = [metric for metric in METRICS if metric.pillar == pillar and metric.name in method.numbers]
            made = [_metric_row(method, number, metric, traces) for metric in some]
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
            "skipped by the gate, failed (no usable reply or measurement), are of entities that were not "
            "recognised (absent), or of shots without a video (missing).",
        )  # fmt: skip


def _metric_row(method: MethodScores, number: int, metric: EntityMetric, traces: Traces) -> ScoreRow:
    known = method.numbers[metric.name]
    why = known.score.reason or "nothing was scored"
    behind, note = traces(method.method, metric)
    return ScoreRow(
        label=metric.label, note=f"{metric.name}: {counts_text(known, ALWAYS)}",
        scores={
            "value": known.score.model_copy(update={"counts": {}, "denominator": None}),
            "raw": plain_score(known.raw, why), "coverage": _coverage(known),
        },
        anchor=anchor_of(number, metric.name), traces=behind, traces_note=note,
    )  # fmt: skip


def _coverage(number: Number) -> Score:
    return plain_score(number.coverage, number.score.reason or "nothing is eligible")


def further_tables(scores: EntityScores, gaps: GapTraces) -> Iterator[ScoreTable]:
    """Yield the numbers by tier and by gap, where there are some; bins of gaps open to their pairs."""
    for table in score_tables(scores):
        if table.name == "table_22" and table.rows:
            yield table
        if table.name == "gaps" and table.rows:
            rows = []
            curves = curves_of(EVERY_SIGNAL, scores, TYPES)
            for row, (_, method, curve) in zip(table.rows, curves, strict=True):
                behind, note = gaps(method, curve)
                rows.append(row.model_copy(update={"traces": behind, "traces_note": note}))
            yield table.model_copy(update={"rows": tuple(rows)})


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
                name="gap", title=f"Similarity of {kind}s by gap, {words}", unit="number", groups=bins,
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
        rows = [
            ScoreRow(
                label=f"{scope}, {name.replace('_', ' ')} ({agreed['name']})",
                scores={
                    "judge": score_of(agreed["judge"]),
                    "people": score_of(agreed["people"]),
                    **{
                        end: plain_score(agreed[end], "no two people compare")
                        for end in ("least", "greatest")
                    },
                },
                note=f"{counted(agreed['judge']['counts']['used'], 'answer')} compared",
            )
            for scope, asked in scopes.items()
            for name, agreed in asked.items()
        ]
        title = f"{document['judge']} against people: {TITLES[kind]}"
        yield from if_any(f"people_{kind}", title, "Type and question", AGREED, rows)
