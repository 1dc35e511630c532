"""A line of somebody else's file as a type of ours: what the type does not have is left out, gaps are filled.

Nothing is lost by it: an import keeps every file of the package as it came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from ...schemas.canonical import Json, canonical_bytes
from ...schemas.katha import Question, Scene, Transition
from ...schemas.paths import pointer
from ...schemas.values import Own
from ...validators.report import show

Kind = TypeVar("Kind", bound=Own)
_MAY_BE_EMPTY = frozenset(
    {"characters", "objects", "visual_must_show", "evidence_scenes", "correction_flags"}
)
"""Lists that say something by being empty, so that none at all may be read as that."""
_EXPECTED = {
    "string_type": "a text", "int_type": "a whole number", "int_from_float": "a whole number",
    "bool_type": "true or false", "tuple_type": "a list", "model_type": "an object",
    "missing": "this field",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a type of ours cannot hold: its place as a JSON pointer, what could be, and what is."""

    place: str
    expected: str
    found: str


def fit(own: type[Kind], line: Mapping[str, Json], unknown: set[str]) -> Kind | list[Misfit]:
    """Return a line as a type of ours, or what of it cannot be held.

    Absent fields that may be null are null, absent lists that may be empty are empty, and ids and positions
    of parts follow from their place.
    """
    filled = _filled(own, line, line.get("story_id"), 0, "", unknown)
    try:
        return own.model_validate_json(canonical_bytes(filled), strict=True)
    except ValidationError as error:
        return [
            Misfit(
                pointer(one["loc"]),
                _EXPECTED.get(one["type"], one["msg"]),
                "no such field" if one["type"] == "missing" else show(one["input"]),
            )
            for one in error.errors()
        ]


def _filled(
    own: type[Own], value: Mapping[str, Json], story_id: Json, position: int, at: str, unknown: set[str]
) -> dict[str, Json]:
    by_place: dict[tuple[type[Own], str], Json] = {
        **{(part, "story_id"): story_id for part in (Scene, Transition, Question)},
        (Scene, "scene_index"): position + 1,
        (Transition, "from_scene"): position + 1,
        (Transition, "to_scene"): position + 2,
    }
    unknown |= {f"{at}{pointer((name,))}" for name in value.keys() - own.model_fields.keys()}
    made: dict[str, Json] = {}
    for name, info in own.model_fields.items():
        annotation: Any = info.annotation
        part, found, here = _part_of(annotation), value.get(name), f"{at}/{name}"
        if name not in value:
            if (own, name) in by_place:
                made[name] = by_place[own, name]
            elif name in _MAY_BE_EMPTY:
                made[name] = []
            elif info.is_required() and NoneType in get_args(annotation):
                made[name] = None
        elif part is not None and isinstance(found, dict):
            made[name] = _filled(part, found, story_id, 0, here, unknown)
        elif part is not None and isinstance(found, list):
            made[name] = [
                _filled(part, one, story_id, number, f"{here}/*", unknown) if isinstance(one, dict) else one
                for number, one in enumerate(found)
            ]
        else:
            made[name] = found
    return made


@cache
def _part_of(annotation: Any) -> type[Own] | None:  # noqa: ANN401 - annotations are any object
    """Return the type of ours that a field holds, alone, in a list or beside null."""
    if isinstance(annotation, type) and issubclass(annotation, Own):
        return annotation
    return next((part for one in get_args(annotation) if (part := _part_of(one)) is not None), None)


def plain(text: str) -> str:
    """Return a text from a package as it may be shown: on one line, without control characters, cut."""
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:197]}..."
