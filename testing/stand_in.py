"""The stand-in for a model: it answers every prompt of Fabula in the form asked for, and means nothing by it.

``python -m fabula.testing.model_server`` answers with it, so that every command that asks a model can be
tried without a key. Each folder of prompts has its own: :mod:`.katha_model`, :mod:`.shots_model`,
:mod:`.entities_model`, :mod:`.episode_judge`, :mod:`.memory_model`, and those of :mod:`.stand_in_models`.

Nothing that it says can pass for a model's: it answers Fabula's prompts only under names with ``stand-in`` in
them, which then appear in the provenance of what is made with it, and each reply names ``stand-in`` as model.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..models.spec import MARK
from ..prompts.loader import prompt_ids
from .model_server import Answer, Asked, NoSuchModel
from .model_server.answers import Given, as_answer
from .model_server.serving import smallest

NAME = MARK


def answer(asked: Asked) -> Answer | NoSuchModel:
    """Return the reply to any prompt of Fabula; to others, the smallest that satisfies their schema.

    A prompt of Fabula that is asked under the name of a model is refused.
    """
    from .asked_prompts import prompt_of

    prompt_id = prompt_of(asked)
    if prompt_id is None:
        return replace(smallest(asked), model=NAME)
    if NAME not in asked.model:
        return NoSuchModel(
            message=f"This server is a stand-in and not {asked.model}: what it answers means nothing."
            f" To try Fabula with it all the same, ask for the model {NAME}."
        )
    return replace(as_answer(_answers()[prompt_id](asked)), model=NAME)


def knowing(release: Path) -> Callable[[Asked], Answer | NoSuchModel]:
    """Return a stand-in that knows the stories of a release, and answers a share of its questions rightly."""
    from ..api.releases import load
    from .asked_prompts import prompt_of
    from .stand_in_models import KnowingJudge

    judge = KnowingJudge(load(release).records)

    def answer_knowing(asked: Asked) -> Answer | NoSuchModel:
        given = answer(asked)
        knows = isinstance(given, Answer) and (prompt_of(asked) or "").startswith("judge/")
        return replace(as_answer(judge(asked)), model=NAME) if knows else given

    return answer_knowing


@cache
def _answers() -> Mapping[str, Callable[[Asked], Given]]:
    """Return what answers each prompt; built at the first question, so that the server starts at once."""
    from . import entities_model, episode_judge, katha_model, shots_model
    from . import stand_in_models as models
    from .memory_model import MemoryModel

    folders: dict[str, Callable[[Asked], Given]] = {
        "entities": entities_model.answer,
        "episodes": episode_judge.answer,
        "evaluators": models.answer_questions,
        "events": models.answer_suite,
        "generation": models.answer_questions,
        "images": models.AlignmentModel(),
        "judge": models.answer_judge,
        "books": katha_model.answer,
        "katha": katha_model.answer,
        "memory": MemoryModel(),
        "models": katha_model.answer,
        "shots": shots_model.answer,
    }
    videos = models.EventModel()
    verifier = dict.fromkeys(
        ("events/describe_video", "events/score_events", "events/score_events_structured"), videos
    )
    by_folder = {name: folders[name.partition("/")[0]] for name in prompt_ids() if "/" in name}
    meaningless = dict.fromkeys(("models/check_text", "models/check_pictures"), smallest)
    return by_folder | verifier | meaningless | {models.LAYOUT_PROMPT: models.answer_layout}
