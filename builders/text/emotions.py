"""Emotion words: a short list of our own and the emotion categories of the Empath lexicon (MIT)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from .segments import Feeling, Segment
from .statements import Statement
from .tokens import words as grammar
from .words import Word, lexicon


@cache
def emotion_words() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return word -> its emotions, each with a weight of 1 over the number of emotions that list the word.

    Words of more than two emotions are left out. Our own list counts alone for the words that it holds.
    """
    table = lexicon("emotions")
    of_category = {category: emotion for emotion, names in table["empath"].items() for category in names}
    found: dict[str, list[str]] = {}
    for category, words in lexicon("empath")["categories"].items():
        emotion = of_category[category]
        for word in words:
            if emotion not in found.setdefault(word, []):
                found[word].append(emotion)
    ignored = set(table["ignore"])
    result = {
        word: tuple((emotion, 1 / len(emotions)) for emotion in emotions)
        for word, emotions in found.items()
        if len(emotions) <= 2 and word not in ignored
    }
    for emotion, words in table["core"].items():
        result.update(dict.fromkeys(words, ((emotion, 1.0),)))
    return result


def find_feelings(words: Sequence[Word], segments: Sequence[Segment]) -> tuple[Feeling, ...]:
    """Return the emotion words of an English text, in order; a negated one ("not afraid") is left out."""
    table = emotion_words()
    feelings: list[Feeling] = []
    segment = 0
    for index, word in enumerate(words):
        if word.lower not in table:
            continue
        while word.start >= segments[segment].end:
            segment += 1
        if any(before.lower in _NEGATIONS for before in words[max(0, index - 3) : index]):
            continue
        feelings += [Feeling(segment, word.lower, emotion, weight) for emotion, weight in table[word.lower]]
    return tuple(feelings)


@cache
def feeling_words() -> frozenset[str]:
    """Return the adjectives that tell a feeling, such as ``afraid``."""
    return frozenset(lexicon("emotions")["adjectives"])


@dataclass(frozen=True, slots=True)
class Felt:
    """A feeling that a statement tells outright.

    Attributes:
        statement: whose subject feels it.
        word: such as ``afraid``, or ``fear`` where it trembled with fear.
        emotion: which emotion that is.
        alone: whether the word ends a clause that says nothing else.
    """

    statement: Statement
    word: str
    emotion: str
    alone: bool


def told_feeling(statement: Statement) -> Felt | None:
    """Return the feeling of "the fox was very afraid" or "the fox trembled with fear", else None."""
    if statement.negated or statement.kind in ("modal", "past"):
        return None
    rest = [token.lower for token in statement.reading.rest]
    table = lexicon("emotions")["adjectives"]
    if statement.verb in grammar("feel"):
        after = [word for word in rest if word not in grammar("degree")]
        if after and after[0] in table and (len(after) == 1 or after[1] in _OF):
            plain = not statement.adverbs and len(rest) == 1
            return Felt(statement, after[0], table[after[0]], plain)
    nouns = lexicon("grammar")["feeling_nouns"]
    if len(rest) > 1 and rest[-1] in nouns and rest[-2] in ("with", "in", "for"):
        return Felt(statement, rest[-1], nouns[rest[-1]], False)
    return None


_OF = ("of", "at", "by", "with", "about", "to", "for", "when")
_NEGATIONS = frozenset(["not", "never", "no", "without", "nor", "nobody", "didn't", "wasn't", "weren't"])
