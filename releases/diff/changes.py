"""What differs between two JSON documents, by JSON path.

Parts that have a number or an id of their own (scenes, transitions, questions) are told apart by it, so that
a question put in between does not seem to change all that follow. Other lists are aligned by their values.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import parsed, value_at

Kind = Literal["added", "removed", "changed", "reordered"]
Steps = tuple[str | int, ...]

IDENTITIES: dict[str, tuple[str, ...]] = {
    "scenes": ("scene_index",),
    "transitions": ("from_scene", "to_scene"),
    "questions": ("question_id",),
    "fields": ("path",),
}
"""Name of a list -> the fields that tell its parts apart."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDEX = re.compile(r"\[\d+\]")
_MOST_ALIGNED = 400
"""Longest list that is aligned by its values; longer ones are compared place by place."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference."""

    path: str  # JSON path: in the new document, and in the old one for what was removed
    kind: Kind  # ``added``, ``removed``, ``changed``, or ``reordered`` for parts that stand in another order
    old: Json = None  # the old value; None where there was none
    new: Json = None  # the new value; None where there is none any more

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON; ``old`` and ``new`` are there only where there was or is a value."""
        values = {} if self.kind == "added" else {"old": self.old}
        if self.kind != "removed":
            values["new"] = self.new
        return {"path": self.path, "kind": self.kind, **values}


def changes_between(old: Json, new: Json) -> tuple[Change, ...]:
    """Return every difference between two JSON documents, in the order of the new one."""
    return tuple(_changes(old, new, ()))


def pattern_of(path: str) -> str:
    """Return a path with the parts of its lists taken together, such as ``$.scenes[*].action``."""
    return _INDEX.sub("[*]", path)


def path_text(steps: Steps) -> str:
    """Return a JSON path; names that are no plain words stand in brackets and quotes."""
    return "$" + "".join(_step_text(step) for step in steps)


_PART = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")


def has_path(document: Json, path: str) -> bool:
    """Return whether a document has something at a path that :func:`path_text` wrote."""
    try:
        value_at(document, parsed(path, _PART, _step_of))
    except (LookupError, ValueError):
        return False
    return True


def _step_of(match: re.Match[str]) -> str | int:
    if match[3] is not None:
        return str(json.loads(match[3]))
    return match[1] if match[1] is not None else int(match[2])


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{canonical_text(step)}]"


def _changes(old: Json, new: Json, steps: Steps) -> Iterator[Change]:
    if _equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            inner = (*steps, name)
            if name not in new:
                yield Change(path_text(inner), "removed", old=old[name])
            elif name not in old:
                yield Change(path_text(inner), "added", new=new[name])
            else:
                yield from _changes(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(old, new, steps)
    else:
        yield Change(path_text(steps), "changed", old, new)


def _equal(old: Json, new: Json) -> bool:
    # In Python 1 == 1.0 == True; in JSON they are written differently, and so are their forms here.
    return bool(old == new) and (isinstance(old, str) or repr(old) == repr(new))


def _list_changes(old: Sequence[Json], new: Sequence[Json], steps: Steps) -> Iterator[Change]:
    before, after = _places(old, steps), _places(new, steps)
    if before is not None and after is not None:
        yield from _identified(old, new, steps, before, after)
        return
    removed: Sequence[int]
    added: Sequence[int]
    if max(len(old), len(new)) > _MOST_ALIGNED:
        pairs = [(index, index) for index in range(min(len(old), len(new)))]
        removed, added = range(len(new), len(old)), range(len(old), len(new))
    else:
        pairs, removed, added = _aligned(old, new)
    for first, second in pairs:
        yield from _changes(old[first], new[second], (*steps, second))
    yield from (Change(path_text((*steps, index)), "removed", old=old[index]) for index in removed)
    yield from (Change(path_text((*steps, index)), "added", new=new[index]) for index in added)


def _places(values: Sequence[Json], steps: Steps) -> dict[str, int] | None:
    """Return identity -> index of the parts of a list; None where they have none, or share one."""
    fields = IDENTITIES.get(str(steps[-1])) if steps else None
    if fields is None:
        return None
    places: dict[str, int] = {}
    for index, value in enumerate(values):
        if not isinstance(value, dict) or any(name not in value for name in fields):
            return None
        places[canonical_text([value[name] for name in fields])] = index
    return places if len(places) == len(values) else None


def _identified(
    old: Sequence[Json], new: Sequence[Json], steps: Steps, before: dict[str, int], after: dict[str, int]
) -> Iterator[Change]:
    for name, index in after.items():
        if name in before:
            yield from _changes(old[before[name]], new[index], (*steps, index))
        else:
            yield Change(path_text((*steps, index)), "added", new=new[index])
    for name, index in before.items():
        if name not in after:
            yield Change(path_text((*steps, index)), "removed", old=old[index])
    stayed, now = [name for name in before if name in after], [name for name in after if name in before]
    if stayed != now:
        yield Change(path_text(steps), "reordered", stayed, now)


def _aligned(
    old: Sequence[Json], new: Sequence[Json]
) -> tuple[list[tuple[int, int]], Sequence[int], Sequence[int]]:
    """Return which places of two lists correspond, and those of either that do not."""
    texts = [canonical_text(value) for value in old], [canonical_text(value) for value in new]
    pairs: list[tuple[int, int]] = []
    removed: list[int] = []
    added: list[int] = []
    for _, start, end, first, last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        shared = min(end - start, last - first)
        pairs += [(start + number, first + number) for number in range(shared)]
        removed += range(start + shared, end)
        added += range(first + shared, last)
    return pairs, removed, added
