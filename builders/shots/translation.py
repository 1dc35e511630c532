"""A script's texts in the other language of the format: what there is to translate, and what came of it.

A translation is plain JSON: ``names`` and ``prompts`` (key of a character -> text or null) and ``plot``,
``settings``, ``statics`` (one text or null for each shot). Perspectives and story types are not translated:
both languages have their words for them in lists.
"""

from collections.abc import Sequence

from ...schemas.canonical import Json

PARTS = ("plot", "settings", "statics")
"""Lists of a translation with one text for each shot."""


def other_language(base: str) -> str:
    """Return the other language of the format."""
    return "ch" if base == "en" else "en"


def untranslated(cast: Sequence[Json], shots: int) -> Json:
    """Return a translation that holds what authors gave of it, and nothing else."""
    return {
        "names": {one["key"]: one["other_name"] for one in cast},
        "prompts": {one["key"]: one["other_prompt"] for one in cast},
        **{name: [None] * shots for name in PARTS},
    }
