"""A stand-in for a judge of episodes: it looks for drawn colours, so that what comes out is known before.

It knows the entities of :mod:`.drawn_entities` by their names, and says that a picture shows one rightly
where it has its colour and not the faded one. Of other entities it knows nothing: they get the same middling
reply whatever the picture shows. It says nothing about any real judge.

Use it as the handler of a model server::

    with ModelServer(episode_judge.answer) as server:
        ...
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..evaluation.entities.archived import ACTION_CRITERIA, CRITERIA
from ..media.images import open_picture
from ..schemas.canonical import Json
from ..schemas.entities import TYPES
from .asked_prompts import fenced_texts, prompt_of, user_text
from .drawn_entities import COLOURS, Colour, faded
from .model_server import Asked

Pixels = NDArray[np.int64]

GOOD, BAD, MIDDLING = 9, 2, 6
"""The scores that it gives: as described, not so, and where it knows nothing."""
_NEAR = 12  # most by which a channel may be off
_LEAST = 0.005  # share of a picture that shows of what is in it


def answer(asked: Asked) -> Json:
    """Return the reply to a prompt about episodes."""
    folder, _, name = (prompt_of(asked) or "").partition("/")
    if folder != "episodes":
        raise ValueError(f"not a prompt about episodes: {asked.system[:80]!r}")
    texts = fenced_texts(user_text(asked))
    pictures = [np.asarray(open_picture(image.data).image, dtype=np.int64) for image in asked.images]
    if name == "judge_action":
        return _action(texts[0], pictures[0])
    rightly = [_shows_rightly(picture, texts[0]) for picture in pictures]
    good = None if None in rightly else all(rightly)
    kind = next(kind for kind in TYPES if kind in name)
    reply: dict[str, Json] = {"reason": "By its colours.", **_scores(CRITERIA[kind], good)}
    if name.startswith("judge_"):
        return reply | _scores(["overall"], good)
    if kind == "location":
        reply = {"descriptions": ["A place."] * len(pictures), **reply}
    if name == "compare_location_set":
        others = [number for number, right in enumerate(rightly, 1) if right is False]
        return reply | _scores(["consistency"], good) | {"consistent": not others, "outliers": others}
    return reply | _scores(["similarity"], good) | {"same": good is not False}


def _action(action: str, picture: Pixels) -> Json:
    named = [name for name in COLOURS if name in action]
    good = all(_shows_rightly(picture, name) for name in named) if named else None
    scores = _scores([*ACTION_CRITERIA, "overall"], good)
    return {"reason": "By its colours.", **scores, "depicted": good is not False}


def _scores(names: Iterable[str], good: bool | None) -> dict[str, Json]:
    return dict.fromkeys(names, MIDDLING if good is None else GOOD if good else BAD)


def _shows_rightly(picture: Pixels, name: str) -> bool | None:
    """Whether a picture shows an entity as it should look; None for one that is not known."""
    if name not in COLOURS:
        return None
    return _has(picture, COLOURS[name]) and not _has(picture, faded(name))


def _has(picture: Pixels, colour: Colour) -> bool:
    near = (np.abs(picture - np.array(colour)) <= _NEAR).all(axis=-1)
    return float(near.mean()) >= _LEAST
