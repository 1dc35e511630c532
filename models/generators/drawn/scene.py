"""A scene as data: what a drawn picture is made from, and what is known of every picture that was drawn.

A mark is one thing that a picture has to show, named by a text. Marks of equal text look the same in every
picture, whoever asks for it, so that who is in one panel can be known again in the next.
"""

from typing import Literal

from pydantic import Field

from ....schemas.values import Own

Form = Literal["panel", "portrait", "panorama"]
"""A panel of a storyboard or a keyframe of a shot; one entity on a ground of one colour; a wide place."""
MarkKind = Literal[
    "character",
    "object",
    "place",
    "action",
    "state",
    "emotion",
    "must_show",
    "cause",
    "intention",
    "consequence",
    "change",
    "moral",
]
"""What a mark stands for: of a scene the first seven, of a transition the others."""


class Mark(Own):
    """One thing that a picture has to show."""

    kind: MarkKind = Field(description="What it is.")
    text: str = Field(min_length=1, description="What is shown, in words; by it a mark is known again.")


class DrawnScene(Own):
    """What one picture has to show."""

    form: Form = Field(default="panel", description="What sort of picture.")
    marks: tuple[Mark, ...] = Field(default=(), description="What is in it, the most important first.")
    ground: str | None = Field(
        default=None, pattern=r"^#[0-9a-fA-F]{6}$", description="Colour behind a portrait, as #rrggbb."
    )
