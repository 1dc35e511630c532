"""Names of entities: in the form of their kind, unique up to case, none within another one."""

import re
from collections.abc import Callable, Sequence

from ...schemas.entities import LABELS
from ...schemas.text import contains_phrase, normalize_answer, normalize_text
from .drafts import Entity, EntityKind, Repair
from .mentions import names_of, without_article

LONGEST_NAME = 60
_LABEL = re.compile(rf"\b({'|'.join(LABELS.values())})[ _]?\d+\b|\bGen_", re.IGNORECASE)


def tidy_name(kind: EntityKind, name: str) -> str:
    """Return a name in the form of its kind: ``the`` and small first letter for objects, else a capital.

    None is left of one that says nothing, or that is a label such as "Character 3": labels are numbered anew.
    """
    text = normalize_text(name.replace("`", "").replace(":", " ")).strip(" .,;'\"")[:LONGEST_NAME].strip()
    if not normalize_answer(text) or _LABEL.search(text):
        return ""
    if kind == "object":
        return f"the {without_article(text)}"
    return f"{text[:1].upper()}{text[1:]}"


def with_unique_names(
    entities: Sequence[Entity], spare: Callable[[Entity], str]
) -> tuple[list[Entity], list[Repair]]:
    """Return entities of which none has the name of another, and what was changed for it.

    Earlier entities keep their names. A name that is taken, holds one that is taken or is held by it, makes
    way for ``spare``'s, then for this with a number. Aliases that could mean another entity go.
    """
    taken: list[str] = []
    made: list[Entity] = []
    repairs: list[Repair] = []
    for entity in entities:
        name = entity.name
        if not name or _clashes(name, taken):
            name = _free(spare(entity), taken)
            said = f"{entity.name} is taken or part of another name" if entity.name else "no name of its own"
            repairs.append(
                Repair(
                    code="name-taken", shot=None, entity=entity.label, found=f"{said}; now {name}",
                    done="rewritten",
                )
            )  # fmt: skip
        taken.append(normalize_answer(name))
        made.append(entity.model_copy(update={"name": name}))
    return [_with_aliases(entity, made) for entity in made], repairs


def _clashes(name: str, taken: Sequence[str]) -> bool:
    plain = normalize_answer(name)
    bare = normalize_answer(without_article(name))
    return any(
        plain == other or contains_phrase(other, bare) or contains_phrase(plain, _bare(other))
        for other in taken
    )


def _bare(plain: str) -> str:
    return without_article(plain)


def _free(name: str, taken: Sequence[str]) -> str:
    number, candidate = 1, name
    while _clashes(candidate, taken):
        number += 1
        candidate = f"{name} {number}"
        if number > len(taken) + 2:
            # The name itself holds one that is taken: only another one helps.
            candidate = f"Nameless {number}"
    return candidate


def _with_aliases(entity: Entity, entities: Sequence[Entity]) -> Entity:
    """Return an entity without the aliases that are too short, its own name, or could mean another one."""
    others = {normalize_answer(name) for one in entities if one is not entity for name in names_of(one)}
    kept: dict[str, str] = {}
    for alias in map(normalize_text, entity.aliases):
        plain = normalize_answer(alias)
        if len(plain) >= 3 and plain not in others and plain != normalize_answer(entity.name):
            kept.setdefault(plain, alias)
    return entity.model_copy(update={"aliases": tuple(kept.values())})
