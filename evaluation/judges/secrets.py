"""Text rendered inside generated pictures: reported, because it tells a judge what pixels should show.

Unlike a leak in the packet, this is a property of the method's output; it stops nothing.

The texts of a record that an image-only judge must not see, ready to be searched for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from pydantic import BaseModel

from ...media.images import open_picture
from ...media.ocr import TextReader
from ...schemas.canonical import Json
from ...schemas.katha import StoryRecord
from ...schemas.paths import format_path
from ...schemas.text import contains_phrase, is_unspaced, normalize_answer
from ..outputs.storyboards import Storyboards


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A line of text in a picture.

    Attributes:
        story_id: of which story.
        seed: seed of the generation, if there are several.
        panel: which picture, from 1.
        text: the line, as it was read.
        source: JSON path of the text of the record that the line gives away; None where it is no such.
    """

    story_id: str
    seed: int | None
    panel: int
    text: str
    source: str | None

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        told = f" (as {self.source} of the record)" if self.source else ""
        return f"{self.story_id}{seed} panel {self.panel}: {self.text!r}{told}"


def rendered_in(
    report: Storyboards, records: Mapping[str, StoryRecord], reader: TextReader
) -> list[RenderedText]:
    """Read the text in every valid storyboard of a method, in order.

    Args:
        report: the checked outputs.
        records: story id -> record.
        reader: what reads.
    """
    found = []
    for board in report.valid:
        secrets = secrets_of(records[board.unit])
        for panel in board.files:
            for text in reader.read(open_picture(panel.file).image):
                normal = normalize_answer(text)
                source = next((secret.path for secret in secrets if secret.shown_in(normal)), None)
                found.append(RenderedText(board.unit, board.seed, panel.number, text, source))
    return found


WINDOW_WORDS, WINDOW_CHARACTERS = 6, 12
"""A run of so many words of a longer text gives it away; characters where the script has no spaces."""

# What tells nothing of the story: places in it, and how the record came to be.
_SILENT = {
    "question_id", "question_type", "answerability", "split", "validation_status", "evidence_status",
    "provenance", "language", "transition_type",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Secret:
    """One text of a record.

    Attributes:
        path: its JSON path in the record.
        text: as :func:`~fabula.schemas.text.normalize_answer` leaves it.
    """

    path: str
    text: str

    @property
    def is_short(self) -> bool:
        """Whether it is one or two words, which may stand in any prompt."""
        return len(self.text.split()) < 3 and not (is_unspaced(self.text) and len(self.text) >= 6)

    def shown_in(self, text: str) -> str | None:
        """Return what of it stands in a normalised text: all of it, or a run of it; None where nothing."""
        if contains_phrase(text, self.text):
            return self.text
        return next((run for run in self._runs() if contains_phrase(text, run)), None)

    def _runs(self) -> Iterator[str]:
        if is_unspaced(self.text):
            solid = self.text
            for start in range(len(solid) - WINDOW_CHARACTERS + 1):
                yield solid[start : start + WINDOW_CHARACTERS]
        else:
            words = self.text.split()
            for start in range(len(words) - WINDOW_WORDS + 1):
                yield " ".join(words[start : start + WINDOW_WORDS])


def secrets_of(record: StoryRecord) -> tuple[Secret, ...]:
    """Return every text of a record that tells something of the story, each once, in record order."""
    seen: dict[str, Secret] = {}
    for path, text in _texts(record, ()):
        normal = normalize_answer(text)
        if normal and normal not in seen:
            seen[normal] = Secret(format_path(path), normal)
    return tuple(seen.values())


def _texts(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name not in _SILENT:
                yield from _texts(getattr(value, name), (*path, name))
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            yield from _texts(one, (*path, number))
