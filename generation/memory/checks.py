"""What is looked at in a picture before any model is asked: the mask's area, holes, pieces, edges, leftovers.

Every check has a limit of ours: the paper names what makes a portrait fail, without numbers (C.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import PANORAMA_SIZE, BankCheck
from .keying import CutOut, Mask, components
from .words import is_many

if TYPE_CHECKING:
    from PIL.Image import Image

RULES = "rules"


class CheckLimits(Own):
    """How much of what is borne."""

    least_area: float = Field(default=0.03, ge=0, le=1, description="Share of the picture that is subject.")
    most_area: float = Field(default=0.85, ge=0, le=1, description="The same, at most.")
    most_holes: float = Field(
        default=0.04, ge=0, le=1, description="Ground that the subject encloses, as a share of both."
    )
    most_pieces: float = Field(
        default=0.08, ge=0, le=1, description="The second largest piece, as a share of the largest."
    )
    most_touching: float = Field(
        default=0.02, ge=0, le=1, description="Share of an edge of the picture that the subject touches."
    )
    most_tinted: float = Field(
        default=0.12, ge=0, le=1, description="Share of the subject whose colour is near the ground's."
    )
    least_ground: float = Field(
        default=0.6, ge=0, le=1, description="Share of the picture's edge that has the ground's colour."
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """What is cut out."""

    type: EntityType  # of the entity
    name: str  # of the entity; one of several things may be in several pieces


def check_cut(cut: CutOut, subject: Subject, limits: CheckLimits) -> tuple[BankCheck, ...]:
    """Return the checks of a cut-out portrait, each passed or not."""
    return tuple(_checks(cut, subject, limits))


def _checks(cut: CutOut, subject: Subject, limits: CheckLimits) -> Iterator[BankCheck]:
    area = float(cut.mask.mean())
    if cut.ground is not None:
        yield _check("ground", cut.ground >= limits.least_ground, f"{cut.ground:.0%} of the edge is ground")
    yield _check("area", limits.least_area <= area <= limits.most_area, f"{area:.1%} of the picture")
    whole = int(cut.mask.sum())
    if not whole:
        return
    holes = int(cut.enclosed.sum()) / (whole + int(cut.enclosed.sum()))
    yield _check("holes", holes <= limits.most_holes, f"{holes:.1%} of it is ground that it encloses")
    yield _pieces(cut.mask, subject, limits)
    sides = touching(cut.mask)
    worst = max(sides, key=lambda side: sides[side])
    yield _check("border", sides[worst] <= limits.most_touching, f"{sides[worst]:.1%} of the {worst} edge")
    tinted = int(cut.tinted.sum()) / whole
    yield _check("key_left", tinted <= limits.most_tinted, f"{tinted:.1%} of it is near the ground's colour")


def _pieces(mask: Mask, subject: Subject, limits: CheckLimits) -> BankCheck:
    """Return whether the subject is one thing: no second figure, no head without its neck.

    Parts of an object may hover above each other; one beside the other is a second object. A name of several
    things says nothing about pieces.
    """
    sizes = components(mask)
    share = sizes[1] / sizes[0] if len(sizes) > 1 else 0.0
    note = f"the second largest of {len(sizes)} pieces has {share:.1%} of the largest"
    if subject.type == "object" and share > limits.most_pieces:
        if is_many(subject.name):
            return BankCheck(code="pieces", passed=None, note=f"{note}; it is named as several", by=RULES)
        return _check("pieces", not _side_by_side(mask, sizes[1]), note)
    return _check("pieces", share <= limits.most_pieces, note)


def _side_by_side(mask: Mask, least: int) -> bool:
    """Whether of the pieces of so many pixels or more two share no column of the picture."""
    from scipy import ndimage

    labels, _ = ndimage.label(mask, structure=np.ones((3, 3), dtype=int))
    sizes = np.bincount(labels.reshape(-1))
    spans = []
    for number, columns in enumerate(ndimage.find_objects(labels), 1):
        if columns is not None and sizes[number] >= least:
            spans.append((columns[1].start, columns[1].stop))
    return any(
        first[1] <= other[0] or other[1] <= first[0]
        for number, first in enumerate(spans)
        for other in spans[number + 1 :]
    )


def touching(mask: Mask) -> dict[str, float]:
    """Return for each edge of the picture which share of it the subject covers."""
    edges = {"upper": mask[0], "lower": mask[-1], "left": mask[:, 0], "right": mask[:, -1]}
    return {name: float(edge.mean()) for name, edge in edges.items()}


def bounds_of(mask: Mask) -> tuple[int, int, int, int] | None:
    """Return left, top, right, bottom of a mask in pixels, the last two outside; None for an empty one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


LEAST_CONTRAST = 4.0
"""Standard deviation of the brightness, of 255, below which a panorama shows nothing."""


def check_panorama(image: "Image") -> tuple[BankCheck, ...]:
    """Return the checks of a panorama: whether it shows anything, and whether its shape was as asked."""
    brightness = float(np.asarray(image.convert("L"), dtype=np.float32).std())
    width, height = PANORAMA_SIZE
    shape = image.size == PANORAMA_SIZE
    cut = "" if shape else f", brought to {width} x {height} by cutting and scaling"
    return (
        _check("contrast", brightness >= LEAST_CONTRAST, f"its brightness varies by {brightness:.1f}"),
        BankCheck(
            code="shape",
            passed=shape or None,
            note=f"it came as {image.width} x {image.height}{cut}",
            by=RULES,
        ),
    )


def _check(code: str, passed: bool, note: str) -> BankCheck:
    return BankCheck(code=code, passed=passed, note=note, by=RULES)


def passes(checks: tuple[BankCheck, ...]) -> bool:
    """Whether nothing is known against a picture."""
    return all(check.passed is not False for check in checks)


SHAPES = {"character": (1.6, 4.5), "object": (0.25, 4.0)}
"""Type -> height over width of a subject between which proportions are usual."""
FILLED = {"character": 0.9, "object": 0.7}
"""Type -> share of the picture's height, or of its longer extent, that a well composed subject takes."""


def composition(cut: CutOut, kind: EntityType) -> float:
    """Return how well a cut-out is composed, 0 to 1: the mean of size, place and proportions.

    Size is how near its longer extent comes to :data:`FILLED`, place how near its middle is to the middle of
    the picture, proportions 1 within :data:`SHAPES` and less beyond. 0 where nothing is cut out.
    """
    edges = bounds_of(cut.mask)
    if edges is None:
        return 0.0
    height, width = cut.mask.shape
    left, top, right, bottom = edges
    tall, wide = bottom - top, right - left
    extent = tall / height if kind == "character" else max(tall / height, wide / width)
    size = max(0.0, 1 - abs(extent - FILLED[kind]) / FILLED[kind])
    off = abs((left + right) / 2 / width - 0.5) + abs((top + bottom) / 2 / height - 0.5)
    low, high = SHAPES[kind]
    ratio = tall / wide
    shape = min(1.0, ratio / low, high / ratio)
    return float(size + max(0.0, 1 - 2 * off) + shape) / 3
