"""Emotion words: a short list of our own and the emotion categories of the Empath lexicon (MIT)."""

from collections.abc import Sequence
from functools import cache

from .segments import Feeling, Segment
from .words import Word, lexicon

THRESHOLD = 0.5


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


def dominant(feelings: Sequence[Feeling]) -> str | None:
    """Return the emotion with the most weight, or None where it is below the threshold or tied."""
    totals: dict[str, float] = {}
    for feeling in feelings:
        totals[feeling.emotion] = totals.get(feeling.emotion, 0.0) + feeling.weight
    ranked = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    if not ranked or ranked[0][1] < THRESHOLD:
        return None
    return None if len(ranked) > 1 and ranked[1][1] == ranked[0][1] else ranked[0][0]


_NEGATIONS = frozenset(["not", "never", "no", "without", "nor", "nobody", "didn't", "wasn't", "weren't"])
