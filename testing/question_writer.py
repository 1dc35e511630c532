"""A stand-in for the model that writes questions of evaluators, or prompts anew: right in form alone."""

from collections.abc import Callable
from typing import Any

from ..schemas.canonical import Json
from .asked_prompts import fenced_texts, prompt_of, user_text
from .model_server import Asked

BROAD = ("who", "beginning", "ending", "feeling", "lesson")


def _entry(about: str) -> dict[str, Any]:
    return {"question": f"What of {about}?", "gold_answer": f"this of {about}", "other_answers": ["that"]}


def _broad(_texts: list[str]) -> Json:
    return {"questions": [{"about": name, **_entry(name)} for name in BROAD]}


def _of_scenes(texts: list[str]) -> Json:
    scenes = range(1, len(texts[0].splitlines()) + 1)
    return {"questions": [{"scene": n, "element": "action", **_entry(f"scene {n}")} for n in scenes]}


def _statements(texts: list[str]) -> Json:
    scenes = range(1, len(texts[0].splitlines()) + 1)
    return {
        "statements": [
            {
                "number": n, "scene": n, "element": "object", "question": f"Is thing {n} there, yes or no?",
                "yes": "yes", "parents": [n - 1] if n > 1 else [],
            }
            for n in scenes
        ]
    }  # fmt: skip


def _rewritten(texts: list[str]) -> Json:
    return {"prompt": texts[0]}


ANSWERS: dict[str, Callable[[list[str]], Json]] = {
    "evaluators/story_questions": _broad,
    "evaluators/scene_questions": _of_scenes,
    "evaluators/statements": _statements,
    "generation/rewrite_prompt": _rewritten,
}
"""Prompt -> what answers it, from the fenced texts of the request."""


def answer(asked: Asked) -> Json:
    """Return the reply to a prompt.

    Raises:
        ValueError: the request was made with another prompt.
    """
    prompt = prompt_of(asked) or ""
    if prompt not in ANSWERS:
        raise ValueError(f"not a prompt that questions or prompts are written by: {asked.system[:80]!r}")
    return ANSWERS[prompt](list(fenced_texts(user_text(asked))))
