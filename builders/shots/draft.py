"""A script while it is corrected: its parts, and the form in which people see and name them.

A draft is plain JSON: the parts ``plot``, ``settings``, ``statics``, ``cameras``, ``onstage`` and ``cast`` of
:class:`.cast.Sketch`, ``labels``, and ``other``, the texts in the other language: ``names``, ``prompts``
by the key of the character, and ``plot``, ``settings`` and ``statics`` by shot. Beside them

- ``spans``: the story's own words of each shot, where ``plot`` is narration and dialogue; else not there;
- ``edits``: who corrected which path, in order;
- ``stale``: texts in the other language that are to be asked for again, each as part and place;
- ``settled``: those that a person gave or corrected, which therefore never are.
"""

from collections.abc import Iterator, Mapping, Sequence

from ...schemas.canonical import Json
from ...schemas.paths import quoted_path
from ...validators.shots.script_rules import FIELDS
from .cast import Sketch, camera_texts, story_type_texts
from .translation import other_language


def official_script(base: str, draft: Json, cast: Sequence[Json], story_type: str | None = None) -> Json:
    """Return the content of ``story.json``."""
    other, translated = other_language(base), draft["other"]
    counts = {person["key"]: sum(person["key"] in keys for keys in draft["onstage"]) for person in cast}

    def both(text: str | None, translation: str | None) -> dict[str, str | None]:
        return {language: {base: text, other: translation}[language] for language in ("en", "ch")}

    characters = {}
    for member in cast:
        key = member["key"]
        names = both(member["name"], translated["names"][key])
        # The key is the English name, unless the story has none.
        names["en"] = names["en"] if base == "en" else (names["en"] or (key if key.isascii() else None))
        prompts = both(member["prompt"], translated["prompts"][key])
        characters[key] = {
            "tag": member["tag"],
            "name_en": names["en"],
            "name_ch": names["ch"],
            "prompt_en": prompts["en"],
            "prompt_ch": prompts["ch"],
            "num_of_appearances": counts[key],
        }
    shots = []
    for index, keys in enumerate(draft["onstage"]):
        chinese: list[str | None] = [characters[key]["name_ch"] for key in keys]
        shots.append(
            {
                "index": index + 1,
                FIELDS["plot"]: both(draft["plot"][index], translated["plot"][index]),
                FIELDS["setting"]: both(draft["settings"][index], translated["settings"][index]),
                FIELDS["perspective"]: camera_texts(draft["cameras"][index]),
                FIELDS["onstage"]: {"en": list(keys), "ch": None if None in chinese else chinese},
                FIELDS["static"]: both(draft["statics"][index], translated["statics"][index]),
            }
        )
    kind = story_type_texts(story_type)
    return {**({} if kind is None else {"Story_type": kind}), "Characters": characters, "Shots": shots}


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
    """Return the draft as the planner and the author made it."""
    given = [
        [part, person["key"]] for person in fields["cast"] for part, name in SHEET.values() if person[name]
    ]
    narration = fields["narration"]
    return {
        **{name: fields[name] for name in PARTS},
        **({} if narration is None else {"plot": narration, "spans": fields["plot"]}),
        "other": {**fields["named"], **fields["translation"]},
        "edits": [],
        "stale": [],
        "settled": given,
    }


def sketch_of(fields: Mapping[str, Json], draft: Json) -> Sketch:
    """Return a draft as planners see it."""
    parts = {name: draft[name] for name in PARTS if name != "labels"}
    return Sketch(fields["story"], fields["analysis"], **parts)


def editable_form(draft: Json, base: str) -> Json:
    """Return what can be corrected, by the names of ``story.json``: ``Characters``, ``Shots``, ``labels``.

    All characters of the cast are there, on stage or not, with gender and ethnicity beside their sheets.
    """
    script = official_script(base, draft, draft["cast"])
    for character in draft["cast"]:
        script["Characters"][character["key"]] |= {name: character[name] for name in ("gender", "ethnicity")}
    return {**script, "labels": draft["labels"]}


def paths_of(cells: Json, language: str) -> Iterator[tuple[str, str | int, str]]:
    """Yield part, place and official path of texts in a language."""
    fields = {part: name for name, part in TEXTS.items()}
    sheets = {part: name for name, (part, _) in SHEET.items()}
    for part, key in cells:
        if part in fields:
            yield part, key, quoted_path(("Shots", key, fields[part], language))
        else:
            yield part, key, quoted_path(("Characters", key, f"{sheets[part]}_{language}"))
