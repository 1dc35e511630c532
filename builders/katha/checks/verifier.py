"""The model that checks a draft: what it is shown, who it is, and what it means that it gave no verdict."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import Field

from ....engine.stage import NoAnswer, Tools
from ....models.spec import ModelSettings
from ....models.stand_ins import ANSWERED
from ....schemas.canonical import Json
from ....schemas.values import Own
from ...replies import Drafted, ask, language, public_name
from ..drafts import scene_texts
from .reading import note

T = TypeVar("T")

GUESSING = Field(
    default=True,
    description="Have the model guess answers without the scenes that hold them: a call for each story, and"
    " another for each distinct set of evidence scenes (about five in all).",
)
"""The setting ``guessing`` of the stages that check questions; paid for once where it is the same in both."""


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under check.

    Attributes:
        story: the story.
        draft: title, labels and lists of parts.
        tools: the stage's tools; their settings name the model that checks.
        guessing: whether it is to guess answers without the scenes that hold them.
        makers: who gave each answer so far.
    """

    story: Json
    draft: Json
    tools: Tools
    guessing: bool = True
    makers: list[str] = field(default_factory=list)

    @property
    def judge(self) -> str:
        """Who judged: the model that was asked, and that a stand-in answered, where one did."""
        name = public_name(self.tools.own(ModelSettings))
        return f"{name}, {ANSWERED}" if any(ANSWERED in maker for maker in self.makers) else name

    async def ask(self, prompt_id: str, read: Callable[[Json], T], **inputs: Json) -> T:
        """Return what a reader makes of the reply to a prompt.

        Language and scenes are shown to each, unless the inputs name other scenes.

        Raises:
            NoAnswer: there is no usable reply.
        """
        return (await self.ask_with_maker(prompt_id, read, **inputs)).value

    async def ask_with_maker(self, prompt_id: str, read: Callable[[Json], T], **inputs: Json) -> Drafted[T]:
        """Return what :meth:`ask` does, and who made it.

        Raises:
            NoAnswer: there is no usable reply.
        """
        drafted = await ask(
            self.tools,
            prompt_id,
            read,
            **{
                "language": language(self.story),
                "scenes": scene_texts(self.draft["scenes"]),
                **inputs,
            },
        )
        self.makers.append(drafted.maker)
        return drafted


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


def verifier_settings(settings: Own) -> ModelSettings:
    """Return the settings of the checks: those of the stage, with its verifier, if any, as the model."""
    assert isinstance(settings, ModelSettings)
    same = {name: getattr(settings, name) for name in ModelSettings.model_fields}
    return ModelSettings(**{**same, "model": getattr(settings, "verifier", settings.model)})
