"""Models and a judge that read drawn videos: whose look somebody has, by the emblems in the pixels alone.

A generator that draws from data gives everybody whom its packet shows the look of their name, and everybody
else a look that it makes up for one shot (see :mod:`..generation.memory.shots.packets`). Here somebody
with their own look is found, is as described, and is the same from shot to shot; somebody with a made-up look
is found with doubt, is not as described, and is the same only as the same made-up look. The written episodes
are known.

Settings name the models by their place, such as ``fabula.testing.drawn_looks:load_look_grounder``. They stand
in for real ones; their numbers mean nothing beyond the drawings.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation.entities.archived import ACTION_CRITERIA, CRITERIA
from ..media.images import open_picture
from ..models.generators.drawn.images import LEVELS, read_marks
from ..models.generators.drawn.scene import EMBLEM, SIDE, code_of, read_cells
from ..models.vision.store import Box, Rows
from ..models.vision.weights import Place
from ..schemas.canonical import Json
from ..schemas.entities import TYPES, EntityEpisode
from ..studies.memory.shots.packets import made_up_look
from .asked_prompts import fenced_texts, prompt_of, user_text
from .drawn_detections import colours
from .drawn_entities import COLOURS, FADED, RIGHT, TruthGrounder, TruthTexts, TruthVectors, name_in
from .episode_judge import BAD, GOOD, MIDDLING
from .model_server import Asked
from .written_episodes import SECOND, written_episode

if TYPE_CHECKING:
    from PIL.Image import Image

EPISODES = (written_episode(), written_episode("ep_b", SECOND))
PADDING = 0.1
"""Margin around an emblem in a crop, as a share of its side on each side."""
SETTINGS = (
    f"ground_entities.detector={__name__}:load_look_grounder",
    f"ground_entities.text={__name__}:load_look_texts",
    f"encode_appearances.encoder={__name__}:load_look_vectors",
    "draw_grids.wanted=true",
)
"""Settings, as ``--set`` takes them, with which episodes are looked at by the models here."""


@cache
def looks() -> Mapping[str, tuple[str, bool]]:
    """Return code of a look -> whose it is, and whether it is their own; made-up ones of all shots."""
    known: dict[str, tuple[str, bool]] = {code_of(name): (name, True) for name in COLOURS}
    for document in EPISODES:
        script = EntityEpisode.model_validate(document)
        for shot in script.shots():
            for name in COLOURS:
                known[code_of(made_up_look(name, str(script.story_name), shot.key))] = (name, False)
    return known


def code_in_crop(image: "Image") -> str | None:
    """Return the code of the emblem that a crop shows, with its margin and nothing else; None for none."""
    from PIL.Image import Resampling

    side = min(image.size)
    if abs(image.width - image.height) > side // 8:
        return None
    edge = PADDING / (1 + 2 * PADDING) + (EMBLEM - 15) / 2 / EMBLEM / (1 + 2 * PADDING)
    grey = image.convert("RGB").convert("L").resize((224, 224), Resampling.BOX)
    values = np.asarray(grey, dtype=np.float64)
    left, step = 224 * edge, 224 * (1 - 2 * edge) / SIDE
    cells = []
    for row in range(SIDE):
        for column in range(SIDE):
            y, x = (round(left + (number + 0.5) * step) for number in (row, column))
            mean = float(values[y - 4 : y + 5, x - 4 : x + 5].mean())
            cells.append(min(range(len(LEVELS)), key=lambda level: abs(LEVELS[level] - mean)))
    read = read_cells(tuple(cells))
    return None if read is None else read[1]


def look_of(image: "Image") -> tuple[str, bool] | None:
    """Return whose look a crop shows, and whether it is their own; None where nobody is known."""
    code = code_in_crop(image)
    return None if code is None else looks().get(code)


class LookGrounder(TruthGrounder):
    """A detector that finds somebody by the emblem of one of their looks."""

    def ground(
        self, images: "Sequence[Image]", texts: Sequence[Sequence[str]], batch: int = 1
    ) -> list[list[tuple[Box, ...]]]:
        """Return the box of the emblem of each text in its picture; the own look goes before made-up ones."""
        del batch
        rows: list[list[tuple[Box, ...]]] = []
        for image, some in zip(images, texts, strict=True):
            self.seen += len(some)
            boxes: dict[str, Box] = {}
            for mark in sorted(read_marks(image), key=lambda mark: looks().get(mark.code, ("", False))[1]):
                name, _ = looks().get(mark.code, ("", False))
                left, top, right, bottom = mark.box
                boxes[name] = Box(left, top, right, bottom, 0.9, name)
            named = [name_in(text) for text in some]
            rows.append([(boxes[name],) if name is not None and name in boxes else () for name in named])
        return rows


class LookTexts(TruthTexts):
    """An encoder in whose space a crop is as similar to a description as its look is theirs of whom it is."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors of whose look each crop shows, shape (images, 7)."""
        rows = np.zeros((len(images), len(COLOURS) + 1), dtype=np.float64)
        for row, image in zip(rows, images, strict=True):
            look = look_of(image)
            if look is not None:
                row[list(COLOURS).index(look[0])] = RIGHT if look[1] else FADED
            row[-1] = np.sqrt(1 - (row[:-1] ** 2).sum())
        return rows.astype(np.float32)


class LookVectors(TruthVectors):
    """An encoder: crops of one look are equal, of two nearly at right angles; frames by their colours."""

    def encode(self, images: "Sequence[Image]") -> Rows:
        """Return unit vectors, shape (images, 216)."""
        rows = [self._row(image) for image in images]
        return np.stack(rows) if rows else np.empty((0, 216), dtype=np.float32)

    def _row(self, image: "Image") -> Rows:
        code = code_in_crop(image)
        if code is None:
            return colours(image.resize((32, 32), 0))
        row = np.zeros(216, dtype=np.float32)
        row[:32] = [1.0 if int(code, 16) >> bit & 1 else -1.0 for bit in range(32)]
        return np.asarray(row / np.sqrt(np.float32(32)))


def load_look_grounder(place: Place) -> LookGrounder:
    """Return the detector: in the place of GroundingDINO."""
    return LookGrounder()


def load_look_texts(place: Place) -> LookTexts:
    """Return the encoder of crops and descriptions: in the place of CLIP."""
    return LookTexts()


def load_look_vectors(place: Place) -> LookVectors:
    """Return the encoder of crops and frames: in the place of DINOv2."""
    return LookVectors()


def answer(asked: Asked) -> Json:
    """Return the reply to a judge's prompt about episodes: by looks; of actions it knows nothing."""
    folder, _, prompt = (prompt_of(asked) or "").partition("/")
    if folder != "episodes":
        raise ValueError(f"not a prompt about episodes: {asked.system[:80]!r}")
    pictures = [open_picture(image.data).image for image in asked.images]
    if prompt == "judge_action":
        scores = _scores([*ACTION_CRITERIA, "overall"], None)
        return {"reason": "Nothing is known of it.", **scores, "depicted": True}
    name = name_in(fenced_texts(user_text(asked))[0])
    seen = [_looks_of_name(picture, name) for picture in pictures]
    kind = next(kind for kind in TYPES if kind in prompt)
    own = all(known == frozenset((code_of(name or ""),)) for known in seen)
    reply: dict[str, Json] = {"reason": "By its look.", **_scores(CRITERIA[kind], own)}
    if prompt.startswith("judge_"):
        return reply | _scores(["overall"], own)
    same = len(set(seen)) == 1 and bool(seen[0])
    reply = {"reason": "By its look.", **_scores(CRITERIA[kind], same)}
    if kind == "location":
        reply = {"descriptions": ["A place."] * len(pictures), **reply}
    return reply | _scores(["similarity"], same) | {"same": same}


def _looks_of_name(picture: "Image", name: str | None) -> frozenset[str]:
    """Return the codes of the looks of somebody that a crop or a frame shows."""
    code = code_in_crop(picture)
    codes = [code] if code is not None else [mark.code for mark in read_marks(picture)]
    return frozenset(code for code in codes if looks().get(code, ("", False))[0] == name)


def _scores(names: Iterable[str], good: bool | None) -> dict[str, Json]:
    return dict.fromkeys(names, MIDDLING if good is None else GOOD if good else BAD)
