"""Counts with their nouns, for messages: loaded with every command, and so small."""

import re
from collections.abc import Mapping

PLURALS = {
    "random half": "random halves", "reply": "replies", "source family": "source families",
    "story": "stories",
}  # fmt: skip


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 judge, 2 judges, 1,200 stories."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return PLURALS.get(noun, f"{noun}s")


def tallied(count: int, nouns: str) -> str:
    """Return a count with what was counted, named in the plural: 1 hidden story, 23 lines of a.jsonl."""
    if "." in nouns:
        return f"{counted(count, 'line')} of {nouns}"
    if count == 1:
        nouns = re.sub(r"(ies|(?<=[^s])s)\b", lambda end: "y" if end[0] == "ies" else "", nouns, count=1)
    return f"{count:,} {nouns}"


def tallies(counts: Mapping[str, int]) -> str:
    """Return several counts, each with what was counted, named in the plural: 1 story, 5 scenes."""
    return ", ".join(tallied(count, nouns) for nouns, count in counts.items())
