"""The leakage scan: what an image-only packet may hold is pixels, index labels and what is asked.

Pure functions. A leak stops the item; rendered text inside a picture is another matter (see
:mod:`.rendered`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...models.chat import Part
from ...schemas.katha import StoryRecord

LeakKind = Literal["text", "name", "metadata", "unaccounted"]


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """Something in a packet that must not be there.

    Attributes:
        part: which part of the packet, from 1.
        kind: ``text`` (of the record), ``name`` (a file's, a method's or the story's), ``metadata``
            (anything in a picture's file besides pixels) or ``unaccounted`` (text that is neither asked nor the prompt's).
        source: what it is: a JSON path of the record, or of which chunk or name.
        found: the text, shortened.
    """

    part: int
    kind: LeakKind
    source: str
    found: str

    def __str__(self) -> str:
        return f"part {self.part}: {self.kind} of {self.source}: {self.found}"


def scan_packet(
    record: StoryRecord,
    question: str | Sequence[str],
    parts: Sequence[Part],
    *,
    fixed: Sequence[str] | None = None,
    names: Sequence[str] = (),
) -> list[Leak]:
    """Return the leaks of one packet, in order; none for a clean one.

    Args:
        record: the story, none of whose texts may be sent.
        question: what is asked, options included: exempt wherever it stands.
        parts: everything that is sent (system and user messages, texts and pictures), in order.
        fixed: what the prompt says whatever the story is (see :func:`fixed_texts`). With it, every word
            that is neither fixed nor asked nor an index label such as ``Image 3`` is a leak. Without it, only
            texts of the record are searched for, and those of one or two words are left out because
            a prompt may use them by itself.
        names: more that must not be sent: method, folder and file names.
    """
    raise NotImplementedError


def fixed_texts(rendered: Sequence[str], marks: Sequence[str]) -> tuple[str, ...]:
    """Return what a prompt says whatever the story is: the texts of its messages, cut at the marks.

    Args:
        rendered: the texts of the prompt, rendered with a mark in place of each input.
        marks: those marks, such as ``"@@question@@"``.
    """
    raise NotImplementedError
