"""Hand-written parts of a record, and who made which field.

A hand-written record may hold any of ``narrative_type``, ``moral_label``, ``scenes``, ``transitions``,
``questions`` and ``variants``, and ``author`` (default: ``unnamed``). A list that is given replaces the
drafted one; in scenes and transitions, fields left out are filled by the planner.
"""

from collections.abc import Mapping, Sequence

from ...schemas.base import Own
from ...schemas.canonical import Json
from ...schemas.paths import parse_path

LISTS = ("scenes", "transitions", "questions", "variants")
LABELS = ("narrative_type", "moral_label")
MAKERS = ("scenes_by", "labels_by", "transitions_by", "questions_by", "variants_by")
"""Fields that say who drafted a part, or both labels; null where a person gave all of it."""
DEFAULT_AUTHOR = "unnamed"
_EVERY = 10**9


def given_list(given: Json, name: str) -> list[Json] | None:
    """Return a list of a hand-written record, or None where it gives none."""
    value = (given or {}).get(name)
    return None if value is None else list(value)


def given_label(given: Json, name: str) -> str | None:
    """Return a label of a hand-written record, or None."""
    value = (given or {}).get(name)
    return None if value is None else str(value)


def fill(given: Sequence[Json], drafted: Sequence[Json]) -> list[Json]:
    """Return the given elements, each with the fields that it leaves out taken from the drafted one."""
    return [{**draft, **element} for element, draft in zip(given, drafted, strict=True)]


def is_complete(given: Sequence[Json], kind: type[Own]) -> bool:
    """Return whether given elements leave nothing to draft."""
    return all(kind.model_fields.keys() <= element.keys() for element in given)


def person(given: Json) -> str:
    """Return the producer of a hand-written record."""
    return f"hand:{(given or {}).get('author', DEFAULT_AUTHOR)}"


def by_person(producer: str | None) -> bool:
    """Return whether a field was made by a person, or by nobody that is known."""
    return producer is None or producer == "author" or producer.startswith(("hand:", "edit:"))


def producers(
    draft: Mapping[str, Json], story: Json, given: Json, makers: Mapping[str, str | None]
) -> list[Json]:
    """Return who made each field of a draft, as compact paths.

    One entry per field: ``$.scenes[*].action`` where one producer made it in every scene, else one entry
    per element. Texts of the story itself (title, scene texts of given or drafted scenes) are covered too:
    the title is the author's; the division into scenes is the planner's or the person's.

    Args:
        draft: the parts.
        story: the story, whose author may have set labels.
        given: the hand-written record, if any.
        makers: the fields :data:`MAKERS`.
    """
    author = person(given)
    rows = [("$.title", "author")]
    rows += [(f"$.{name}", _label_producer(name, story, given, makers["labels_by"])) for name in LABELS]
    for name in LISTS:
        rows += _list_producers(name, draft[name], given_list(given, name), author, makers[f"{name}_by"])
    return [{"path": path, "producer": producer} for path, producer in rows]


def _label_producer(name: str, story: Json, given: Json, maker: str | None) -> str:
    if given_label(given, name) is not None:
        return person(given)
    return "author" if story.get(name) is not None else str(maker)


def _list_producers(
    name: str, elements: Sequence[Json], given: Sequence[Json] | None, author: str, maker: str | None
) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key in elements[0] if elements else ():
        makers = [
            author if given is not None and key in given[i] else str(maker) for i in range(len(elements))
        ]
        if len(set(makers)) == 1:
            rows.append((f"$.{name}[*].{key}", makers[0]))
        else:
            rows += [(f"$.{name}[{i}].{key}", maker) for i, maker in enumerate(makers)]
    return rows


def maker_of(path: str, made: Sequence[Json]) -> str | None:
    """Return who made what stands at a path, by the last entry about it or something around it, if any."""
    steps = parse_path(path)
    makers = [str(entry["producer"]) for entry in made if _covers(str(entry["path"]), steps)]
    return makers[-1] if makers else None


def _covers(path: str, steps: tuple[str | int, ...]) -> bool:
    # No list has so many elements: the number stands for "every element".
    entry = parse_path(path.replace("[*]", f"[{_EVERY}]"))
    pairs = zip(entry, steps, strict=False)
    return len(entry) <= len(steps) and all(own in (step, _EVERY) for own, step in pairs)
