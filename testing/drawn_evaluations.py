"""Evaluations of drawn shots with models that know the drawings, made where a test wants them."""

import json
from collections.abc import Mapping
from pathlib import Path

from ..evaluation.shots.requests import EVALUATING, ImageOptions
from ..releases.shots.tree import FOLDER, SCRIPT, read_shot_set
from ..studies.copy_paste import write_copy_paste
from .drawn_shots import CAST, draw_shot_outputs, draw_shot_set
from .table_detector import SETTINGS

CREATED = "2026-01-01T00:00:00Z"
LOOKED_AT = "cids,copy-paste,occm,csd,aesthetic,inception"


def draw_evaluation(
    folder: Path,
    stories: int = 3,
    shots: int = 5,
    method: str = "model-a",
    names: Mapping[str, str] | None = None,
) -> Path:
    """Draw a set and outputs of two methods, evaluate them without judges, and return the run folder.

    The first method follows the script, but shot 3 of story 02 is missing; the other is ``copy-paste``.
    The cache of the user is used: a test gives the process one of its own.

    ``stories``: at least two. ``shots``: of each story, at least three. ``names``: key of the cast -> the key
    that stands for it in the set.
    """
    data = draw_shot_set(folder / "data", stories, shots)
    for old, new in (names or {}).items():
        _rename(data, old, new)
    outputs = draw_shot_outputs(folder / method, stories, shots)
    (outputs / "02/shots/shot_03.png").unlink()
    write_copy_paste(read_shot_set(data)[0], folder / "copy-paste")
    options = ImageOptions(
        metrics=(LOOKED_AT,), settings=SETTINGS, device="cpu", workers=0, created_at=CREATED
    )
    EVALUATING.evaluate(data, [outputs, folder / "copy-paste"], folder / "run", options)
    return folder / "run"


def _rename(data: Path, old: str, new: str) -> None:
    """Give a character another key in every script, and its folder that name."""
    if old not in [key for key, *_ in CAST]:
        raise ValueError(f"{old} is not of the cast")
    for place in sorted((data / FOLDER).iterdir()):
        text = (place / SCRIPT).read_text("utf-8")
        (place / SCRIPT).write_text(text.replace(json.dumps(old), json.dumps(new)), "utf-8")
        (place / "image" / old).rename(place / "image" / new)
