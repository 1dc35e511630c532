"""Stage: names and descriptions of the characters in the other language; names that authors give stand."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .planner import Sketch, planner_of
from .translation import TranslationSettings, names_given, other_language

SPEC = StageSpec(
    name="translate_names",
    version=1,
    shape="map",
    reads=("story", "analysis", "cast"),
    writes=("named", "named_by"),
    settings=TranslationSettings,
    asks=("shots/translate_names",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the names and who translated them; null maker where nobody translated."""
    settings = tools.settings
    assert isinstance(settings, TranslationSettings)
    sketch = Sketch.of(item)
    language = other_language(sketch.base)
    drafted = None
    if language in settings.languages:
        drafted = await planner_of(tools).translate_names(sketch, language)
    if drafted is None:
        return Made({"named": names_given(sketch.cast), "named_by": None})
    return Made({"named": drafted.value, "named_by": drafted.maker})
