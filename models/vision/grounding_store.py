"""The store of boxes: what a text describes is looked for once in a picture, whoever asks and whenever.

They lie in the store of vectors, known by the picture's pixels, the text, and what the detector's result
depends on. So another judge, another threshold of similarity, or a method with equal frames looks at nothing
anew.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from .store import LIMIT, VectorStore, vector_key
from .types import Box, Grounder, Rows

if TYPE_CHECKING:
    from PIL.Image import Image

_NUMBERS = 5  # left, top, right, bottom, score


class GroundingStore(VectorStore):
    """A store of vectors that keeps boxes, too."""

    @classmethod
    def of_user(cls, limit: int = LIMIT) -> "GroundingStore":
        """Return the store in the user's cache folder."""
        return cast("GroundingStore", super().of_user(limit))

    def __enter__(self) -> "GroundingStore":
        return self

    def boxes(
        self, model: Grounder, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the boxes of each text in its picture, from the store where it has them.

        The highest score is first.

        Args:
            model: what looks for texts.
            images: RGB pictures.
            texts: of each picture, what is looked for.
            batch: pairs of a picture and a text that the model gets at once.
        """
        seen = [vector_key(model.identity, image) for image in images]
        keys = [[_key(pixels, text) for text in some] for pixels, some in zip(seen, texts, strict=True)]
        known = self._read(sorted({key for row in keys for key in row}))
        self.counts.found += len(known)
        todo: list[tuple[int, list[int]]] = []
        asked = set(known)
        for index, row in enumerate(keys):
            lacking = [number for number, key in enumerate(row) if key not in asked]
            lacking = [number for number in lacking if row.index(row[number]) == number]
            asked.update(row[number] for number in lacking)
            if lacking:
                todo.append((index, lacking))
        if todo:
            made = model.ground(
                [images[index] for index, _ in todo],
                [[texts[index][number] for number in lacking] for index, lacking in todo],
                batch,
            )
            fresh = {
                keys[index][number]: _row(boxes)
                for (index, lacking), rows in zip(todo, made, strict=True)
                for number, boxes in zip(lacking, rows, strict=True)
            }
            self.counts.made += len(fresh)
            self._write(fresh)
            known |= fresh
        return [
            [_boxes(known[key], text) for key, text in zip(row, some, strict=True)]
            for row, some in zip(keys, texts, strict=True)
        ]


def _key(pixels: bytes, text: str) -> bytes:
    return hashlib.sha256(pixels + b"\0boxes\0" + text.encode("utf-8", "surrogatepass")).digest()


def _row(boxes: Sequence[Box]) -> Rows:
    """Return boxes as a row; each number takes the place of two, so that none is rounded."""
    numbers = [[box.left, box.top, box.right, box.bottom, box.score] for box in boxes]
    return np.array(numbers, dtype="<f8").reshape(-1).view("<f4")


def _boxes(row: Rows, text: str) -> tuple[Box, ...]:
    numbers = np.ascontiguousarray(row, dtype="<f4").view("<f8").reshape(-1, _NUMBERS)
    return tuple(
        Box(left, top, right, bottom, score, text) for left, top, right, bottom, score in numbers.tolist()
    )
