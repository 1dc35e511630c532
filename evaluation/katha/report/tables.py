"""Tables of an evaluation of storyboards, and figures: where along stories meaning is lost, how unevenly."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ....pages.figures import Heat, HeatRow, Plot, PlotPoint, Ridges, ridges
from ....pages.grid import if_intervals, label_text
from ....schemas.text import counted
from ....schemas.values import Score
from ...recoverability import columns, recoverability
from ...recoverability.compare import AIMS, DAGGER, SURE, KathaComparison, Strongest
from ...recoverability.matching import DIMENSIONS
from ...recoverability.method import DIFFERENCE, Method
from ...recoverability.pooling import GapScores, KathaScores, MethodScores
from ...recoverability.recoverability import Rate
from ...report.formats import comparison_table
from ...report.model import Comparison, CountRow, CountTable, Measure, ScoreRow, ScoreTable
from ...report.people import plain_score
from ...report.showing import comparison
from .cases import Spot

TEXT, IMAGE, GAP, LATENT = (Measure.of(rate) for rate in recoverability.METRICS[:4])
AMBIGUITY = Measure.of(columns.AMBIGUITY)
MORAL = Measure(name="moral_target", label="Moral target from images", better="high")
EDGES = tuple(part / 10 for part in range(-10, 11))
"""From -100 to +100 percentage points, ten apart."""
FILTERED = "Over the valid questions of each method, equal weight per dimension."


def score_tables(scores: KathaScores) -> Iterator[ScoreTable | CountTable]:
    """Yield the scores as tables: main numbers, details, each judge alone, and what was counted."""
    yield headline(scores)
    if scores.comparisons:
        yield comparison_table(scores.comparisons, "points", DIFFERENCE)
    yield from details(scores)
    yield judges_table(scores)
    yield from accounting(scores)


def headline(scores: KathaScores) -> ScoreTable:
    """Return the main numbers: filtered, at question level."""
    rows = []
    for name, method in scores.methods.items():
        main = _main(method)
        values = {"text": main.text, "image": main.image, "gap": main.gap, "latent_gap": main.latent_gap}
        values["moral_target"] = method.moral_target["image"]
        note = "negative gap: inspect the judging before concluding anything" if main.negative else None
        rows.append(ScoreRow(label=name, scores={**values, "ambiguity": method.ambiguity}, note=note))
    asked = any(row.scores["moral_target"].value is not None for row in rows)
    return ScoreTable(
        name="headline",
        title="Recoverability and Semantic Trajectory Gap",
        note=f"Answers recovered from text alone and from images alone. {FILTERED} "
        f"{scores.definitions.meaning(scores.scope['stories'], 'story')}".strip(),
        measures=(TEXT, IMAGE, GAP, LATENT, *([MORAL] if asked else []), AMBIGUITY),
        rows=tuple(rows),
    )


def plots(scores: KathaScores) -> tuple[Plot, ...]:
    """Return the gap by dimension, methods beside each other."""
    gaps = {
        label_text(dimension): tuple(
            PlotPoint(series=name, score=_main(method).dimensions[dimension]["gap"])
            for name, method in scores.methods.items()
        )
        for dimension in DIMENSIONS
    }
    ends = if_intervals(
        ", with 95 % intervals", (point.score for points in gaps.values() for point in points)
    )
    return (
        Plot(
            name="gaps",
            title="STG per dimension",
            axis="STG, text minus images",
            note=f"Text minus images, in percentage points{ends}. Further left is better.",
            unit="points",
            groups=gaps,
        ),
    )


def details(scores: KathaScores) -> Iterator[ScoreTable]:
    """Yield the scores by dimension, set and level, group, label, pair and judge."""
    yield _by_dimension(scores)
    yield _by_set(scores)
    for grouping in ("source_family", "narrative_type", "split"):
        table = _by_group(scores, grouping)
        if table is not None:
            yield table
    yield from _moral(scores)
    yield from _pairs(scores)
    yield _evidence(scores)


def judges_table(scores: KathaScores) -> ScoreTable:
    """Return the scores of every judge alone, over its own valid questions."""
    rows = [
        ScoreRow(label=f"{name} · {judge}", scores=dict(sets["filtered"]))
        for name, method in scores.methods.items()
        for judge, sets in method.judges.items()
    ]
    return ScoreTable(
        name="single_judges", title="Each judge alone", heading="Method and judge",
        note="Over the questions that are valid according to that judge alone.",
        measures=(TEXT, IMAGE, GAP), rows=tuple(rows),
    )  # fmt: skip


def comparisons(scores: KathaScores) -> tuple[Comparison, ...]:
    return tuple(
        comparison(one, "STG, valid for all methods", higher=False, better="loses less")
        for one in scores.comparisons
    )


def strongest_table(made: Strongest) -> ScoreTable:
    """Return the methods against the strongest baseline of each measure (after Table 2)."""
    measures = tuple(
        Measure(
            name=name, label=AIMS[name].label, better="high" if AIMS[name].higher else "low",
            unit="plain" if name == "human" else "points" if name == "gap" else "percent",
        )
        for name in made.values
    )  # fmt: skip
    methods = list(dict.fromkeys(method for values in made.values.values() for method in values))
    baselines = "; ".join(f"{AIMS[name].label}: {best}" for name, best in made.baselines.items())
    return ScoreTable(
        name="strongest", title=f"Methods against {made.baseline} (after Table 2)",
        note=f"{DAGGER}: better than {made.baseline}, by the paired bootstrap, p < {SURE} after "
        f"Bonferroni over the methods. Baselines: {baselines}. Image recoverability and "
        "STG are over the questions that are valid for all methods.",
        measures=measures,
        rows=tuple(
            ScoreRow(
                label=method, scores={name: values[method] for name, values in made.values.items()},
                marks={name: DAGGER for name in made.values if made.is_marked(name, method)},
            )
            for method in methods
        ),
    )  # fmt: skip


def compared_tables(made: Strongest | KathaComparison) -> list[ScoreTable]:
    """Return methods against each other as tables."""
    if isinstance(made, Strongest):
        return [strongest_table(made)]
    return [comparison_table(made.comparisons, "points", DIFFERENCE)]


def accounting(scores: KathaScores) -> Iterator[CountTable]:
    """Yield what became of the generations and questions, and the combinations of verdicts."""
    methods = scores.methods.items()
    yield CountTable(
        name="generations", title="Generations",
        note="A generation is invalid if its pictures are missing, unreadable or not as many as planned.",
        columns={
            "stories_requested": "Stories requested", "stories_valid": "Stories valid",
            "generations_requested": "Generations requested", "generations_invalid": "Generations invalid",
        },
        rows=tuple(
            CountRow(label=name, values={key: value for key, value in method.generations.items()
                                         if key != "invalid_rate"})
            for name, method in methods
        ),
    )  # fmt: skip
    yield CountTable(
        name="questions", title="Questions",
        note="Ambiguous: not answered as accepted even with text and images. Several seeds are counted "
            "separately.",
        columns={
            "total": "Asked about", "valid": "Valid", "ambiguous": "Ambiguous",
            "invalid_generation": "Of invalid generations", "unjudged": "Without a verdict",
        },
        rows=tuple(CountRow(label=name, values=dict(method.questions)) for name, method in methods),
    )  # fmt: skip
    yield _triples(scores)


def _main(method: MethodScores) -> GapScores:
    return method.gaps["question"]["filtered"]


def _by_dimension(scores: KathaScores) -> ScoreTable:
    rows = [
        ScoreRow(
            label=f"{name} · {label_text(dimension)}",
            scores={
                **_main(method).dimensions[dimension],
                "ambiguity": method.ambiguity_by_dimension[dimension],
            },
        )
        for name, method in scores.methods.items()
        for dimension in DIMENSIONS
    ]
    return ScoreTable(
        name="by_dimension", title="By dimension", heading="Method and dimension",
        note="Over the valid questions of each method.",
        measures=(TEXT, IMAGE, GAP, AMBIGUITY), rows=tuple(rows),
    )  # fmt: skip


def _by_set(scores: KathaScores) -> ScoreTable:
    names = {"raw": "All questions", "filtered": "Valid", "common": "Valid for all methods"}
    measures = tuple(
        Measure.of(recoverability.GAP, name=f"{level}_{name}", label=f"STG, {label.lower()}, by {level}")
        for level in ("question", "story")
        for name, label in names.items()
    )
    rows = tuple(
        ScoreRow(
            label=one,
            scores={
                f"{level}_{name}": gaps.gap
                for level, sets in method.gaps.items()
                for name, gaps in sets.items()
            },
        )
        for one, method in scores.methods.items()
    )  # fmt: skip
    return ScoreTable(
        name="by_set", title="STG by set of questions and by weight", measures=measures, rows=rows,
        note="By question: each question has the same weight in its dimension. By story: each story has "
            "the same weight.",
    )  # fmt: skip


def _by_group(scores: KathaScores, grouping: str) -> ScoreTable | None:
    rows = [
        ScoreRow(
            label=f"{name} · {label_text(group)}",
            scores={
                "text": one.gaps["filtered"].text,
                "image": one.gaps["filtered"].image,
                "gap": one.gaps["filtered"].gap,
                "ambiguity": one.ambiguity,
            },
            note=counted(one.stories, "story"),
        )
        for name, method in scores.methods.items()
        for group, one in method.groups.get(grouping, {}).items()
    ]
    if len(rows) <= len(scores.methods):
        return None
    return ScoreTable(
        name=f"by_{grouping}", title=f"By {label_text(grouping).lower()}",
        heading=f"Method and {label_text(grouping).lower()}", note=FILTERED,
        measures=(TEXT, IMAGE, GAP, AMBIGUITY), rows=tuple(rows),
    )  # fmt: skip


def _moral(scores: KathaScores) -> Iterator[ScoreTable]:
    yield from _if_known(
        scores.methods, "moral_target", columns.MORAL, columns.BESIDE,
        title="Moral target, among twelve labels",
        note="Stories whose moral label is named; separate from the scored dimension moral.",
    )  # fmt: skip


def _pairs(scores: KathaScores) -> Iterator[ScoreTable]:
    yield from _if_known(
        scores.methods, "pairs", columns.CONTRASTS, {},
        title="Contrastive pairs",
        note="Pairs for which judges say that the images show the source story and not the contrastive one.",
    )  # fmt: skip
    yield from _if_known(
        scores.methods, "pairs", columns.TWINS, {}, name="variants",
        title="Contrastive variants that were drawn, too",
        note="Variant accuracy: pictures made of a variant for which judges choose the variant. Both told "
        "apart: pairs for which they choose the story for its own pictures and the variant for the "
        "variant's; a coin would get a quarter of them. Pairs without judged pictures of the variant are "
        "left out.",
    )  # fmt: skip
    yield from _if_known(
        scores.methods, "pairs", columns.TRAJECTORIES, {}, name="trajectories",
        title="STG on contrastive variants",
        note="Questions about what a variant tells otherwise, answered from its text and from the pictures "
        "of the source story: pictures that tell their own story lose them, so that a higher gap is better.",
    )  # fmt: skip


def _if_known(
    methods: Mapping[str, MethodScores], part: str, rates: Sequence[Rate], beside: Mapping[str, str],
    **words: str,
) -> Iterator[ScoreTable]:  # fmt: skip
    own = [Measure.of(rate, better=None) for rate in rates if rate.shown]
    measures = (*own, *(Measure(name=name, label=label) for name, label in beside.items()))
    rows = []
    for name, method in methods.items():
        values: Mapping[str, Score] = getattr(method, part)
        if any(one.name in values and values[one.name].value is not None for one in own):
            rows.append(ScoreRow(label=name, scores={one.name: values[one.name] for one in measures}))
    if rows:
        yield ScoreTable(name=words.pop("name", part), measures=measures, rows=tuple(rows), **words)


def _evidence(scores: KathaScores) -> ScoreTable:
    rows = [
        ScoreRow(
            label=f"{name} · {row['setting']}",
            scores={
                key: plain_score(row[key], None)
                for key in ("valid_share", "image", "gap")
                if row[key] is not None
            },
        )
        for name, method in scores.methods.items()
        for row in method.evidence
    ]
    return ScoreTable(
        name="evidence", title="How the numbers change with more evidence", heading="Method and setting",
        note="What the filter by text and images does to the numbers.",
        measures=(Measure(name="valid_share", label="Questions used"), IMAGE, GAP), rows=tuple(rows),
    )  # fmt: skip


def _triples(scores: KathaScores) -> CountTable:
    methods = list(scores.methods)
    first = scores.methods[methods[0]].triples
    rows = []
    for place, triple in enumerate(first):
        marks = " ".join(
            f"{name}\N{NO-BREAK SPACE}{'✓' if right else '✗'}"
            for name, right in (("text", triple.text), ("images", triple.image), ("both", triple.text_image))
        )
        counts = {name: scores.methods[name].triples[place].count for name in methods}
        rows.append(
            CountRow(label=marks, values={**counts, "in": "yes" if triple.included else "no",
                                          "meaning": triple.meaning})
        )  # fmt: skip
    return CountTable(
        name="triples", title="Combinations of the three verdicts", heading="Verdicts",
        note="Questions with a verdict under all three conditions, by which of them was correct.",
        columns={**{name: name for name in methods}, "in": "In STG", "meaning": "What it says"},
        rows=tuple(rows),
    )  # fmt: skip


def figures_of(spots: Sequence[Spot], methods: Sequence[Method]) -> tuple[Ridges | Heat, ...]:
    """Return the distribution of gaps over stories, and the gap by transition, of every method."""
    made: tuple[Ridges | Heat | None, ...] = (_ridges(spots, methods), _strips(spots, methods))
    return tuple(figure for figure in made if figure is not None)


def _ridges(spots: Sequence[Spot], methods: Sequence[Method]) -> Ridges | None:
    """Return how gaps of stories are distributed: of a story, the share of its valid questions lost."""
    lost: dict[tuple[int, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for spot in spots:
        if spot.score.numerator is not None and spot.score.denominator:
            sums = lost[spot.method, spot.story, spot.seed]
            sums[0] += spot.score.numerator
            sums[1] += spot.score.denominator
    values: dict[str, list[float]] = {method.name: [] for method in methods}
    for (number, _, _), (numerator, denominator) in lost.items():
        values[methods[number].name].append(numerator / denominator)
    if not lost:
        return None
    return Ridges(
        name="gap_ridges", title="Gaps of single stories", axis="Gap of a storyboard", unit="points",
        edges=EDGES,
        note="How many storyboards lose how much: the share of a story's valid questions that text tells "
        "and images do not, in percentage points. Steps of ten points, nothing is smoothed; the line is the "
        "median, which stands at the right.",
        ridges=ridges({name: tuple(some) for name, some in values.items()}, EDGES),
    )  # fmt: skip


def _strips(spots: Sequence[Spot], methods: Sequence[Method]) -> Heat | None:
    """Return the mean gap of each transition, for each method."""
    gaps: dict[tuple[int, tuple[int, ...]], list[float]] = defaultdict(list)
    for spot in spots:
        if len(spot.scenes) > 1 and spot.score.value is not None:
            gaps[spot.method, spot.scenes].append(spot.score.value)
    columns = sorted({scenes for _, scenes in gaps})
    if len(columns) < 2:
        return None
    return Heat(
        name="gap_strips", title="Where along the story meaning is lost", unit="points", heading="Method",
        axis="Transition, from scene to scene",
        note="The mean gap of the questions about a transition, in percentage points: darker cells lose "
        "more. At the right the mean of the cells.",
        columns=tuple(f"{scenes[0]}\N{EN DASH}{scenes[-1]}" for scenes in columns),
        rows=tuple(
            HeatRow(
                label=method.name,
                values=tuple(
                    sum(some) / len(some) if (some := gaps.get((number, scenes))) else None
                    for scenes in columns
                ),
                missing=tuple("no valid question" for _ in columns),
            )
            for number, method in enumerate(methods)
        ),
    )  # fmt: skip
