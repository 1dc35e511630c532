"""Stage: the script in the other language of the format, with names and terms kept the same throughout.

Rules translate nothing: they keep what the author gave. Perspectives and story types need no translation.
"""

from pydantic import field_validator

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.shots import LANGUAGES
from .planner import PlannerSettings, Sketch, planner_of
from .translation import other_language, untranslated


class Settings(PlannerSettings):
    """Settings of the stage."""

    languages: tuple[str, ...] = LANGUAGES

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        if not languages or set(languages) - set(LANGUAGES):
            raise ValueError(f"languages are {' and '.join(LANGUAGES)}; Chinese is ch")
        return languages


SPEC = StageSpec(
    name="translate_script",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast", "onstage", "settings", "cameras", "statics"),
    writes=("translation", "translation_by"),
    settings=Settings,
    asks=("shots/translate_names", "shots/translate_shots"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the translation and who made it; null where nobody did."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    sketch = Sketch.of(item)
    language = other_language(sketch.base)
    drafted = None
    if language in settings.languages:
        drafted = await planner_of(tools).translate(sketch, language)
    if drafted is None:
        value = untranslated(sketch.cast, len(sketch.plot))
        return Made({"translation": value, "translation_by": None})
    return Made({"translation": drafted.value, "translation_by": drafted.maker})
