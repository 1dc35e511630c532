"""The draft of a record: its drafted parts put together, and what may be put in their place."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from ...schemas.canonical import Json, canonical_text
from ...schemas.katha import Question, Scene, Transition, Variant
from ...schemas.paths import format_path
from .parts import LABELS, LISTS, MAKERS, producers

PARTS = (*LABELS, *LISTS, *MAKERS)
"""The fields of an item that a draft is made of, beside its story and what was given."""

REPAIRS = ("repaired", "repaired_by")
"""The fields of an item that say what the stage ``repair_draft`` puts in the place of its lists."""

IDS = frozenset(
    (
        *("story_id", "scene_index", "from_scene", "to_scene", "question_id"),
        *("variant_id", "base_story_id", "pair_id", "subset"),
    )
)
"""Fields of the parts that never change once they are drafted."""

_TYPES: dict[str, TypeAdapter[tuple[object, ...]]] = {
    "scenes": TypeAdapter(tuple[Scene, ...]),
    "transitions": TypeAdapter(tuple[Transition, ...]),
    "questions": TypeAdapter(tuple[Question, ...]),
    "variants": TypeAdapter(tuple[Variant, ...]),
}


def make_draft(fields: Mapping[str, Json]) -> Json:
    """Return the draft as the planner and given parts made it: title, labels, lists of parts, producers.

    Args:
        fields: ``story``, ``given`` and :data:`PARTS`.
    """
    draft = {"title": fields["story"]["title"], **{name: fields[name] for name in (*LABELS, *LISTS)}}
    makers = {name: fields[name] for name in MAKERS}
    return {**draft, "producers": producers(draft, fields["story"], fields["given"], makers)}


def with_repairs(draft: Json, repaired: Mapping[str, Json], repaired_by: Mapping[str, Json]) -> Json:
    """Return a draft with repaired lists in their places; every field that changed is the repairer's.

    Args:
        draft: what :func:`make_draft` returned.
        repaired: list -> the list anew; null or absent where it stays.
        repaired_by: list -> who made it.
    """
    changed = {name: repaired[name] for name in LISTS if repaired.get(name) is not None}
    made = [
        {"path": path, "producer": repaired_by[name]}
        for name, elements in changed.items()
        for path in _changes(name, draft[name], elements)
    ]
    return {**draft, **changed, "producers": [*draft["producers"], *made]}


def _changes(name: str, before: Sequence[Json], after: Sequence[Json]) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        yield from (f"$.{name}[{number}].{key}" for key in sorted(new) if new[key] != old.get(key))


def ids_of(draft: Mapping[str, Json], names: Sequence[str] = LISTS) -> Json:
    """Return every id and number of the parts, in order."""
    return [
        [{key: part.get(key) for key in sorted(IDS & part.keys())} for part in draft[name]] for name in names
    ]


def type_problem(name: str, elements: Json) -> str | None:
    """Return where and why a list is not one of the type that its name says, or None."""
    try:
        _TYPES[name].validate_json(canonical_text(elements))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{format_path((name, *first['loc']))}: {first['msg']}"
    return None
