"""Places by rules: shots whose colours are alike are taken to be at one place."""

from collections.abc import Sequence

from ..colours import distance


def places_of(colours: Sequence[Sequence[int]], apart: float) -> list[int]:
    """Return the number of each shot's place, numbered from 1 by first appearance.

    In order of the shots, each joins the place whose mean colours are nearest, if they are less than
    ``apart`` away, else it begins a new one; among equals the earlier place is taken. A shot without colours
    joins the one before it.

    Args:
        colours: histogram of each shot, as :func:`..colours.histogram` gives it; may be empty.
        apart: distance from which on places differ, 0 to 1.
    """
    sums: list[list[int]] = []
    counts: list[int] = []
    numbers: list[int] = []
    for shot in colours:
        if not shot and numbers:
            numbers.append(numbers[-1])
            continue
        means = [[value / count for value in total] for total, count in zip(sums, counts, strict=True)]
        far = [_distance(shot, mean) for mean in means]
        nearest = min(range(len(far)), key=lambda place: (far[place], place), default=None)
        if nearest is None or far[nearest] >= apart:
            sums.append(list(shot))
            counts.append(1)
            nearest = len(sums) - 1
        else:
            sums[nearest] = [a + b for a, b in zip(sums[nearest], shot, strict=True)]
            counts[nearest] += 1
        numbers.append(nearest + 1)
    return numbers


def _distance(shot: Sequence[int], mean: Sequence[float]) -> float:
    return distance(shot, [round(value) for value in mean])
