"""The English cue lists of the rules planner, kept as data files; loaded once, on first use."""

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def lexicon(name: str) -> dict[str, Any]:
    """Return one cue file, such as ``verbs``, as parsed JSON."""
    document: dict[str, Any] = json.loads((files(__package__) / f"{name}.json").read_text("utf-8"))
    return document


@cache
def word_set(name: str, *keys: str) -> frozenset[str]:
    """Return the words of one or more lists of a cue file as a set."""
    return frozenset(word for key in keys for word in lexicon(name)[key])


@cache
def phrase_pattern(name: str, key: str) -> re.Pattern[str]:
    """Return a pattern that finds any phrase of a list as whole words, the longest first, in any case."""
    return whole_words(lexicon(name)[key])


def whole_words(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the phrases as whole words, the longest first, in any case."""
    longest = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest)) + r")(?!\w)", re.IGNORECASE)
