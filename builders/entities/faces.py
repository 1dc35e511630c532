"""Whose face is whose: faces given to the people of a frame."""

from collections.abc import Sequence

import numpy as np

from ...models.vision.types import Box

INSIDE = 0.6
"""Share of a face that lies in the box of the person whose face it is, at least."""
_HEAD = 0.12  # of the height of a box, from its top: where the middle of a head is


def faces_of_people(people: Sequence[Box], faces: Sequence[Box]) -> list[int | None]:
    """Return for each person which face is theirs; None where there is none.

    A face may be that of a person whose box holds at least :data:`INSIDE` of it. As many faces as possible
    are given out, and of all ways to do so the one in which the distances of faces from heads, in heights of
    the people's boxes, have the least sum.
    """
    from scipy.optimize import linear_sum_assignment

    if not people or not faces:
        return [None] * len(people)
    far = float(10 * (len(people) + len(faces)))
    costs = np.full((len(people), len(faces)), far)
    for row, person in enumerate(people):
        for column, face in enumerate(faces):
            if _inside(face, person) >= INSIDE:
                costs[row, column] = min(_distance(face, person), 5.0)
    given: list[int | None] = [None] * len(people)
    for row, column in zip(*linear_sum_assignment(costs), strict=True):
        if costs[row, column] < far:
            given[int(row)] = int(column)
    return given


def _inside(face: Box, person: Box) -> float:
    width = min(face.right, person.right) - max(face.left, person.left)
    height = min(face.bottom, person.bottom) - max(face.top, person.top)
    return max(0.0, width) * max(0.0, height) / face.area


def _distance(face: Box, person: Box) -> float:
    height = person.bottom - person.top
    across = (face.left + face.right - person.left - person.right) / 2
    down = (face.top + face.bottom) / 2 - (person.top + _HEAD * height)
    return float(np.hypot(across, down)) / height
