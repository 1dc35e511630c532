"""Correcting a drafted list: what a check found in words, and which elements a correction may touch."""

import re
from collections.abc import Sequence

from ....schemas.canonical import Json
from ..drafts import IDS

_ELEMENT = re.compile(r"\$\.([a-z]+)\[(\d+)\](?:\.([a-z_]+))?")
_NAMES = {"scenes": "scene", "transitions": "transition", "questions": "question", "variants": "contrast"}
_NOT_OURS = frozenset(("moral_target",))
"""Fields that follow from the label, so that no correction of a list changes them."""


def in_words(findings: Sequence[Json]) -> list[str]:
    """Return findings (checks as JSON) as a model reads them: ``scene 2, action: the fox is not there``."""
    return [f"{_place(str(finding['path']))}: {finding['note']}" for finding in findings]


def _place(path: str) -> str:
    match = _ELEMENT.match(path)
    if match is None or match[1] not in _NAMES:
        return "all of it"
    number, name = int(match[2]) + 1, _NAMES[match[1]]
    place = f"transition from scene {number} to {number + 1}" if name == "transition" else f"{name} {number}"
    return f"{place}, {match[3].replace('_', ' ')}" if match[3] else place


def faulted(part: str, findings: Sequence[Json], count: int) -> frozenset[int]:
    """Return the positions of a list's elements that findings name; all where one names the list itself."""
    found: set[int] = set()
    for finding in findings:
        match = _ELEMENT.match(str(finding["path"]))
        if match is None or match[1] != part:
            return frozenset(range(count))
        found.add(int(match[2]))
    return frozenset(found)


def corrected(part: str, old: Sequence[Json], new: Sequence[Json], findings: Sequence[Json]) -> list[Json]:
    """Return the old list with the elements that findings name taken from the new one; ids stay.

    A model that rewrites more than it was asked to changes nothing by it.
    """
    touched = faulted(part, findings, len(old))
    kept = IDS | _NOT_OURS
    return [
        {**after, **{key: before[key] for key in before if key in kept}} if number in touched else before
        for number, (before, after) in enumerate(zip(old, new, strict=True))
    ]
