"""psi and sim of Eq. 25 and 26: encoders by name, vectors that are stored once, and cosines.

Question: how alike are a frame and an annotation, or a frame and the next one?
Formula: the cosine of their vectors, to six digits, added up exactly, so that no machine decides differently.
Input: pictures; texts of annotations. Two encoders: one of pictures and texts for coverage, one of pictures
    for copies; the paper's psi stands for both, and no one encoder is good at both.
Output: in [-1, 1].
Undefined when: an encoder has no vector for a picture; then nothing is above a threshold.
Source: KathaTrace, Eq. 25-26. Neither encoder nor preparation is named there.
Departures from the source: any model of :mod:`fabula.models.vision` may be named, such as ``clip-vit-l-14``
    for coverage and ``dinov2-l-14`` for copies. Two more need no weights. ``pixels``: 16 x 16 cells of mean
    colour, for copies of any picture. ``drawn-marks``: the marks that stand in pictures of the generator
    ``drawn``, for both, and for its pictures only.
Example: two equal pictures: 1.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import ConfigError
from ...media.images import open_picture
from ...models.vision.registry import Kind, names, open_vision
from ...models.vision.store import VectorStore
from ...models.vision.types import Card, Encoder, Rows, TextEncoder, TextRows
from ...models.vision.weights import Place
from .scoring import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 16
"""Cells of ``pixels`` in a row, and rows."""
MARKS = 4096
"""Length of a vector of ``drawn-marks``."""


class PixelEncoder:
    """The colours of a picture's 16 x 16 cells, around middle grey; for copies only."""

    card = Card("pixels", "own", "1", f"{SIDE} x {SIDE} cells of mean colour", 3 * SIDE * SIDE + 1, 0.0, "-")
    identity = "pixels@1"

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 769); the last number is the same for all before scaling."""
        from PIL import Image

        rows = []
        for image in images:
            cells = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
            colours = np.asarray(cells, dtype=np.float64).ravel() / 255 - 0.5
            rows.append(np.append(colours, 0.5))  # a grey picture has a direction, too
        return _unit(np.array(rows).reshape(len(rows), 3 * SIDE * SIDE + 1))


class DrawnMarksEncoder:
    """Which marks a picture of the generator ``drawn`` shows; a text's are those of its lines."""

    card = Card("drawn-marks", "own", "1", "marks of drawn pictures", MARKS, 0.0, "-")
    identity = "drawn-marks@1"

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 4096); ``nan`` for a picture in which no mark can be read."""
        from ...models.generators.drawn.reading import read_marks

        bags = [_bag([mark.code for mark in read_marks(image)]) for image in images]
        rows = _unit(np.array(bags).reshape(len(bags), MARKS))
        rows[~rows.any(axis=1)] = np.nan
        return rows

    def encode_texts(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts whose lines each name one mark; nothing is cut off."""
        from ...models.generators.drawn.canvas import code_of

        rows = [_bag([code_of(line) for line in text.splitlines() if line.strip()]) for text in texts]
        return TextRows(_unit(np.array(rows).reshape(len(rows), MARKS)), (0,) * len(rows))


OWN: Mapping[str, Callable[[], Encoder]] = {"pixels": PixelEncoder, "drawn-marks": DrawnMarksEncoder}
"""Encoders that need no weights."""


@dataclass(frozen=True)
class Encoders:
    """The two encoders, with the store of vectors."""

    coverage: TextEncoder = field(repr=False)  # of pictures and texts, for Eq. 25.
    copies: Encoder = field(repr=False)  # of pictures, for Eq. 26.
    store: VectorStore = field(repr=False)  # keeps vectors by content
    batch: int = 16  # pictures that an encoder gets at once

    @property
    def identities(self) -> dict[str, str]:
        """What the results depend on: names, revisions, numbers and devices."""
        return {"coverage": self.coverage.identity, "copies": self.copies.identity}

    def likeness(self, frames: Sequence[Path], texts: Sequence[str]) -> Floats:
        """Return the cosine of each frame and each text, shape (frames, texts)."""
        pictures = self._rows(self.coverage, frames)
        words = self.store.texts(self.coverage, texts, self.batch).rows
        return np.array([[cosine(row, text) for text in words] for row in pictures]).reshape(
            len(frames), len(texts)
        )

    def neighbours(self, frames: Sequence[Path]) -> Floats:
        """Return the cosine of each frame and the next, shape (frames - 1,)."""
        rows = self._rows(self.copies, frames)
        return np.array([cosine(row, after) for row, after in pairwise(rows)])

    def _rows(self, model: Encoder, frames: Sequence[Path]) -> Rows:
        return self.store.rows(model, [open_picture(frame).image for frame in frames], self.batch)


def open_encoders(
    coverage: str,
    copies: str,
    run_on: Place | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    store: VectorStore | None = None,
) -> Encoders:
    """Return the two encoders with their weights.

    ``options``: name -> settings of its loader, such as ``local``. ``store``: keeps vectors; None for the
    user's.
    """
    run_on, options = run_on or Place(), options or {}
    return Encoders(
        cast("TextEncoder", _opened(coverage, run_on, options, texts=True)),
        _opened(copies, run_on, options, texts=False),
        VectorStore.of_user() if store is None else store,
    )


def cosine(first: Rows, second: Rows) -> float:
    """Return the cosine of two vectors to six digits, 0 where one has no direction; ``nan`` of ``nan``."""
    product, scale = _dot(first, second), math.sqrt(_dot(first, first) * _dot(second, second))
    if math.isnan(product) or not scale:
        return product
    return round(max(-1.0, min(1.0, product / scale)), 6)


def _dot(first: Rows, second: Rows) -> float:
    # Not numpy's: the order in which it adds depends on the processor.
    products = first.astype(np.float64) * second.astype(np.float64)
    return math.fsum(products[products != 0].tolist())


def _opened(name: str, run_on: Place, options: Mapping[str, Mapping[str, Any]], *, texts: bool) -> Encoder:
    if name in OWN:
        model = OWN[name]()
        if texts and not isinstance(model, TextEncoder):
            fix = "name an encoder of pictures and texts, such as clip-vit-l-14 or drawn-marks"
            raise ConfigError(f"encoder {name}", what="it takes no texts, which Eq. 25 needs", fix=fix)
        return model
    if name not in names() and ":" not in name:
        fix = f"name one of them, or package.module:loader; {', '.join(OWN)} need no weights"
        raise ConfigError(f"encoder {name}", what=f"there are {', '.join((*names(), *OWN))}", fix=fix)
    kind: Kind = "text encoder" if texts else "encoder"
    return cast("Encoder", open_vision(name, run_on, options.get(name, {}), kind))


def _bag(codes: Sequence[str]) -> Floats:
    row = np.zeros(MARKS)
    for code in codes:
        row[int(code, 16) % MARKS] += 1
    return row


def _unit(rows: Floats) -> Rows:
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    unit: Rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0).astype(np.float32)
    return unit
