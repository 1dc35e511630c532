"""Counts in words, with the noun in its number."""

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
