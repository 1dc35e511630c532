"""A script's texts in the other language of the format: what there is to translate, and what came of it.

Names are translated first: ``names`` and ``prompts``, key of a character -> text or null. With them the
texts: ``plot``, ``settings``, ``statics``, one text or null for each shot. Perspectives and story types are
not translated: both languages have their words for them in lists.
"""

from collections.abc import Sequence

from pydantic import field_validator

from ...schemas.canonical import Json
from ...schemas.shots import LANGUAGES
from .planner import PlannerSettings

PARTS = ("plot", "settings", "statics")
"""Lists of a translation with one text for each shot."""


class TranslationSettings(PlannerSettings):
    """Settings of the stages that translate."""

    languages: tuple[str, ...] = LANGUAGES

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if not languages or set(languages) - set(LANGUAGES):
            raise ValueError(f"languages are {' and '.join(LANGUAGES)}; Chinese is ch")
        return languages


def other_language(base: str) -> str:
    """Return the other language of the format."""
    return "ch" if base == "en" else "en"


def names_given(cast: Sequence[Json]) -> Json:
    """Return the names and descriptions that authors gave in the other language."""
    return {
        "names": {one["key"]: one["other_name"] for one in cast},
        "prompts": {one["key"]: one["other_prompt"] for one in cast},
    }


def untranslated(shots: int) -> Json:
    """Return texts of shots of which none is translated."""
    return {name: [None] * shots for name in PARTS}
