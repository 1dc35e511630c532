"""The texts of a record that an image-only judge must not see, ready to be searched for."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from ...schemas.katha import StoryRecord
from ...schemas.paths import format_path
from ...schemas.text import contains_phrase, is_unspaced, normalize_answer

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
