"""A script while it is corrected: its parts, and the form in which people see and name them.

A draft is plain JSON: the parts ``plot``, ``settings``, ``statics``, ``cameras``, ``onstage`` and ``cast`` of
:class:`.cast.Sketch`, ``labels``, and ``other``, the texts in the other language: ``names``, ``prompts``
by the key of the character, and ``plot``, ``settings`` and ``statics`` by shot. Beside them

- ``spans``: the story's own words of each shot, where ``plot`` is narration and dialogue; else not there;
- ``edits``: who corrected which path, in order;
- ``stale``: texts in the other language that are to be asked for again, each as part and place;
- ``settled``: those that a person gave or corrected, which therefore never are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...engine.stage import Item, Made, Outcome, Rejected, Tools, stage
from ...schemas.canonical import Json
from ...schemas.paths import WITHDRAWN, quoted_path
from ...schemas.shots import CharacterFacts, ShotScript, StoryFacts
from ...validators.shots.script_rules import FIELDS, check_plot, check_script
from .cast import Sketch, camera_texts, other_language, story_type_texts


def official_script(base: str, draft: Json, cast: Sequence[Json], story_type: str | None = None) -> Json:
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


# -- Stage: the finished script in the official form, what is known beyond it, who made what, and findings

MAKERS = (
    "plot_by", "cast_by", "onstage_by", "settings_by", "cameras_by", "statics_by", "named_by",
    "translation_by", "labels_by", "narration_by",
)  # fmt: skip


@stage(
    version=4,
    reads=(
        "story",
        "analysis",
        "given",
        "number",
        "withdrawn",
        "draft",
        "completed",
        "completed_by",
        *MAKERS,
    ),
    writes=("record",),
    reject_codes={WITHDRAWN: "It was withdrawn; its id is not used again."},
)
def assemble_scripts(item: Item, tools: Tools) -> Outcome:
    """Return the record: number, script, order of the characters, facts, producers and findings.

    A character that is on stage in no shot is left out of the script.
    """
    if item["withdrawn"] is not None:
        return Rejected(WITHDRAWN, item["withdrawn"]["why"])
    draft = {**item["draft"], "other": item["completed"]}
    sketch, labels = sketch_of(item.fields, draft), draft["labels"]
    present = {key for keys in sketch.onstage for key in keys}
    cast = [member for member in sketch.cast if member["key"] in present]
    script = ShotScript.model_validate(official_script(sketch.base, draft, cast, labels["story_type"]))
    number = f"{item['number']:02d}"
    where = f"{number}/story.json"
    text = sketch.story["normalized_text"]
    spans = draft.get("spans")
    issues = list(check_script(script, where))
    if spans is None:
        issues += check_plot(script, text, sketch.base, where)
    facts = StoryFacts(
        story_id=number,
        style=labels["style"],
        culture=labels["culture"],
        realistic=labels["realistic"],
        characters={
            member["key"]: CharacterFacts(gender=member["gender"], ethnicity=member["ethnicity"])
            for member in cast
        },
    )
    author = (item["given"] or {}).get("author")
    makers = {name: item[name] for name in MAKERS}
    return Made(
        {
            "record": {
                "number": number,
                "script": script.as_json(),
                "order": [member["key"] for member in cast],
                "facts": facts.as_json(),
                "producers": [
                    *_producers(sketch.base, makers, author),
                    *draft["edits"],
                    *item["completed_by"],
                ],
                "findings": [
                    {"path": issue.path, "code": issue.code, "level": issue.level, "message": issue.message}
                    for issue in issues
                ],
                **({} if spans is None else {"spans": spans}),
            }
        }
    )


def _producers(base: str, makers: Mapping[str, str | None], author: str | None) -> list[Json]:
    """Return who made which field; what the author gave among them is the author's."""
    hand = f"hand:{author}" if author else None
    other = other_language(base)
    rows: list[tuple[str, str | None]] = [
        (f"$.Shots[*]['{FIELDS['plot']}'].{base}", makers["narration_by"] or makers["plot_by"]),
        (f"$.Shots[*]['{FIELDS['setting']}'].{base}", makers["settings_by"]),
        (f"$.Shots[*]['{FIELDS['perspective']}']", makers["cameras_by"]),
        (f"$.Shots[*]['{FIELDS['onstage']}']", makers["onstage_by"]),
        (f"$.Shots[*]['{FIELDS['static']}'].{base}", makers["statics_by"]),
        ("$.Characters[*]", makers["cast_by"] or hand),
        (f"$.Characters[*].name_{other}", makers["named_by"]),
        (f"$.Characters[*].prompt_{other}", makers["named_by"]),
        ("$.Story_type", makers["labels_by"] or hand),
        *((f"$.Shots[*]['{FIELDS[name]}'].{other}", makers["translation_by"]) for name in _TRANSLATED),
    ]
    return [{"path": path, "producer": producer} for path, producer in _made(rows)]


_TRANSLATED = ("plot", "setting", "static")


def _made(rows: Iterable[tuple[str, str | None]]) -> list[tuple[str, str]]:
    return [(path, maker) for path, maker in rows if maker is not None]
