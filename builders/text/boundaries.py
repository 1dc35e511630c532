"""Where the scenes begin: dynamic programming over sentences and clauses.

The cost of a division is the sum over scenes of (length / mean length - 1) squared, plus for every
boundary a penalty for splitting a sentence and what ``openings`` says of the sentence that begins there.
"""

from collections.abc import Sequence
from itertools import pairwise

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced
from ..replies import Problems, check_count
from .openings import opening_costs
from .segments import Analysis, Segment

SPLIT_PENALTY = (0.0, 0.35, 0.6, 0.9)
EVENNESS = 0.7
"""How much the lengths of scenes count beside what the sentences say."""
WIDE = 120
"""Up to so many segments every division is looked at; beyond, only the best near each equal share."""
CANDIDATES = 60


def divide(
    text: str, analysis: Analysis, count: int, paragraphs: frozenset[int] = frozenset()
) -> tuple[tuple[int, int], ...] | None:
    """Return the spans of the scenes in the text, or None where it has fewer segments than scenes.

    ``count``: the number of scenes, at least 2.
    """
    segments = analysis.segments
    if len(segments) < count:
        return None
    first = _best_starts(_lengths(text, segments), _boundary_costs(text, analysis, paragraphs), count)
    starts = [segments[index].start for index in first]
    ends = [segments[index - 1].end for index in (*first[1:], len(segments))]
    return tuple(zip(starts, ends, strict=True))


def _lengths(text: str, segments: Sequence[Segment]) -> list[int]:
    if is_unspaced(text):
        return [segment.end - segment.start for segment in segments]
    return [len(text[segment.start : segment.end].split()) for segment in segments]


def _boundary_costs(text: str, analysis: Analysis, paragraphs: frozenset[int]) -> list[float]:
    """Return the cost of beginning a scene at each segment."""
    opening = opening_costs(text, analysis, paragraphs)
    return [
        SPLIT_PENALTY[segment.strength] + opening.get(number, 0.0)
        for number, segment in enumerate(analysis.segments)
    ]


def _best_starts(lengths: Sequence[int], costs: Sequence[float], count: int) -> list[int]:
    """Return the first segment of each scene. Ties go to the earlier boundary."""
    total = [0]
    for length in lengths:
        total.append(total[-1] + length)
    mean = total[-1] / count
    size = len(lengths)

    def scene_cost(first: int, end: int) -> float:
        return EVENNESS * ((total[end] - total[first]) / mean - 1) ** 2

    # best[end] = (cost, starts) of dividing the segments before `end` into the scenes so far.
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [0])}
    for scene in range(1, count + 1):
        ends = [size] if scene == count else _candidates(total, costs, scene, count)
        step: dict[int, tuple[float, list[int]]] = {}
        for end in ends:
            extra = costs[end] if end < size else 0.0
            options = [
                (cost + scene_cost(starts[-1], end) + extra, starts)
                for first, (cost, starts) in best.items()
                if first < end
            ]
            if options:
                cost, starts = min(options, key=lambda option: option[0])
                step[end] = (cost, [*starts, end])
        best = step
    return best[size][1][:-1]


def _candidates(total: Sequence[int], costs: Sequence[float], scene: int, count: int) -> list[int]:
    """Return the segments at which the scene after the given one may begin."""
    size = len(costs)
    possible = range(scene, size - (count - scene) + 1)
    if size <= WIDE:
        return list(possible)
    share = total[-1] / count

    def estimate(end: int) -> float:
        return costs[end] + abs(total[end] - scene * share) / share

    return sorted(sorted(possible, key=estimate)[:CANDIDATES])


def read_division(entries: Sequence[Json], count: int, name: str, story: Json, analysis: Json) -> list[str]:
    """Return the texts of the scenes or shots into which a reply divides a story.

    They are spans of the story that hold all of it but white space, whatever the reply says.
    """
    segments = Analysis.from_json(analysis).segments
    check_count(entries, count, f"{name}s")
    firsts = [entry["first_segment"] for entry in entries]
    problems = Problems()
    if firsts[0] != 1:
        problems.add(f"{name} 1 must have first_segment 1, not {firsts[0]}")
    for number, (before, first) in enumerate(pairwise(firsts), start=2):
        if not before < first <= len(segments):
            problems.add(
                f"{name} {number}: first_segment must be greater than {before}, that of the {name} before,"
                f" and at most {len(segments)}; found {first}"
            )
    problems.settle()
    text, stops = story["normalized_text"], [*firsts[1:], len(segments) + 1]
    return [
        text[segments[first - 1].start : segments[stop - 2].end]
        for first, stop in zip(firsts, stops, strict=True)
    ]
