"""A scene as data: what a drawn picture is made from, and what is known of every picture that was drawn.

A mark is one thing that a picture has to show, named by a text. Marks of equal text look the same in every
picture, whoever asks for it, so that who is in one panel can be known again in the next.

A scene from a prompt alone: what a renderer draws that is given words and no data.
"""

import re
from collections.abc import Iterator
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


LABELS: dict[str, MarkKind] = {
    "who": "character", "characters": "character", "character": "character", "with": "object",
    "things": "object", "thing": "object", "objects": "object", "object": "object", "place": "place",
    "where": "place", "setting": "place", "action": "action", "what is done": "action", "state": "state",
    "how things stand": "state", "feeling": "emotion", "emotion": "emotion", "must be visible": "must_show",
    "must show": "must_show", "cause": "cause", "intention": "intention", "outcome": "consequence",
    "consequence": "consequence", "what changes": "change", "change": "change", "value": "moral",
    "moral": "moral",
}  # fmt: skip
"""What stands before a colon at the beginning of a line -> the kind of what follows."""
_LISTED = ("character", "object", "must_show", "place")
"""Kinds of which a line may name several, parted by semicolons."""
_LABEL = re.compile(r"[-*\s]*([^:,;]{2,40})(?:,[^:;]{0,40})?:\s+(.+)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+")
_PARTS = re.compile(r"\s*[;；]\s*")
_ABOUT = re.compile(r"\b(storyboard|pictures?|images?|panel|scene before|next scene)\b", re.IGNORECASE)
_ENDS = " \t.,;:!?。！？।"


def scene_of(prompt: str) -> DrawnScene:
    """Return what a prompt asks to be seen.

    A line that begins with a known label, such as ``Feeling: The ant is afraid.``, is a mark of that kind, or
    several, parted by semicolons, for who is there, things, places and what must be visible. Any other line
    is phrases, parted at the ends of sentences and at semicolons. Sentences about pictures, and what ends
    with a colon, are left out.
    """
    marks: dict[str, Mark] = {}
    for line in prompt.splitlines():
        for kind, text in _marks(line.strip()):
            marks.setdefault(text.casefold(), Mark(kind=kind, text=text))
    return DrawnScene(marks=tuple(marks.values()))


def phrases_of(text: str) -> tuple[str, ...]:
    """Return the phrases of a text, parted at ends of sentences and at semicolons, without final marks."""
    parts = (part for sentence in _SENTENCE.split(text) for part in _PARTS.split(sentence))
    return tuple(part.strip(_ENDS) for part in parts if part.strip(_ENDS))


def _marks(line: str) -> Iterator[tuple[MarkKind, str]]:
    label = _LABEL.fullmatch(line)
    kind = None if label is None else LABELS.get(label[1].strip().casefold())
    if label is not None and kind is not None:
        texts = _PARTS.split(label[2]) if kind in _LISTED else [label[2]]
        yield from ((kind, text.strip(_ENDS)) for text in texts if text.strip(_ENDS))
        return
    words = line if label is None else label[2]
    for sentence in _SENTENCE.split(words):
        if not _ABOUT.search(sentence) and not sentence.rstrip().endswith(":"):
            yield from (("must_show", phrase) for phrase in phrases_of(sentence))
