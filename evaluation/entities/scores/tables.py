"""Scores and comparisons of episodes in the layout of the paper's tables (4, 5, 12 to 23)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....schemas.entities import ALL, TYPES, EntityType
from ....schemas.text import tallied
from ....schemas.values import Score
from ...report.formats import p_measures
from ...report.model import Measure, ScoreRow, ScoreTable
from ...report.people import plain_score
from ...stats.uncertainty import ranks
from ..archived import ACTION_CRITERIA, CRITERIA, QUALITY
from ..metrics.aggregate import MEANINGS, GapCurve, Number, Signal
from ..metrics.catalogue import EntityMetric, metric_named
from .scores import Effect, EntityComparisons, EntityScores, MethodScores

# -- The tables of the EntityBench paper as data: which metrics stand in which rows, under which headings

Rows = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Rows of a table under one heading."""

    heading: str  # what stands above them; empty for nothing
    rows: Rows  # names of metrics, or their short names where the table has these


@dataclass(frozen=True)
class Layout:
    """One table whose rows are metrics."""

    name: str  # in files, such as ``table_4``
    title: str  # its caption
    sections: tuple[Section, ...]  # its rows
    note: str = ""  # what a reader must know


def _within(word: str, criteria: Rows) -> Rows:
    return (f"intra_{word}_fidelity", *(f"intra_{word}_{name}" for name in criteria))


def _across(word: str, criteria: Rows) -> Rows:
    return tuple(f"llm_{word}_{name}" for name in ("accuracy", "mean_score", *criteria))


PRESENCE = ("intra_character_presence", "intra_object_presence", "intra_location_presence")
CHARACTER_FIDELITY = _within("face", CRITERIA["character"])
OBJECT_FIDELITY = _within("object", CRITERIA["object"])
LOCATION_FIDELITY = _within("location", CRITERIA["location"])
ACTION = tuple(f"intra_action_{name}" for name in ("overall", "depicted", *ACTION_CRITERIA))
DINO = ("cs_face", "cs_object", "cs_transition_boundary")
LLM_CHARACTERS = _across("face", CRITERIA["character"])
LLM_OBJECTS = _across("object", CRITERIA["object"])
LLM_SCENES = _across("scene", CRITERIA["location"])

TABLE_4 = Layout(
    "table_4",
    "Table 4: main results",
    (
        Section("P1: Quality", ("imaging_quality", "aesthetic_quality", "motion_smoothness")),
        Section("P2: Presence", ("char_presence", "obj_presence", "loc_presence")),
        Section("P2: Fidelity (overall)", ("face_fidelity", "object_fidelity", "location_fidelity")),
        Section("P2: Action", ("action_overall", "action_subject", "action_interaction")),
        Section("P3: DINOv2 similarity", DINO),
        Section("P3: LLM characters", LLM_CHARACTERS[:3]),
        Section("P3: LLM objects", LLM_OBJECTS[:3]),
        Section("P3: LLM scenes", LLM_SCENES[:3]),
    ),
    "imaging_quality is of 0 to 100, all others are of 0 to 1.",
)
TABLE_12 = Layout(
    "table_12", "Table 12: pillar 1, quality within shots", (Section("", QUALITY),), TABLE_4.note
)
TABLE_13 = Layout(
    "table_13",
    "Table 13: pillar 2, following the prompt within shots",
    (
        Section("Presence (3 metrics)", PRESENCE),
        Section("Character fidelity (5 metrics)", CHARACTER_FIDELITY),
        Section("Object fidelity (5 metrics)", OBJECT_FIDELITY),
        Section("Location fidelity (5 metrics)", LOCATION_FIDELITY),
        Section("Action correctness (6 metrics)", ACTION),
    ),
)
TABLE_14 = Layout(
    "table_14",
    "Table 14: pillar 3, consistency across shots",
    (
        Section("DINOv2 embedding similarity (3 metrics)", DINO),
        Section("LLM characters (6 metrics)", LLM_CHARACTERS),
        Section("LLM objects (6 metrics)", LLM_OBJECTS),
        Section("LLM scenes (6 metrics)", LLM_SCENES),
    ),
)
TABLE_15 = Layout(
    "table_15",
    "Table 15: raw means and coverage",
    (
        Section(
            "Pillar 2: fidelity within shots",
            (CHARACTER_FIDELITY[0], OBJECT_FIDELITY[0], LOCATION_FIDELITY[0]),
        ),
        Section("Pillar 3: DINOv2 across shots", DINO),
        Section("Pillar 3: LLM across shots", (LLM_CHARACTERS[0], LLM_OBJECTS[0])),
    ),
    "The paper has no row of scenes and none of actions.",
)
CATEGORIES = (
    Section("Character fidelity (intra-shot)", CHARACTER_FIDELITY),
    Section("Character presence", PRESENCE[:1]),
    Section("Action overall & sub-criteria", ACTION),
    Section("Location fidelity (intra-shot)", LOCATION_FIDELITY),
    Section("LLM character (cross-shot)", LLM_CHARACTERS),
    Section("Object presence", PRESENCE[1:2]),
    Section("Object fidelity (intra-shot)", OBJECT_FIDELITY),
    Section("DINOv2 cross-shot (face / object / boundary)", DINO),
    Section("LLM object (cross-shot)", LLM_OBJECTS),
    Section("LLM scene (cross-shot)", LLM_SCENES),
    Section("VBench intra-shot quality (Pillar 1)", QUALITY),
    Section("Location presence (not in the paper's table)", PRESENCE[2:]),
)
"""The rows of Table 5, and what it leaves out."""
EFFECTS = (
    Layout("table_16", "Table 16: pillar 1, effect sizes", TABLE_12.sections, TABLE_4.note),
    Layout("table_17", "Table 17: pillar 2, effect sizes", TABLE_13.sections),
    Layout("table_18", "Table 18: pillar 3, effect sizes", TABLE_14.sections),
)
BY_TIER = (PRESENCE[0], CHARACTER_FIDELITY[0], ACTION[0], DINO[0], LLM_CHARACTERS[0], LLM_OBJECTS[0])
"""The metrics of Table 22."""
GAPS_BY_TIER = (*BY_TIER[:3], *BY_TIER[4:], BY_TIER[3])
"""The metrics of Table 23."""
CURVES: tuple[tuple[str, str, tuple[tuple[str, Signal], ...]], ...] = (
    ("table_19", "Table 19: similarity of characters by gap, as judged", (("LLM", "judged"),)),
    ("table_20", "Table 20: DINOv2 similarity of characters by gap", (("DINOv2", "centroid"),)),
    ("table_21", "Table 21: similarity of characters by gap", (("LLM", "judged"), ("DINOv2", "centroid"))),
)
"""Name, title and signals of the tables of gap decay; each signal under its word there."""


# --

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
