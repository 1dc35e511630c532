"""Whether a text mentions an entity: by its name as it stands, up to case, or by another name of it."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from ...schemas.text import normalize_answer, unspaced_count
from ...validators.entities.view import holds
from .drafts import Entity

How = Literal["exact", "folded", "alias"]
"""``exact``: the name letter for letter; ``folded``: up to case, punctuation and spaces; ``alias``: another
name of the entity."""

_ARTICLES = ("the ", "a ", "an ")
_TAKEN = "\0"


def without_article(name: str) -> str:
    """Return a name without the English article that it begins with."""
    folded = name.casefold()
    length = next((len(word) for word in _ARTICLES if folded.startswith(word)), 0)
    return name[length:].strip()


def names_of(entity: Entity) -> tuple[str, ...]:
    """Return the names that count as a mention: its name, its aliases, and these without article."""
    names = (entity.name, *entity.aliases)
    return tuple(dict.fromkeys((*names, *map(without_article, names))))


def mentions(text: str, entities: Iterable[Entity]) -> dict[str, How]:
    """Return which entities a text mentions, by label, and how.

    A name within the longer name of another entity is no mention of its own: "the message from Julian" does
    not show Julian. Words are not cut: Leo is not in Leonard.
    """
    plain = normalize_answer(text)
    exact: set[str] = set()
    found: dict[str, How] = {}
    calls = [(name, entity) for entity in entities for name in names_of(entity)]
    # Longest first, so that longer names take their part of the text; among equals, names before aliases.
    calls.sort(key=lambda call: (-len(normalize_answer(call[0])), call[0] != call[1].name, call[1].label))
    for name, entity in calls:
        pattern = _pattern(normalize_answer(name))
        if pattern is None:
            continue
        plain, count = pattern.subn(_TAKEN, plain)
        if not count or entity.label in exact:
            continue
        how: How = "alias" if normalize_answer(name) != normalize_answer(entity.name) else "folded"
        if how == "folded" and holds(text, name):
            how = "exact"
            exact.add(entity.label)
        if _better(how, found.get(entity.label)):
            found[entity.label] = how
    return found


def unmentioned(text: str, scheduled: Sequence[Entity], registry: Iterable[Entity]) -> list[Entity]:
    """Return the scheduled entities that a text does not mention, in order."""
    found = mentions(text, registry)
    return [entity for entity in scheduled if entity.label not in found]


def _better(how: How, before: How | None) -> bool:
    order = ("exact", "folded", "alias")
    return before is None or order.index(how) < order.index(before)


@lru_cache(maxsize=4096)
def _pattern(words: str) -> re.Pattern[str] | None:
    if not words:
        return None
    if unspaced_count(words):
        return re.compile(re.escape(words))
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
