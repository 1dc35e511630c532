"""Signs that a new scene begins at a sentence, or that the sentence still belongs to the one before.

For a new scene speak a paragraph, words of time or place at the head of the sentence, and somebody new. For
the old one speak the answer to what was said, a result, a pronoun, and an opening that was only just made.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ...schemas.text import normalize_text
from .segments import Analysis, quoted_spans
from .words import lexicon, lower_words, phrase_pattern, whole_words

PARAGRAPH, TIME, SOON, PLACE, NEWCOMER, CONTRAST = 0.35, 0.5, 0.25, 0.15, 0.2, 0.1
"""How much cheaper a scene begins where a sign of a new one stands."""
INSIDE, REPLY, SPEECH, QUESTION, RESULT, PRONOUN, JUST_OPENED, SHORT = 1.5, 0.7, 0.3, 0.4, 0.4, 0.2, 0.3, 0.25
"""How much dearer where a sign of the old one stands."""
FEW_WORDS = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as it is looked at."""

    text: str  # as it stands
    inside: bool  # whether it begins within a quotation
    paragraph: bool  # whether it begins a paragraph
    speaks: bool  # whether it begins with a quotation
    quotes: bool  # whether it holds one, or a part of one
    opens: float  # how strongly it opens with a time


def paragraph_starts(text: str, normalised: str) -> frozenset[int]:
    """Return where paragraphs begin in the normalised form of a text; nothing where that cannot be told.

    Paragraphs stand between empty lines, or one on each line where every line ends a sentence.
    """
    parts = [normalize_text(part) for part in re.split(r"\n\s*\n", text)]
    if len(parts) == 1:
        lines = [normalize_text(line) for line in text.splitlines()]
        parts = lines if all(line.endswith(_ENDS) for line in lines if line) else parts
    parts = [part for part in parts if part]
    if " ".join(parts) != normalised:
        return frozenset()
    starts, start = [], 0
    for part in parts:
        starts.append(start)
        start += len(part) + 1
    return frozenset(starts)


_ENDS = tuple(".!?…。！？।॥:;\"'”’»」")
_MARKS = "\"“«「‘'"


def opening_costs(text: str, analysis: Analysis, paragraphs: frozenset[int]) -> dict[int, float]:
    """Return what it costs to begin a scene at each sentence, by the number of its first segment."""
    firsts = [
        n for n, s in enumerate(analysis.segments) if not n or s.sentence != analysis.segments[n - 1].sentence
    ]
    sentences = _sentences(text, analysis, firsts, paragraphs)
    new = {entity.at[0] for entity in analysis.entities}
    costs = {firsts[0]: 0.0}
    for before, sentence, number in zip(sentences, sentences[1:], firsts[1:], strict=False):
        costs[number] = _spoken(before, sentence) - PARAGRAPH * (sentence.paragraph and not sentence.speaks)
        if analysis.english:
            costs[number] += _told(before, sentence) - NEWCOMER * (number in new)
    return costs


def _sentences(
    text: str, analysis: Analysis, firsts: Sequence[int], paragraphs: frozenset[int]
) -> list[Sentence]:
    spans = quoted_spans(text, 0, len(text))
    starts = [start for start, _ in spans]
    looked_at = []
    for number, stop in zip(firsts, [*firsts[1:], len(analysis.segments)], strict=True):
        start, end = analysis.segments[number].start, analysis.segments[stop - 1].end
        own = text[start:end]
        nearest = bisect_left(starts, start) - 1
        inside = nearest >= 0 and start < spans[nearest][1]
        quotes = inside or any(mark in own for mark in '"“«「')
        looked_at.append(
            Sentence(
                own,
                inside,
                start in paragraphs,
                own[0] in _MARKS,
                quotes,
                _time(own) if analysis.english else 0.0,
            )
        )
    return looked_at


def _spoken(before: Sentence, sentence: Sentence) -> float:
    """Return the cost of parting what is said from what belongs to it."""
    if sentence.inside:
        return INSIDE
    cost = 0.0
    if sentence.speaks:
        cost += REPLY if before.quotes else SPEECH
    if before.text.rstrip("\"'”’»」").endswith(("?", "？", ":")):
        cost += QUESTION
    return cost


def _told(before: Sentence, sentence: Sentence) -> float:
    """Return the cost that the words of an English sentence and of the one before speak of."""
    words = lower_words(sentence.text)
    head = words[0] if words else ""
    cost = -sentence.opens
    if phrase_pattern("openings", "results").match(sentence.text):
        cost += RESULT
    elif head in lexicon("openings")["pronouns"] and not sentence.opens:
        cost += PRONOUN
    if phrase_pattern("connectives", "contrast").match(sentence.text):
        cost -= CONTRAST
    if head in lexicon("openings")["places"]:
        cost -= PLACE
    if not sentence.paragraph:
        short = len(before.text.split()) <= FEW_WORDS
        cost += JUST_OPENED * max(before.opens >= TIME, short and before.paragraph) + SHORT * short
    return cost


def _time(sentence: str) -> float:
    """Return how strongly a sentence opens with a time, perhaps after "and" or "but"."""
    if _point().match(sentence):
        return TIME
    soon = phrase_pattern("openings", "soon").match(sentence)
    return SOON if soon else 0.0


@cache
def _point() -> re.Pattern[str]:
    table = lexicon("openings")
    noun = whole_words(table["time_nouns"]).pattern
    before = r"(?:but |and |yet )?(?:" + "|".join(table["time_leads"]) + r") "
    words = r"(?:[\w’'-]+ ){0,3}?"
    exact = whole_words(table["times"]).pattern
    return re.compile(rf"(?:but |and )?{exact}|{before}{words}{noun}", re.IGNORECASE)
