"""Choices that look random and depend on nothing but the story's id."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def share(*parts: str) -> float:
    """Return a number from 0 to below 1 that is fixed by the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def pick(options: Sequence[T], *parts: str) -> T:
    """Return one of the options, fixed by the parts."""
    return options[int(share(*parts) * len(options))]
