"""Questions that no record has, such as those of other evaluators: answered by what frames show.

A question that names a part ("part 2 of 5 of the story") is about one frame: the second, where there are five
frames; else those that are recognised as the second scene. Any other is about all frames.

- With "yes or no": yes where a known text that the question names, the longest, is visible.
- With "one of these": the option that is visible; of several the longest. Options are known texts that the
  question names.
- Any other: the visible text that shares most words with the question; of an equal number the longest. Where
  none shares a word, and where the wanted answer is no known text, it cannot be told.

Known texts are all texts of all records that a picture may show.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..schemas.katha import StoryRecord
from ..schemas.text import contains_phrase, normalize_answer
from .drawn_boards import Board, Codes, scene_texts, shows, transition_texts

UNCLEAR = "unclear"
_PART = re.compile(r"\bpart (\d+) of (\d+)\b")
_SMALL_WORDS = """a an the of to in on at by for from with and or is are was were be do does did what which
    who whom how why when where this that these those it its he his she her they their them story part"""
_SMALL = frozenset(_SMALL_WORDS.split())


@dataclass(frozen=True)
class Unknown:
    """A question that no record has.

    Attributes:
        text: the question.
        record: the story that is shown; None where nothing known is visible.
        frames: what each frame shows.
        records: all stories, whose texts are known.
    """

    text: str
    record: StoryRecord | None
    frames: tuple[Codes, ...]
    records: tuple[StoryRecord, ...]

    @property
    def is_yes_no(self) -> bool:
        """Whether yes or no is wanted."""
        return "yes or no" in self.text.casefold()

    @property
    def has_options(self) -> bool:
        """Whether one of several options is wanted."""
        return "one of these" in self.text.casefold()

    def named(self) -> list[str]:
        """Return the known texts that the question names, the longest first, none within another."""
        question = normalize_answer(_PART.sub(" ", self.text))
        named: list[str] = []
        for text, plain in _known(self.records):
            if contains_phrase(question, plain):
                named.append(text)
                question = question.replace(plain, " | ")
        return named

    def looked_at(self) -> Sequence[Codes]:
        """Return the frames that the question is about."""
        part = _PART.search(self.text)
        if part is None or self.record is None:
            return self.frames
        number, total = int(part[1]), int(part[2])
        if total == len(self.frames) and 1 <= number <= total:
            return self.frames[number - 1 : number]
        return Board(self.record, self.frames).of_scene(number)

    def is_visible(self, text: str) -> bool:
        """Return whether a text is visible in the frames that the question is about."""
        return any(shows(frame, text) for frame in self.looked_at())


def answer_unknown(question: Unknown) -> str | None:
    """Return the answer; None where the frames do not give it."""
    named = question.named()
    if question.is_yes_no:
        return "yes" if named and question.is_visible(named[0]) else "no"
    if question.has_options:
        return next((text for text in named if question.is_visible(text)), None)
    if question.record is None:
        return None
    words = _words(question.text)
    shared = {
        text: len(words & _words(text)) for text, _ in _known((question.record,)) if question.is_visible(text)
    }
    best = max(shared, key=lambda text: shared[text], default=None)
    return best if best is not None and shared[best] else None


def turned_answer(question: Unknown, answer: str | None, below: Callable[[int], int]) -> str:
    """Return another answer than the one that was read; with None, any, at the chance of its options.

    Args:
        question: the question.
        answer: what was read; None for nothing.
        below: gives a whole number below another, by chance.
    """
    options = ["yes", "no"] if question.is_yes_no else question.named() if question.has_options else []
    others = [text for text in options if text != answer]
    return others[below(len(others))] if others else UNCLEAR


def _words(text: str) -> set[str]:
    return set(normalize_answer(text).split()) - _SMALL


def _known(records: Sequence[StoryRecord]) -> tuple[tuple[str, str], ...]:
    """Return all known texts with their normal forms, the longest first."""
    return _sorted(tuple(text for record in records for text in _texts(record)))


@lru_cache(maxsize=64)
def _sorted(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    plain = {normalize_answer(text): text for text in texts}
    plain.pop("", None)
    order = sorted(plain.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    return tuple((text, form) for form, text in order)


def _texts(record: StoryRecord) -> list[str]:
    texts = [text for scene in record.scenes for text in scene_texts(scene)]
    return texts + [text for each in record.transitions for text in transition_texts(each)]
