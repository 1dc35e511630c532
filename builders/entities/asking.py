"""Asking one prompt, with pictures, of the model that a stage's settings name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...engine.stage import UNAVAILABLE, NoAnswer, Tools
from ...models.chat import Part
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ..replies import Drafted, Problems, script_problem, texts_in
from ..replies import ask as ask_model
from .drafts import Repair
from .pictures import picture

T = TypeVar("T")

_ENGLISH = "Everything is to be written in English."


@dataclass(frozen=True, slots=True)
class Shown:
    """Pictures under a title: a shot with its frames, a person with crops."""

    title: str
    files: tuple[str, ...]


async def ask(
    tools: Tools,
    prompt_id: str,
    read: Callable[[Json], T],
    shown: Sequence[Shown] = (),
    **inputs: Json,
) -> Drafted[T]:
    """Return a model's answer to a prompt; the pictures stand before the text."""
    return await ask_model(tools, prompt_id, read, _pictures(shown, tools), **inputs)


async def attempt(
    tools: Tools,
    prompt_id: str,
    read: Callable[[Json], T],
    shown: Sequence[Shown] = (),
    **inputs: Json,
) -> Drafted[T] | NoAnswer:
    """Return a model's answer, or why there is none: one part of an episode can do without."""
    try:
        return await ask(tools, prompt_id, read, shown, **inputs)
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return failure


def why(failure: NoAnswer) -> str:
    """Return why there is no answer, in one line."""
    return f"the model gave no answer: {failure.code}: {' '.join(failure.reason.split())[:200]}"


def maker_of(answers: Iterable[Drafted[T] | NoAnswer]) -> str:
    """Return who made something that was asked for in parts, each once; rules where no part was answered."""
    makers = [answer.maker for answer in answers if isinstance(answer, Drafted)]
    return "; ".join(dict.fromkeys(makers)) or "rules@1"


def check_english(values: Json, problems: Problems) -> None:
    """Note it if texts are not in Latin letters, as English is."""
    problem = script_problem(_ENGLISH, "en", " ".join(texts_in(values)))
    if problem is not None:
        problems.add("the texts are not in English: write every value in English")


def _pictures(shown: Sequence[Shown], tools: Tools) -> list[Part]:
    parts: list[Part] = []
    for view in shown:
        if view.files:
            parts += [view.title, *(picture(name, tools.store) for name in view.files)]
    return parts


def noted(code: str, found: str, done: str, shot: int | None = None, entity: str | None = None) -> Repair:
    """Return the note of something that was found in a reply."""
    return Repair.model_validate({"code": code, "shot": shot, "entity": entity, "found": found, "done": done})


LONGEST_ACTION = 120
"""Words of an action; those of the release have 6 to 79."""


def tidy(text: str) -> str:
    """Return a text in one line, without marks around names."""
    return normalize_text(text.replace("`", ""))


def action_of_reply(text: str, where: str, problems: Problems) -> str:
    """Return an action of a reply in one line; note it where it says nothing or is too long."""
    action = tidy(text)
    words = len(action.split())
    if not normalize_answer(action):
        problems.add(f"{where}: the action says nothing")
    elif words > LONGEST_ACTION:
        problems.add(f"{where}: the action has {words} words; write at most sixty")
    return action
