"""Names that rules give: Person A, Person B, ...; Place 1, Place 2, ..."""

from collections.abc import Sequence


def person_name(number: int) -> str:
    """Return the name of a person by number from 1: A to Z, then AA, AB, ..."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"Person {letters}"


def place_name(number: int) -> str:
    """Return the name of a place by number from 1."""
    return f"Place {number}"


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
