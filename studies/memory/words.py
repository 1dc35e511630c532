"""Word lists of ours: what sort of thing a noun names, colours of keys, styles. The lists are words.json."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from pydantic import Field

from ...schemas.entities import EntityType
from ...schemas.values import Own
from .bank import Owner
from .scripts import MemoryScript, ScriptEntity, shots_with, together

Sort: TypeAlias = Literal["wearable", "mark", "fixture", "creature", "vehicle", "prop"]
"""What is worn; marks of a body; what belongs to a place; animals and beings; vehicles; what is carried."""

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BEFORE = re.compile(
    r"\s+(?:of|with|in|on|at|from|for|to|under|over|near|inside|beside|behind|that|which|made)\s",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)['‘“\"][^'‘’“”\"]*['’”\"](?!\w)")
_HOLDS = frozenset(
    (
        *("set", "pair", "group", "row", "collection", "pile", "stack", "bunch", "pack", "series", "number"),
        *("piece", "arrangement", "convoy", "swarm", "slice", "pint", "bale", "skein", "assortment"),
        *("cluster", "stick", "roll"),
    )
)
"""Words before ``of`` that say how much there is: what stands behind is the thing."""


@cache
def _lists() -> Mapping[str, Mapping[str, list[str]]]:
    lists: Mapping[str, Mapping[str, list[str]]] = json.loads(
        (files(__package__) / "words.json").read_text("utf-8")
    )
    return lists


@cache
def _sorts() -> Mapping[str, Sort]:
    return {word: sort for sort, words in _lists()["heads"].items() for word in words}  # type: ignore[misc]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case, numbers left out."""
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(text))


def singulars(word: str) -> Iterator[str]:
    """Yield a word and what it may be the plural of, by its ending."""
    yield word
    for ending, instead in (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word.removesuffix(ending) + instead


def is_many(name: str) -> bool:
    """Whether a name is of several things, by its last word or by a word such as pair: ``the metal keys``."""
    head = head_phrase(name)
    return bool(_HOLDS & set(words_of(name))) or bool(
        head and head[-1].endswith("s") and not head[-1].endswith(("ss", "us", "is"))
    )


def head_phrase(name: str) -> tuple[str, ...]:
    """Return the words of a name up to its head noun; of words such as pair, what it is a pair of.

    >>> head_phrase("the glass of milk")
    ('the', 'glass')
    >>> head_phrase("a pair of muddy boots")
    ('muddy', 'boots')
    """
    parts = _BEFORE.split(_QUOTED.sub(" ", name), maxsplit=1)
    first = words_of(parts[0])
    if len(parts) > 1 and first and _HOLDS & set(singulars(first[-1])):
        return head_phrase(parts[1])
    return first


def sort_of(name: str) -> tuple[Sort, str] | None:
    """Return what sort of thing a name is of, and the word that says so; None where no word is known.

    The head noun goes first, then the words before it, from right to left, as compounds have them.
    """
    for word in reversed(head_phrase(name)):
        for form in (*singulars(word), *(part for part in word.split("-")[-1:] if "-" in word)):
            known = _sorts().get(form)
            if known is not None:
                return known, word
    return None


def colours_worn(text: str) -> frozenset[str]:
    """Return the key colours that a description has words for: ``green`` for an olive coat."""
    words = {part for word in words_of(text) for part in (word, *word.split("-"))}
    return frozenset(name for name, known in _lists()["colours"].items() if words & set(known))


def style_in(text: str) -> str | None:
    """Return the style that a text names first in our list; None where it names none."""
    lowered = text.lower()
    for style, signs in _lists()["styles"].items():
        if any(re.search(rf"\b{re.escape(sign)}\b", lowered) for sign in signs):
            return style
    return None


# -- Which objects need a picture of their own, by rules: sorts of things by word lists, owners by the script
#
# Clothes and marks of a body are shown in a character's portrait, furniture and fixtures in a location's
# panorama; creatures, vehicles and things that are carried about stand alone (EntityBench, C.1).

OWNED_BY: dict[Sort, Literal["character", "location"]] = {
    "wearable": "character",
    "mark": "character",
    "fixture": "location",
}
"""Sort of thing -> whose picture shows it; every other sort stands alone."""
RULES = "rules@1"
_SMALL = frozenset(
    ("the", "a", "an", "of", "and", "with", "in", "on", "his", "her", "its", "their", "is", "are")
)


class Classified(Own):
    """What was decided of an object."""

    name: str = Field(description="The object.")
    owner: Owner | None = Field(description="Whose picture shows it; null: it stands alone.")
    reason: str = Field(description="Why, in one line.")
    by: str = Field(description="Who decided: rules, or a model and its prompt.")


def classify_by_rules(entity: ScriptEntity, script: MemoryScript) -> Classified:
    """Return whether an object stands alone, and else whose picture shows it.

    Something worn belongs to the character whose description or name has most of its words, then to the one
    that shares most shots with it, then to the one that actions name nearest before it; a fixture to the
    location that shares most shots with it. Nobody owns what shares no shot with anybody.
    """
    known = sort_of(entity.name)
    if known is None:
        return _alone(entity, "no word of its name is in our lists")
    sort, word = known
    kind = OWNED_BY.get(sort)
    if kind is None:
        return _alone(entity, f"{word} is a {sort}")
    owner = _owner(entity, script, kind)
    if owner is None:
        return _alone(entity, f"{word} is a {sort}, and no {kind} shares a shot with it")
    return Classified(
        name=entity.name, owner=Owner(type=kind, name=owner.name), reason=f"{word} is a {sort}", by=RULES
    )


def _alone(entity: ScriptEntity, reason: str) -> Classified:
    return Classified(name=entity.name, owner=None, reason=reason, by=RULES)


def _owner(entity: ScriptEntity, script: MemoryScript, kind: EntityType) -> ScriptEntity | None:
    candidates = [other for other in script.of(kind) if frozenset(other.shots) & frozenset(entity.shots)]
    if not candidates:
        return None
    shared = together(entity, candidates)
    near = _mentions_before(entity, script, candidates)

    def rank(other: ScriptEntity) -> tuple[int, int, int, int, int]:
        named = int(_names(entity, other))
        likeness = _likeness(entity, other) if kind == "character" else 0
        return named, likeness, shared[other.key], near[other.key], -candidates.index(other)

    return max(candidates, key=rank)


def _names(entity: ScriptEntity, other: ScriptEntity) -> bool:
    texts = f"{entity.name} {entity.description}".lower()
    return re.search(rf"(?<!\w){re.escape(other.name.lower())}(?!\w)", texts) is not None


def _likeness(entity: ScriptEntity, other: ScriptEntity) -> int:
    """Return how many words of an object stand in somebody's description; none without its head noun."""
    described = set(words_of(other.description))
    head = head_phrase(entity.name)
    if not head or head[-1] not in described:
        return 0
    own = set(words_of(entity.name)) | set(words_of(entity.description))
    return len((own - _SMALL) & described)


def _mentions_before(
    entity: ScriptEntity, script: MemoryScript, candidates: Sequence[ScriptEntity]
) -> dict[str, int]:
    """Return in how many actions each candidate is the last one named before the object."""
    counts = {other.key: 0 for other in candidates}
    for shot in shots_with(script, entity):
        at = shot.action.lower().find(entity.name.lower().removeprefix("the "))
        before = [(shot.action.rfind(other.name, 0, at), other.key) for other in candidates] if at > 0 else []
        nearest = max(before, default=(-1, ""))
        if nearest[0] >= 0:
            counts[nearest[1]] += 1
    return counts
