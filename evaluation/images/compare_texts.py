"""How close the pictures of a story are to the parts of their shots' texts, by an encoder of both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...models.vision.store import VectorStore
from ...models.vision.types import Rows, TextEncoder
from ...schemas.canonical import Json
from ...schemas.shots import Shot, ShotScript, TwoTexts
from ..metrics.clip_score import PARTS

if TYPE_CHECKING:
    from PIL.Image import Image

LANGUAGE = "en"
"""Of the texts: the published encoder knows English."""


@dataclass(frozen=True)
class TextMeans:
    """The encoder, what keeps its vectors, and how many it gets at once."""

    model: TextEncoder
    store: VectorStore
    batch: int


def compare_texts(story: Json, numbers: Sequence[int], images: "Sequence[Image]", means: TextMeans) -> Json:
    """Return, for each part of the texts, the cosines with the pictures and the tokens that were cut off.

    Args:
        story: with its script.
        numbers: of the shots that the pictures show.
        images: RGB pictures.
        means: who looks.

    Returns:
        Part -> ``cosines`` and ``cut``, one per picture; null where the shot has no such text.
    """
    shots = {shot.index: shot for shot in ShotScript.model_validate(story["script"]).shots}
    pictures = means.store.rows(means.model, images, means.batch)
    return {
        part: _compared([_text(shots[number], part) for number in numbers], pictures, means) for part in PARTS
    }


def _compared(texts: Sequence[str], pictures: Rows, means: TextMeans) -> Json:
    there = [place for place, text in enumerate(texts) if text]
    cosines: list[float | None] = [None] * len(texts)
    cut: list[int | None] = [None] * len(texts)
    if there:
        found = means.store.texts(means.model, [texts[place] for place in there], means.batch)
        for place, row, lost in zip(there, found.rows, found.cut, strict=True):
            cosines[place], cut[place] = _cosine(pictures[place], row), lost
    return {"cosines": cosines, "cut": cut}


def _cosine(picture: Rows, text: Rows) -> float | None:
    """Return the cosine of two unit vectors, summed exactly; None where there is no vector."""
    value = math.fsum(float(one) * float(other) for one, other in zip(picture, text, strict=True))
    return None if math.isnan(value) else min(1.0, max(-1.0, value))


def _text(shot: Shot, part: str) -> str:
    texts: TwoTexts | None = getattr(shot, part)
    return "" if texts is None else texts.of(LANGUAGE).strip()
