"""Stage: the texts of the shots in the other language, with the names as they were translated.

Rules translate nothing. Perspectives and story types need no translation.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import Sketch, planner_of
from .translation import TranslationSettings, other_language, untranslated

SPEC = StageSpec(
    name="translate_script",
    version=1,
    shape="map",
    reads=("story", "analysis", "plot", "cast", "onstage", "settings", "cameras", "statics", "named"),
    writes=("translation", "translation_by"),
    settings=TranslationSettings,
    asks=("shots/translate_shots",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the texts and who translated them; null maker where nobody translated."""
    settings = tools.settings
    assert isinstance(settings, TranslationSettings)
    sketch = Sketch.of(item)
    language = other_language(sketch.base)
    drafted = None
    if language in settings.languages:
        drafted = await planner_of(tools).translate(sketch, item["named"]["names"], language)
    if drafted is None:
        return Made({"translation": untranslated(len(sketch.plot)), "translation_by": None})
    return Made({"translation": drafted.value, "translation_by": drafted.maker})
