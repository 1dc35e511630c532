"""One service for a whole study offline: it draws what a prompt says, and judges what it sees in pictures.

    python -m fabula.testing.model_server --port 8123 --handler fabula.testing.drawn_service:study_service

As a generator it gets words alone and draws the phrases in them (:mod:`fabula.models.generators.drawn`):
under a name with ``faithful`` in it all of them, else it forgets some, as ``storyboard`` does. As a judge it
is :class:`.drawn_judge.DrawnJudge` of the sample stories: ``drawn``, ``drawn-0.1`` with a share of answers
turned, ``drawn-guessing``. It is neither a generator nor a judge to compare: it answers only under names with
``drawn`` in them, and each reply names ``drawn stand-in`` as model. What else is asked goes to the stand-in
(:mod:`.stand_in`).

For another release, write a file with ``handler = service_of(load("release").records)`` and name it with
``--handler FILE.py:handler``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from ..models.generators.drawn.figures import draw_scene
from ..models.generators.drawn.images import FAITHFUL, FORGETTING, encode_png, forgetting
from ..models.generators.drawn.scene import default_size, scene_of
from ..models.generators.request import PictureRequest
from ..schemas.katha import StoryRecord
from ..studies.compass.judging import questions_by_rules
from . import stand_in
from .asked_prompts import prompt_of
from .drawn_judge import DrawnJudge
from .gold_stories import gold_records
from .model_server import Answer, Asked, NoSuchModel, Picture
from .model_server.answers import as_answer

NAME = "drawn"
REPLIES = f"{NAME} {stand_in.NAME}"
"""What each reply names as its model."""
_ERROR = re.compile(r"-(0(?:\.\d+)?|1(?:\.0+)?)$")
Service = Callable[[Asked], Answer | NoSuchModel]


def draw_asked(asked: Asked) -> Picture:
    """Return the picture that a request asks for, drawn from its prompt alone.

    What it forgets follows from seed, mark and prompt, as for ``image:drawn:storyboard``.
    """
    renderer = FAITHFUL if FAITHFUL in asked.model else FORGETTING
    scene = scene_of(asked.prompt)
    request = PictureRequest(f"image:drawn:{renderer}", asked.prompt, seed=asked.seed)
    drawing = draw_scene(scene, asked.size or default_size(scene.form), forgetting(renderer, request))
    return Picture(encode_png(drawing.canvas.image))


def judge_named(name: str, records: Sequence[StoryRecord]) -> DrawnJudge:
    """Return the judge that a model's name describes, such as ``drawn-0.1`` or ``drawn-guessing``."""
    error = _ERROR.search(name)
    return DrawnJudge(records, 0.0 if error is None else float(error[1]), guessing="guessing" in name)


def service_of(records: Sequence[StoryRecord]) -> Service:
    """Return the handler of a model server for some stories."""
    judges: dict[str, DrawnJudge] = {}
    records = [
        record.model_copy(update={"questions": (*record.questions, *questions_by_rules(record))})
        for record in records
    ]

    def serve(asked: Asked) -> Answer | NoSuchModel:
        is_picture = asked.wants == "image"
        if not is_picture and not (prompt_of(asked) or "").startswith("judge/"):
            return stand_in.answer(asked)
        if NAME not in asked.model:
            return NoSuchModel(
                message=f"This server draws and reads toy pictures and is not {asked.model}:"
                f" ask for the model {NAME}."
            )
        if is_picture:
            return replace(as_answer(draw_asked(asked)), model=REPLIES)
        if asked.model not in judges:
            judges[asked.model] = judge_named(asked.model, records)
        return replace(as_answer(judges[asked.model](asked)), model=REPLIES)

    return serve


def study_service(asked: Asked) -> Answer | NoSuchModel:
    """Answer for the sample stories."""
    return _of_samples()(asked)


@cache
def _of_samples() -> Service:
    return service_of(gold_records())
