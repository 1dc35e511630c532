"""Asking one prompt of the model that a stage's settings name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ....engine.asking import Ask
from ....engine.stage import Tools
from ....models.settings import ModelSettings
from ....models.spec import parse_spec
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """What a model was made to say.

    Attributes:
        value: what the reader made of the reply.
        maker: model and prompt, as the producer sidecar names them.
    """

    value: T
    maker: str


async def ask_prompt(
    tools: Tools, settings: ModelSettings, prompt_id: str, read: Callable[[Json], T], **inputs: Json
) -> Told[T]:
    """Return a model's answer to a prompt.

    Args:
        tools: what the stage may use; its asker must be there.
        settings: which model is asked, and how.
        prompt_id: id of the prompt, such as ``katha/draft_scenes``.
        read: makes the value of a reply that satisfies the prompt's schema; raises BadReply.
        inputs: exactly the inputs that the prompt declares.

    Raises:
        NoAnswer: there is no usable answer.
    """
    assert tools.asker is not None, "a stage whose settings name a model is given an asker"
    prompt = load_prompt(prompt_id)
    request = prompt.request(settings, tools.seed, **inputs)
    answer = await tools.asker.ask(Ask(request, read, prompt.label, sample=settings.sample))
    return Told(
        answer.value, ", ".join([f"{_public_name(settings.model)} via {prompt.label}", *answer.notes])
    )


def _public_name(model: str | None) -> str:
    """Return a model's spec for published records; a server's address is nobody else's business."""
    spec = parse_spec(model or "")
    return spec.text if spec.base_url is None else f"{spec.provider}:{spec.name}"
