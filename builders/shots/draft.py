"""A script while it is corrected: its parts, and the form in which people see and name them.

A draft is plain JSON: the parts ``plot``, ``settings``, ``statics``, ``cameras``, ``onstage`` and ``cast`` of
:class:`.cast.Sketch`, ``labels``, and ``other``, the texts in the other language: ``names``, ``prompts``
by the key of the character, and ``plot``, ``settings`` and ``statics`` by shot. Beside them

- ``edits``: who corrected which path, in order;
- ``stale``: texts in the other language that are to be asked for again, each as part and place;
- ``settled``: those that a person gave or corrected, which therefore never are.
"""

from collections.abc import Iterator, Mapping

from ...schemas.canonical import Json
from ...schemas.quoted_paths import quoted_path
from ...validators.shots.script_rules import FIELDS
from .cast import Sketch
from .official import official_script

PARTS = ("plot", "cast", "onstage", "settings", "cameras", "statics", "labels")
"""The fields of an item that a draft takes over as they are."""
TEXTS: Mapping[str, str] = {
    FIELDS["plot"]: "plot",
    FIELDS["setting"]: "settings",
    FIELDS["static"]: "statics",
}
"""Official name of a field of a shot that is a text -> its part."""
SHEET: Mapping[str, tuple[str, str]] = {
    "name": ("names", "other_name"),
    "prompt": ("prompts", "other_prompt"),
}
"""Text of a character -> its part in the other language, and what an author gave there."""


def make_draft(fields: Mapping[str, Json]) -> Json:
    """Return the draft as the planner and the author made it.

    Args:
        fields: those of the item: :data:`PARTS`, ``named`` and ``translation``.
    """
    given = [[part, one["key"]] for one in fields["cast"] for part, name in SHEET.values() if one[name]]
    return {
        **{name: fields[name] for name in PARTS},
        "other": {**fields["named"], **fields["translation"]},
        "edits": [],
        "stale": [],
        "settled": given,
    }


def sketch_of(fields: Mapping[str, Json], draft: Json) -> Sketch:
    """Return a draft as planners see it.

    Args:
        fields: ``story`` and ``analysis`` of the item.
        draft: what :func:`make_draft` returned, corrected or not.
    """
    parts = {name: draft[name] for name in PARTS if name != "labels"}
    return Sketch(fields["story"], fields["analysis"], **parts)


def editable_form(draft: Json, base: str) -> Json:
    """Return what can be corrected, by the names of ``story.json``: ``Characters``, ``Shots``, ``labels``.

    All characters of the cast are there, on stage or not, with gender and ethnicity beside their sheets.
    """
    script = official_script(base, draft, draft["cast"])
    for one in draft["cast"]:
        script["Characters"][one["key"]] |= {name: one[name] for name in ("gender", "ethnicity")}
    return {**script, "labels": draft["labels"]}


def paths_of(cells: Json, language: str) -> Iterator[tuple[str, str | int, str]]:
    """Yield part, place and official path of texts in a language."""
    fields = {part: name for name, part in TEXTS.items()}
    sheets = {part: name for name, (part, _) in SHEET.items()}
    for part, place in cells:
        if part in fields:
            yield part, place, quoted_path(("Shots", place, fields[part], language))
        else:
            yield part, place, quoted_path(("Characters", place, f"{sheets[part]}_{language}"))
