"""Figures of an evaluation of storyboards: where along stories meaning is lost, and how unevenly."""

from collections import defaultdict
from collections.abc import Sequence

from ....pages.figures import Heat, HeatRow, Ridges, ridges
from ...recoverability.method import Method
from .cases import Spot

EDGES = tuple(part / 10 for part in range(-10, 11))
"""From -100 to +100 percentage points, ten apart."""


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
        name="gap_ridges", title="Gaps of single stories", unit="points", edges=EDGES,
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
        note="The mean gap of the questions about a transition, in percentage points: darker cells lose "
        "more. At the right the mean of the cells.",
        columns=tuple(f"{scenes[0]}\N{EN DASH}{scenes[-1]}" for scenes in columns),
        rows=tuple(
            HeatRow(
                label=method.name,
                values=tuple(_mean(gaps.get((number, scenes), [])) for scenes in columns),
                missing=tuple("no valid question" for _ in columns),
            )
            for number, method in enumerate(methods)
        ),
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
