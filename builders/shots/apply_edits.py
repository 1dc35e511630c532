"""Stage: the corrections of people (``edits.jsonl``), put into the drafted script.

An edit replaces the value at a path of ``story.json``, such as ``$.Shots[2]['Setting Description'].en`` or
``$.Characters.Mira.prompt_ch``; ``labels`` (story type, culture, style, realistic) and a character's gender
and ethnicity can be corrected beside it. What the editor saw there must still be there. The number of shots
and the characters stay; numbers and counts are never edited.

A perspective holds for both languages, whichever it is given in, and so does who is on stage. Where a text in
the story's language is corrected, its translation is asked for again, unless a person gave or corrected that
as well. The plot of a shot may be edited only so that the plots still are the story, in order.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools, stage
from ...schemas.canonical import Json, canonical_text
from ...schemas.paths import Steps, parse_quoted, quoted_path, value_at, with_value
from ...schemas.values import vocabulary
from ...validators.shots.script_rules import FIELDS, read_camera
from ..drafting import Refused
from ..step import Drafted
from ..text.boundaries import scene_spans
from .cast import (
    MOST_ONSTAGE,
    TRANSLATE_NAMES,
    TRANSLATE_SCRIPT,
    TRANSLATED,
    Sketch,
    TranslationSettings,
    base_language,
    by_key,
    other_language,
)
from .draft import PARTS, SHEET, TEXTS, editable_form, make_draft, paths_of, sketch_of
from .load_stories import LABELS

SPEC = StageSpec(
    name="apply_edits",
    version=1,
    shape="map",
    reads=("story", "edits", *PARTS, "narration", "named", "translation"),
    writes=("draft",),
)
_DEPTH = {"Shots": 4, "Characters": 3, "labels": 2}
_ONE = (
    "correct one field at a time, such as $.Shots[0]['Setting Description'].en,"
    " $.Characters.KEY.prompt_en or $.labels.style"
)
_FIXED = "numbers, counts and keys cannot be edited"


def run(item: Item, tools: Tools) -> Outcome:
    """Return the draft with all edits applied; see :mod:`.draft`."""
    draft, base = make_draft(item.fields), base_language(item["story"]) or "en"
    try:
        for edit in item["edits"]:
            draft = apply_edit(draft, edit, base)
        text, verbatim = item["story"]["normalized_text"], "spans" not in draft
        if item["edits"] and verbatim and scene_spans(text, draft["plot"]) is None:
            raise Refused(
                "after the edits, the plots no longer are the story in order; the end of a shot moves by two"
                " edits, and the text itself cannot be edited: correct the source file"
            )
    except Refused as refusal:
        return Failed("bad_edit", str(refusal))
    return Made({"draft": draft})


def apply_edit(draft: Json, edit: Json, base: str) -> Json:
    where = f"edit of {edit['path']} by {edit['who']}"
    form, new = editable_form(draft, base), copy.deepcopy(draft)
    try:
        steps = parse_quoted(edit["path"])
        field = _field(steps, form)
        _check_old(draft, edit, form, steps, base)
        value = value_at(with_value(form, steps, edit["new"]), field)
        path = _put(new, field, value, base)
    except ValueError as error:
        raise Refused(f"{where}: {error}") from error
    new["edits"].append({"path": path, "producer": f"edit:{edit['who']}"})
    return new


def _field(steps: Steps, form: Json) -> Steps:
    """Return the steps of the field that an edit changes."""
    depth = _DEPTH.get(str(steps[0])) if steps else None
    if depth is None or len(steps) < depth:
        if steps[:1] == ("Story_type",):
            raise ValueError("the story type is corrected at $.labels.story_type, for both languages")
        raise ValueError(_FIXED if steps[-1:] == ("index",) else f"no field that can be edited; {_ONE}")
    try:
        value_at(form, steps)
    except LookupError as error:
        keys = ", ".join(form["Characters"]) or "none"
        raise ValueError(
            f"nothing is there; the script has {len(form['Shots'])} shots, counted from 0, with the fields"
            f" {', '.join(FIELDS.values())}, and the characters {keys}"
        ) from error
    if steps[-1] == "num_of_appearances":
        raise ValueError(_FIXED)
    return steps[:depth]


def _check_old(draft: Json, edit: Json, form: Json, steps: Steps, base: str) -> None:
    current = value_at(form, steps)
    if current is None and list(_cell(steps, base) or ()) in draft["stale"]:
        return  # a translation that is asked for again: the editor may have seen one
    if current != edit["old"] or type(current) is not type(edit["old"]):
        old, now = canonical_text(edit["old"])[:200], canonical_text(current)[:200]
        raise ValueError(f"expected the old value {old}, found {now}; write the edit against the value found")


def _cell(steps: Steps, base: str) -> tuple[str, str | int] | None:
    """Return part and place of a text in the language that is not the story's; None for other fields."""
    if steps[0] == "Shots" and steps[2] in TEXTS:
        return (TEXTS[str(steps[2])], steps[1]) if steps[3] != base else None
    name, _, language = str(steps[-1]).partition("_")
    return (SHEET[name][0], steps[1]) if steps[0] == "Characters" and language not in ("", base) else None


def _put(draft: Json, field: Steps, value: Json, base: str) -> str:
    """Put a value into a draft, and return the path that it is then told of."""
    if field[0] == "labels":
        name = str(field[1])
        draft["labels"][name] = _label(name, value)
        return "$.Story_type" if name == "story_type" else quoted_path(field)
    if field[0] == "Characters":
        _put_sheet(draft, str(field[1]), str(field[2]), value, base)
        return quoted_path(field)
    index, name, language = int(field[1]), str(field[2]), str(field[3])
    if name == FIELDS["perspective"]:
        draft["cameras"][index] = _camera(value)
        return quoted_path(field[:3])
    if name == FIELDS["onstage"]:
        draft["onstage"][index] = _onstage(draft, value, language, base)
        return quoted_path(field[:3])
    part, text = TEXTS[name], _text(value)
    if language == base:
        draft[part][index] = text
    _settle(draft, part, index, None if language == base else text)
    return quoted_path(field)


def _put_sheet(draft: Json, key: str, name: str, value: Json, base: str) -> None:
    character = by_key(draft["cast"])[key]
    if name in ("tag", "gender"):
        character[name] = _word({"tag": "character_tag", "gender": "gender"}[name], value, name == "gender")
        return
    if name == "ethnicity":
        character[name] = None if value is None else _text(value)
        return
    kind, _, language = name.partition("_")
    text = _text(value)
    if language == base:
        character[kind] = text
    _settle(draft, SHEET[kind][0], key, None if language == base else text)


def _settle(draft: Json, part: str, key: str | int, text: str | None) -> None:
    """Put in a text of the other language, or none: then the translation is asked for, if nobody gave one."""
    cell = [part, key]
    if text is not None:
        draft["settled"] = [*(other for other in draft["settled"] if other != cell), cell]
        draft["stale"] = [other for other in draft["stale"] if other != cell]
    elif cell not in draft["settled"]:
        draft["stale"] = [*(other for other in draft["stale"] if other != cell), cell]
    else:
        return
    draft["other"][part][key] = text


def _text(value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text, found {canonical_text(value)[:80]}")
    return value


def _word(name: str, value: Json, may_lack: bool = True) -> str | None:
    if value is None and may_lack:
        return None
    words = vocabulary(name).values
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"expected one of {', '.join(words)}, found {canonical_text(value)[:80]}")
    return value


def _label(name: str, value: Json) -> Json:
    if name in LABELS:
        return _word(LABELS[name], value)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"expected true, false or null, found {canonical_text(value)[:80]}")
    return value


def _camera(value: Json) -> Json:
    camera = read_camera(_text(value))
    if camera.unknown:
        raise ValueError(f"{', '.join(camera.unknown)} is no shot distance, camera angle or camera type")
    if camera.distance is None:
        distances = vocabulary("shot_distance").values
        raise ValueError(f"a perspective names a shot distance: one of {', '.join(distances)}")
    return {"distance": camera.distance, "angle": camera.angle, "type": camera.type}


def _onstage(draft: Json, value: Json, language: str, base: str) -> list[str]:
    sheets = editable_form(draft, base)["Characters"]
    names = {key if language == "en" else sheet["name_ch"]: key for key, sheet in sheets.items()}
    if not isinstance(value, list) or len(value) > MOST_ONSTAGE:
        raise ValueError(f"expected a list of 0 to {MOST_ONSTAGE}, found {canonical_text(value)[:80]}")
    unknown = [str(name) for name in value if not isinstance(name, str) or name not in names]
    if unknown:
        listed = ", ".join(str(name) for name in names if name is not None)
        raise ValueError(f"{', '.join(unknown)[:80]} is no character; there are {listed or 'none'}")
    keys = [names[name] for name in value]
    if len(set(keys)) < len(keys):
        raise ValueError("one character twice")
    return keys


# -- Stage: what people corrected in the story's language, in the other language
#
# Only the corrected texts are asked for, and only where nobody gave or corrected their translation: all
# others stay as they were translated before.


@stage(
    version=3,
    reads=("story", "analysis", "draft", "named_by", "translation_by"),
    writes=("completed", "completed_by"),
    settings=TranslationSettings,
    asks=("shots/translate_names", "shots/translate_shots"),
)
async def translate_edits(item: Item, tools: Tools) -> Outcome:
    """Return all texts in the other language, and who translated those that were asked for again."""
    settings, draft = tools.own(TranslationSettings), item["draft"]
    other: Json = {part: dict(texts) if isinstance(texts, dict) else list(texts)
             for part, texts in draft["other"].items()}  # fmt: skip
    made: list[Json] = []
    sketch = sketch_of(item.fields, draft)
    language = other_language(sketch.base)
    for parts, maker, ask in (
        (("names", "prompts"), item["named_by"], _names),
        (tuple(TRANSLATED), item["translation_by"], _shots),
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
    value = {part: dict(zip(places, drafted.value[part], strict=True)) for part in TRANSLATED}
    return Drafted(value, drafted.maker)
