"""Stage: the finished script in the official form, what is known beyond it, who made what, and findings."""

from collections.abc import Iterable, Mapping, Sequence

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.shots import CharacterFacts, ShotScript, StoryFacts
from ...validators.shots.plot_rules import check_plot
from ...validators.shots.script_rules import FIELDS, check_script
from .planner import Sketch
from .translation import other_language
from .words import camera_texts, story_type_texts

MAKERS = (
    "plot_by", "cast_by", "onstage_by", "settings_by", "cameras_by", "statics_by", "named_by",
    "translation_by",
    "labels_by",
)  # fmt: skip

SPEC = StageSpec(
    name="assemble_scripts",
    version=2,
    shape="map",
    reads=(
        "story", "analysis", "given", "number", "plot", "cast", "onstage", "settings", "cameras", "statics",
        "named", "translation", "labels", *MAKERS,
    ),
    writes=("record",),
)  # fmt: skip


def run(item: Item, tools: Tools) -> Outcome:  # noqa: ARG001 - the face of a stage
    """Return the record: number, script, order of the characters, facts, producers and findings.

    A character that is on stage in no shot is left out of the script.
    """
    sketch, labels = Sketch.of(item), item["labels"]
    translation = {**item["named"], **item["translation"]}
    present = {key for keys in sketch.onstage for key in keys}
    cast = [one for one in sketch.cast if one["key"] in present]
    script = ShotScript.model_validate(_script(sketch, cast, translation, labels["story_type"]))
    number = f"{item['number']:02d}"
    where = f"{number}/story.json"
    text = sketch.story["normalized_text"]
    issues = [*check_script(script, where), *check_plot(script, text, sketch.base, where)]
    facts = StoryFacts(
        story_id=number,
        style=labels["style"],
        culture=labels["culture"],
        realistic=labels["realistic"],
        characters={
            one["key"]: CharacterFacts(gender=one["gender"], ethnicity=one["ethnicity"]) for one in cast
        },
    )
    author = (item["given"] or {}).get("author")
    makers = {name: item[name] for name in MAKERS}
    return Made(
        {
            "record": {
                "number": number,
                "script": script.as_json(),
                "order": [one["key"] for one in cast],
                "facts": facts.as_json(),
                "producers": _producers(sketch.base, makers, author),
                "findings": [
                    _finding(issue.path, issue.code, issue.level, issue.message) for issue in issues
                ],
            }
        }
    )


def _script(sketch: Sketch, cast: Sequence[Json], translation: Json, story_type: str | None) -> Json:
    base, other = sketch.base, other_language(sketch.base)
    counts = {one["key"]: sum(one["key"] in keys for keys in sketch.onstage) for one in cast}

    def both(text: str | None, translated: str | None) -> dict[str, str | None]:
        return _in_order({base: text, other: translated})

    characters = {}
    for one in cast:
        key = one["key"]
        names = both(one["name"], translation["names"][key])
        # The key is the English name, unless the story has none.
        names["en"] = names["en"] if base == "en" else (names["en"] or (key if key.isascii() else None))
        prompts = both(one["prompt"], translation["prompts"][key])
        characters[key] = {
            "tag": one["tag"],
            "name_en": names["en"],
            "name_ch": names["ch"],
            "prompt_en": prompts["en"],
            "prompt_ch": prompts["ch"],
            "num_of_appearances": counts[key],
        }
    shots = []
    for place, keys in enumerate(sketch.onstage):
        chinese: list[str | None] = [characters[key]["name_ch"] for key in keys]
        shots.append(
            {
                "index": place + 1,
                FIELDS["plot"]: both(sketch.plot[place], translation["plot"][place]),
                FIELDS["setting"]: both(sketch.settings[place], translation["settings"][place]),
                FIELDS["perspective"]: camera_texts(sketch.cameras[place]),
                FIELDS["onstage"]: {"en": list(keys), "ch": None if None in chinese else chinese},
                FIELDS["static"]: both(sketch.statics[place], translation["statics"][place]),
            }
        )
    kind = story_type_texts(story_type)
    return {**({} if kind is None else {"Story_type": kind}), "Characters": characters, "Shots": shots}


def _in_order(texts: Mapping[str, str | None]) -> dict[str, str | None]:
    return {language: texts[language] for language in ("en", "ch")}


def _producers(base: str, makers: Mapping[str, str | None], author: str | None) -> list[Json]:
    """Return who made which field; what the author gave among them is the author's."""
    hand = f"hand:{author}" if author else None
    other = other_language(base)
    rows: list[tuple[str, str | None]] = [
        (f"$.Shots[*]['{FIELDS['plot']}'].{base}", makers["plot_by"]),
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


def _finding(path: str, code: str, level: str, message: str) -> Json:
    return {"path": path, "code": code, "level": level, "message": message}
