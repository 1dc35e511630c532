"""Which kinds of word an English word can be, and the forms of verbs, by the lexicon of ``lemminflect``.

The lexicon (NIH SPECIALIST, in the wheel) is loaded on first use: 0.5 s and 60 MB for a process.
"""

from functools import cache

from .words import word_set

NOUN, ADJECTIVE, ADVERB, VERB = "NOUN", "ADJ", "ADV", "VERB"


@cache
def kinds(word: str) -> frozenset[str]:
    """Return which of NOUN, ADJ, ADV and VERB a lower-case word can be; none if it is unknown."""
    from lemminflect import getAllLemmas

    return frozenset(getAllLemmas(word))


def can_be(word: str, kind: str) -> bool:
    """Return whether a lower-case word can be of a kind; a compound is what its last part is."""
    return kind in kinds(word) or (
        "-" in word and kind in (NOUN, ADJECTIVE) and kind in kinds(word.rpartition("-")[2])
    )


@cache
def is_form(word: str, tag: str) -> bool:
    """Return whether a lower-case word is a form of a verb by its Penn tag: VB, VBD, VBN or VBG."""
    from lemminflect import getAllLemmas, getInflection

    if VERB not in kinds(word):
        return False
    return any(word in getInflection(base, tag) for base in getAllLemmas(word)[VERB])


@cache
def is_gerund(word: str) -> bool:
    """Return whether a word is a present participle rather than a noun such as ``king`` or ``wedding``."""
    nouns = word_set("nouns", "animals", "people", "objects", "abstract")
    return word.endswith("ing") and word not in nouns and is_form(word, "VBG")


@cache
def is_participle(word: str) -> bool:
    """Return whether a word can be a past participle, such as ``broken`` or ``tied``."""
    return word in word_set("grammar", "participles") or is_form(word, "VBN")
