"""Stage: what people corrected in the story's language, in the other language.

Only the corrected texts are asked for, and only where nobody gave or corrected their translation: all others
stay as they were translated before.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ..replies import Drafted
from .cast import Sketch
from .draft import SHEET, paths_of, sketch_of
from .translation import (
    FIELDS,
    TRANSLATE_NAMES,
    TRANSLATE_SCRIPT,
    TranslationSettings,
    other_language,
)

SPEC = StageSpec(
    name="translate_edits",
    version=3,
    shape="map",
    reads=("story", "analysis", "draft", "named_by", "translation_by"),
    writes=("completed", "completed_by"),
    settings=TranslationSettings,
    asks=("shots/translate_names", "shots/translate_shots"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return all texts in the other language, and who translated those that were asked for again."""
    settings, draft = tools.own(TranslationSettings), item["draft"]
    other: Json = {part: dict(texts) if isinstance(texts, dict) else list(texts)
             for part, texts in draft["other"].items()}  # fmt: skip
    made: list[Json] = []
    sketch = sketch_of(item.fields, draft)
    language = other_language(sketch.base)
    for parts, maker, ask in (
        (("names", "prompts"), item["named_by"], _names),
        (tuple(FIELDS), item["translation_by"], _shots),
    ):
        cells = [cell for cell in draft["stale"] if cell[0] in parts]
        wanted = bool(cells) and language in settings.languages
        drafted = await ask(tools, sketch, cells, other) if wanted else None
        if drafted is not None and drafted.value is not None:
            for part, key, path in paths_of(cells, language):
                other[part][key] = drafted.value[part][key]
                made.append({"path": path, "producer": drafted.maker})
        elif cells and maker is not None:
            paths = ", ".join(path for *_, path in paths_of(cells, language))
            return Failed(
                "no_translator",
                f"{maker} translated what was edited, and translate_edits asks nobody: set its planner and"
                f" model as for translate_script, or edit {paths} too",
            )
    return Made({"completed": other, "completed_by": made})


async def _names(tools: Tools, sketch: Sketch, cells: Sequence[Json], other: Json) -> Drafted[Json]:
    """Return ``names`` and ``prompts`` of the characters that have a text among the cells."""
    keys = {key for _, key in cells}
    cast = [
        {**character, **{given: None if [part, character["key"]] in cells else other[part][character["key"]]
                   for part, given in SHEET.values()}}
        for character in sketch.cast if character["key"] in keys
    ]  # fmt: skip
    return await TRANSLATE_NAMES.draft(replace(sketch, cast=cast), tools)


async def _shots(tools: Tools, sketch: Sketch, cells: Sequence[Json], other: Json) -> Drafted[Json]:
    """Return the parts of a translation, by shot, of the shots that have a text among the cells."""
    places = sorted({index for _, index in cells})
    parts: dict[str, Any] = {name: [getattr(sketch, name)[index] for index in places]
             for name in ("plot", "onstage", "settings", "cameras", "statics")}  # fmt: skip
    drafted = await TRANSLATE_SCRIPT.draft(replace(sketch, **parts, named=other), tools)
    if drafted.value is None:
        return drafted
    value = {part: dict(zip(places, drafted.value[part], strict=True)) for part in FIELDS}
    return Drafted(value, drafted.maker)
