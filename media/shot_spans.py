"""Shots as stretches of frames, made of what is likely of every frame."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Opening = Literal["start", "cut", "gradual"]
GRADUAL_FROM = 4
"""Frames of a change from which it counts as gradual."""


class Span(NamedTuple):
    """A stretch of frames, both ends in it."""

    first: int
    last: int


def spans_of(ends: Sequence[float], threshold: float) -> tuple[Span, ...]:
    """Return the shots between frames that are likely to end one, as TransNetV2's authors do.

    A shot ends with the first of the frames in a row whose value is above the threshold; the next one begins
    behind the last of them. So frames inside a change belong to no shot. Where every frame is above the
    threshold the whole is one shot.
    """
    spans, first, before = [], 0, False
    for number, value in enumerate(ends):
        now = value > threshold
        if before and not now:
            first = number
        if now and not before and number:
            spans.append(Span(first, number))
        before = now
    if not before and len(ends):
        spans.append(Span(first, len(ends) - 1))
    return tuple(spans) or (Span(0, len(ends) - 1),)


def openings_of(spans: Sequence[Span], changes: Sequence[float], threshold: float) -> tuple[Opening, ...]:
    """Return how each shot begins.

    It comes out of a gradual change where :data:`GRADUAL_FROM` frames or more in a row around its beginning
    are likely to belong to a change.
    """
    openings: list[Opening] = []
    for number, span in enumerate(spans):
        if not number:
            openings.append("start")
            continue
        frame = spans[number - 1].last
        first, last = frame, frame
        while first > 0 and changes[first - 1] > threshold:
            first -= 1
        while last + 1 < len(changes) and (changes[last + 1] > threshold or last + 1 < span.first):
            last += 1
        openings.append("gradual" if last - first + 1 >= GRADUAL_FROM else "cut")
    return tuple(openings)
