"""Which script a text is written in: the cheap way to see that a reply is in the wrong language."""

import unicodedata
from collections import Counter
from functools import lru_cache

MAIN_SHARE = 0.6
"""Share of a story's letters from which on its script counts as settled."""

LEAST_SHARE = 0.5
"""Share of a reply's letters that must be in the story's script."""

LEAST_LETTERS = 24
"""A reply with fewer letters is not judged."""

# Japanese mixes the three, and any of them may be missing from a short text.
_ALIKE = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"), "HAN AND KANA")


@lru_cache(maxsize=4096)
def _script(char: str) -> str | None:
    if not char.isalpha():
        return None
    word = unicodedata.name(char, "").replace("-", " ").partition(" ")[0]
    return _ALIKE.get(word, word) or None


def _count(text: str) -> Counter[str]:
    return Counter(script for char in text if (script := _script(char)) is not None)


def main_script(text: str) -> str | None:
    """Return the script of most letters of a text, such as ``LATIN``; None where none clearly leads."""
    counts = _count(text)
    if not counts:
        return None
    script, number = counts.most_common(1)[0]
    return script if number >= MAIN_SHARE * counts.total() else None


def script_problem(story: str, language: str, reply: str) -> str | None:
    """Return what is wrong with the script of a reply about a story, or None.

    Languages that share a script are not told apart.
    """
    wanted, counts = main_script(story), _count(reply)
    if wanted is None or counts.total() < LEAST_LETTERS or counts[wanted] >= LEAST_SHARE * counts.total():
        return None
    found = counts.most_common(1)[0][0]
    return (
        f"the values are mostly in {found.lower()} letters, the story (language {language}) in"
        f" {wanted.lower()}: write every value in the language and script of the story"
    )
