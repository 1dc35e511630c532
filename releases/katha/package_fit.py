"""Fitting a line of somebody else's file into a type of ours, so that it can be taken out again as it was.

What the type does not know is set aside, what it needs and is not there is filled in, and a value in another
form is replaced where nothing is lost by it. All of that is written down, and :func:`restore` undoes it.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from annotated_types import Ge

from ...schemas.canonical import Json, canonical_text
from ...schemas.katha import Question, Scene, Transition
from ...schemas.paths import drop_at_pointer, pointer, put_at_pointer, value_at_pointer
from ...schemas.values import Own
from ...validators.codes import show

Step = str | int
_NUMBERS = re.compile(r"\D*(\d{1,9})\D+(\d{1,9})\D*")
_LARGE = 2**63  # what no reader of ours could hold
_DONE = ("renamed", "kept", "filled", "replaced")
_NAMES: dict[object, str] = {str: "a text", int: "a whole number", bool: "true or false"}
_MAY_BE_EMPTY = frozenset(
    {"characters", "objects", "visual_must_show", "evidence_scenes", "correction_flags"}
)
"""Lists that say something by being empty, so that none at all may be read as that."""


@dataclass(slots=True)
class Notes:
    """What was done to one line; every place is a JSON pointer.

    Attributes:
        renamed: field of ours -> field of the package whose value it holds.
        kept: place -> what was there and no field of ours holds.
        filled: place -> what was put where nothing was.
        replaced: place -> what was there, and what stands there now.
    """

    renamed: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Json] = field(default_factory=dict)
    filled: dict[str, Json] = field(default_factory=dict)
    replaced: dict[str, list[Json]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.renamed or self.kept or self.filled or self.replaced)

    def as_json(self) -> dict[str, Json]:
        """Return the notes as plain JSON, without what is empty."""
        return {name: getattr(self, name) for name in _DONE if getattr(self, name)}

    @classmethod
    def from_json(cls, line: Mapping[str, Json]) -> "Notes":
        """Return the notes that a line of the sidecar holds."""
        return cls(**{name: dict(line.get(name) or {}) for name in _DONE})


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that cannot be held: its place, what could be, and what is."""

    place: str
    expected: str
    found: str


def fit(own: type[Own], line: Mapping[str, Json], notes: Notes, misfits: list[Misfit]) -> dict[str, Json]:
    """Return a line as a type of ours holds it; the line itself is left alone.

    Args:
        own: the type.
        line: an object of the package; its fields may have been renamed and filled by the caller.
        notes: takes what was set aside, filled in and replaced.
        misfits: takes what cannot be held. Where there are any, the result is of no use.
    """
    return _Fitting(line, notes, misfits).fields(own, line, ())


def restore(line: Mapping[str, Json], notes: Notes) -> dict[str, Json]:
    """Return a line as it came from the package; what was changed since is kept as it is now.

    Raises:
        LookupError: the line has lost a part that the notes speak of.
        ValueError: a place is no JSON pointer.
    """
    result: dict[str, Json] = copy.deepcopy(dict(line))
    for place, (before, now) in notes.replaced.items():
        if _same(value_at_pointer(result, place), now):
            put_at_pointer(result, place, before)
    for place, value in notes.filled.items():
        if _same(value_at_pointer(result, place), value):
            drop_at_pointer(result, place)
    for ours, theirs in notes.renamed.items():
        result[theirs] = result.pop(ours)
    for place, value in notes.kept.items():
        put_at_pointer(result, place, value)
    return result


def _same(one: Json, other: Json) -> bool:
    return canonical_text(one) == canonical_text(other)


@dataclass(frozen=True, slots=True)
class _Field:
    """What a field of a type can hold: one value, or a list of them.

    Attributes:
        name: its name.
        kind: the type of a value, or of an element: a text, number, truth value or a type of ours.
        optional: whether it may be null.
        many: whether it is a list.
        length: of a list of fixed length, that length.
        least: the smallest number allowed.
    """

    name: str
    kind: type
    optional: bool
    many: bool
    length: int | None
    least: int | None

    @property
    def expected(self) -> str:
        one = _NAMES.get(self.kind, "an object")
        return f"a list, each element {one}" if self.many else one


@cache
def _fields_of(own: type[Own]) -> tuple[_Field, ...]:
    return tuple(_field_of(name, info.annotation, info.metadata) for name, info in own.model_fields.items())


def _field_of(name: str, annotation: Any, metadata: list[Any]) -> _Field:  # noqa: ANN401 - annotations are any object
    optional = get_origin(annotation) is not tuple and NoneType in get_args(annotation)
    if optional:
        annotation = next(one for one in get_args(annotation) if one is not NoneType)
    many = get_origin(annotation) is tuple
    inner, *rest = get_args(annotation) if many else (annotation,)
    length = 1 + len(rest) if many and rest != [Ellipsis] else None
    least = next((one.ge for one in metadata if isinstance(one, Ge) and isinstance(one.ge, int)), None)
    return _Field(name, inner, optional, many, length, least)


class _Fitting:
    """One line on its way into a type."""

    def __init__(self, root: Mapping[str, Json], notes: Notes, misfits: list[Misfit]) -> None:
        self._root = root
        self._notes = notes
        self._misfits = misfits

    def fields(self, own: type[Own], value: Mapping[str, Json], at: tuple[Step, ...]) -> dict[str, Json]:
        """Return an object with exactly the fields of a type; those that came later stay absent."""
        later = {name for name, info in own.model_fields.items() if info.exclude_if is not None}
        fields = [field for field in _fields_of(own) if field.name in value or field.name not in later]
        for name in value.keys() - own.model_fields.keys():
            self._notes.kept[pointer((*at, name))] = value[name]
        return {
            one.name: self._value(one, value[one.name], (*at, one.name))
            if one.name in value
            else self._filled(own, one, at)
            for one in fields
        }

    def _filled(self, own: type[Own], wanted: _Field, at: tuple[Step, ...]) -> Json:
        """Return what stands for a field that is not there: what its place says, null or an empty list."""
        position = at[-1] if at and isinstance(at[-1], int) else 0
        by_place: dict[tuple[type[Own], str], Json] = {
            **{(part, "story_id"): self._root.get("story_id") for part in (Scene, Transition, Question)},
            (Scene, "scene_index"): position + 1,
            (Transition, "from_scene"): position + 1,
            (Transition, "to_scene"): position + 2,
        }
        here = (*at, wanted.name)
        if (own, wanted.name) in by_place:
            filling = by_place[own, wanted.name]
        elif wanted.optional or wanted.name in _MAY_BE_EMPTY:
            filling = None if wanted.optional else []
        else:
            return self._misfit(here, wanted, "no such field")
        self._notes.filled[pointer(here)] = filling
        return filling

    def _value(self, wanted: _Field, value: Json, at: tuple[Step, ...]) -> Json:
        if value is None and wanted.optional:
            return None
        if not wanted.many:
            return self._single(wanted, value, at)
        if wanted.length is None:
            return self._list(wanted, value, at)
        pair = _pair(value)
        if pair is None:
            return self._other(wanted, value, at)
        return value if _same(value, pair) else self._replace(at, value, pair)

    def _list(self, wanted: _Field, value: Json, at: tuple[Step, ...]) -> Json:
        if isinstance(value, list):
            return [self._single(wanted, one, (*at, position)) for position, one in enumerate(value)]
        if value is None and wanted.name in _MAY_BE_EMPTY:
            return self._replace(at, value, [])
        if wanted.kind is str and type(value) is str:
            return self._replace(at, value, [value])
        return self._misfit(at, wanted, show(value))

    def _single(self, wanted: _Field, value: Json, at: tuple[Step, ...]) -> Json:
        kind, least = wanted.kind, wanted.least
        if issubclass(kind, Own):
            if isinstance(value, dict):
                return self.fields(kind, value, at)
        elif kind is int:
            if _whole(value) and (least is None or value >= least):
                return value if type(value) is int else self._replace(at, value, int(value))
        elif type(value) is kind:
            return value
        return self._misfit(at, wanted, show(value)) if wanted.many else self._other(wanted, value, at)

    def _other(self, wanted: _Field, value: Json, at: tuple[Step, ...]) -> Json:
        """Set aside a value in a form that cannot be held, where null may stand for it."""
        return self._replace(at, value, None) if wanted.optional else self._misfit(at, wanted, show(value))

    def _replace(self, at: tuple[Step, ...], before: Json, now: Json) -> Json:
        self._notes.replaced[pointer(at)] = [before, now]
        return now

    def _misfit(self, at: tuple[Step, ...], wanted: _Field, found: str) -> Json:
        least = "" if wanted.least is None else f" of at least {wanted.least}"
        self._misfits.append(Misfit(pointer(at), f"{wanted.expected}{least}", found))
        return None


def _pair(value: Json) -> list[Json] | None:
    """Return two scene numbers from the forms that name a pair, else None."""
    if isinstance(value, dict):
        value = [value.get("from_scene"), value.get("to_scene")] if len(value) == 2 else None
    if isinstance(value, str):
        match = _NUMBERS.fullmatch(value)
        value = [int(match[1]), int(match[2])] if match else None
    if isinstance(value, list) and len(value) == 2 and all(map(_whole, value)):
        return [int(one) for one in value]
    return None


def _whole(value: Json) -> bool:
    return type(value) in (int, float) and abs(value) < _LARGE and value == int(value)


def plain(text: str) -> str:
    """Return a text from a package as it may be shown: on one line, without control characters, cut."""
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:197]}..."


class NoteCounts:
    """What was done to the lines of a package, field by field, with list positions taken together."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, file: str, notes: Notes) -> None:
        """Count the notes about one line."""
        for done in _DONE:
            for place in getattr(notes, done):
                where = f"/{place}" if done == "renamed" else re.sub(r"/\d+(?=/|$)", "/*", place)
                self._counts[file, where, done] += 1

    def rows(self) -> Iterator[dict[str, Json]]:
        """Yield file, field, what was done and how often, sorted."""
        for (file, where, done), count in sorted(self._counts.items()):
            yield {"file": file, "field": where, "done": done, "count": count}
