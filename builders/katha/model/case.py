"""What is checked, and who is asked about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ....engine.asking import NoAnswer
from ....engine.stage import Tools
from ....schemas.canonical import Json
from ...replies import ask, language
from . import shown
from .read_checks import note

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under check.

    Attributes:
        story: the story.
        draft: title, labels and lists of parts.
        tools: the stage's tools; their settings name the model that checks.
    """

    story: Json
    draft: Json
    tools: Tools

    async def ask(self, prompt_id: str, read: Callable[[Json], T], **inputs: Json) -> T:
        """Return what a reader makes of the reply to a prompt; language and scenes are shown to each.

        Raises:
            NoAnswer: there is no usable reply.
        """
        told = await ask(
            self.tools,
            prompt_id,
            read,
            language=language(self.story),
            scenes=shown.scene_texts(self.draft["scenes"]),
            **inputs,
        )
        return told.value


def why_unjudged(failure: NoAnswer) -> str:
    """Return why a check has no verdict, in one line.

    Raises:
        NoAnswer: the model could not be reached: the stage is to be run again, not to be settled like this.
    """
    if failure.code == "unavailable":
        raise failure
    return "not judged: " + note(f"{failure.code}: {failure.reason}")


def with_remark(said: str, remark: str) -> str:
    """Return what a check says, with the model's remark, if there is one."""
    return f"{said}: {remark}" if remark else said
