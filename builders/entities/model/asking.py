"""Asking one prompt, with pictures, of the model that a stage's settings name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ....engine.asking import UNAVAILABLE, Ask, NoAnswer
from ....engine.stage import Tools
from ....models.chat import ChatRequest, Message, Part
from ....models.settings import ModelSettings
from ....models.spec import parse_spec
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json
from ...katha.model.asking import Told
from ...katha.model.reading import Problems, texts_in
from ...katha.model.script import script_problem
from ..views import picture

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
) -> Told[T]:
    """Return a model's answer to a prompt; the pictures stand before the text.

    Raises:
        NoAnswer: there is no usable answer.
    """
    settings = tools.settings
    assert isinstance(settings, ModelSettings)
    assert tools.asker is not None, "a stage whose settings name a model is given an asker"
    prompt = load_prompt(prompt_id)
    request = _with_pictures(prompt.request(settings, tools.seed, **inputs), shown, tools)
    answer = await tools.asker.ask(Ask(request, read, prompt.label, sample=settings.sample))
    maker = ", ".join([f"{public_name(settings)} via {prompt.label}", *answer.notes])
    return Told(answer.value, maker)


def public_name(settings: ModelSettings) -> str:
    """Return a model's spec for published records; a server's address is nobody else's business."""
    spec = parse_spec(settings.model or "")
    return spec.text if spec.base_url is None else f"{spec.provider}:{spec.name}"


async def attempt(
    tools: Tools,
    prompt_id: str,
    read: Callable[[Json], T],
    shown: Sequence[Shown] = (),
    **inputs: Json,
) -> Told[T] | NoAnswer:
    """Return a model's answer, or why there is none: one part of an episode can do without.

    Raises:
        NoAnswer: the model could not be reached: the stage is to be run again, not to be settled like this.
    """
    try:
        return await ask(tools, prompt_id, read, shown, **inputs)
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return failure


def why(failure: NoAnswer) -> str:
    """Return why there is no answer, in one line."""
    return f"the model gave no answer: {failure.code}: {' '.join(failure.reason.split())[:200]}"


def maker_of(told: Iterable[Told[T] | NoAnswer]) -> str:
    """Return who made something that was asked for in parts, each once; rules where no part was answered."""
    return "; ".join(dict.fromkeys(one.maker for one in told if isinstance(one, Told))) or "rules@1"


def check_english(values: Json, problems: Problems) -> None:
    """Note it if texts are not in Latin letters, as English is."""
    problem = script_problem(_ENGLISH, "en", " ".join(texts_in(values)))
    if problem is not None:
        problems.add("the texts are not in English: write every value in English")


def _with_pictures(request: ChatRequest, shown: Sequence[Shown], tools: Tools) -> ChatRequest:
    parts: list[Part] = []
    for one in shown:
        if one.files:
            parts += [one.title, *(picture(name, tools.store) for name in one.files)]
    if not parts:
        return request
    *before, last = request.messages
    return replace(request, messages=(*before, Message(last.role, (*parts, *last.parts))))
