"""The words and marks of an English text, each quotation as one token."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from .words import is_verb, lexicon, word_set

_TOKEN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\w\s]")
_CLOSING = {"“": "”", '"': '"', "«": "»", "‘": "’", "'": "'"}
QUOTE = "\x00"
"""The lower-case form of a token that stands for a whole quotation."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a mark, or a whole quotation; ``lower`` is without a possessive ending."""

    text: str
    lower: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word."""
        return self.text[0].isalnum()

    @property
    def possessive(self) -> bool:
        """Whether it ends in ``'s`` or ``s'``."""
        return self.text.lower().replace("’", "'").endswith("'s")


def words(*keys: str) -> frozenset[str]:
    """Return the words of one or more lists of the grammar."""
    return word_set("grammar", *keys)


def read_tokens(text: str) -> list[Token]:
    """Return the words and marks of a text, each quotation as one token."""
    tokens: list[Token] = []
    cursor, quotes = 0, iter([*_quotations(text), (len(text), len(text))])
    start, end = next(quotes)
    while match := _TOKEN.search(text, cursor):
        if match.start() >= start:
            if start == end:
                break
            tokens.append(Token(text[start:end], QUOTE, start, end))
            cursor = end
            start, end = next(quotes)
            continue
        lower = match[0].lower().replace("’", "'").removesuffix("'s")
        tokens.append(Token(match[0], lower, match.start(), match.end()))
        cursor = match.end()
    return tokens


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of quotations; one that is never closed goes on to the end."""
    cursor = 0
    while match := re.compile("[“\"«‘']").search(text, cursor):
        mark, start = match[0], match.start()
        single = mark in "‘'"
        if mark == "'" and not (re.match(r"'\w", text[start:]) and not text[start - 1 : start].isalnum()):
            cursor = match.end()
            continue
        closing = re.escape(_CLOSING[mark])
        pattern = rf"(?<=[^\w\s]){closing}(?!\w)" if single else closing
        end = re.compile(pattern).search(text, match.end())
        cursor = end.end() if end else len(text)
        yield start, cursor


@cache
def irregular_forms() -> frozenset[str]:
    """Return the irregular verbs in the past."""
    return frozenset(lexicon("verbs")["irregular"]) | words("irregular")


def is_finite(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a word can be a finite verb in the past."""
    lower = tokens[i].lower
    if lower in AUXILIARIES:
        return True
    ahead = tokens[i + 1].lower if i + 1 < len(tokens) else ""
    if lower in irregular_forms():
        return not (ahead == "by" and lower in words("participles"))
    return is_verb(["he", lower, ahead], 1) and lower.endswith("ed")


MODALS = frozenset(("was", "were", "had", "did", "could", "would", "should", "might", "must"))
AUXILIARIES = MODALS | {f"{modal}n't" for modal in MODALS}


def sentence_groups(tokens: Sequence[Token], starts: Sequence[int]) -> list[list[Token]]:
    """Return the tokens of each sentence, given where the sentences start."""
    groups: list[list[Token]] = [[] for _ in starts]
    for token in tokens:
        groups[max(0, bisect_right(starts, token.start) - 1)].append(token)
    return groups
