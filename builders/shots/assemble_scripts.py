"""Stage: the finished script in the official form, what is known beyond it, who made what, and findings."""

from collections.abc import Iterable, Mapping

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.layout import WITHDRAWN
from ...schemas.shots import CharacterFacts, ShotScript, StoryFacts
from ...validators.shots.script_rules import FIELDS, check_plot, check_script
from .draft import official_script, sketch_of
from .translation import other_language

MAKERS = (
    "plot_by", "cast_by", "onstage_by", "settings_by", "cameras_by", "statics_by", "named_by",
    "translation_by", "labels_by", "narration_by",
)  # fmt: skip

SPEC = StageSpec(
    name="assemble_scripts",
    version=4,
    shape="map",
    reads=(
        "story", "analysis", "given", "number", "withdrawn", "draft", "completed", "completed_by", *MAKERS,
    ),
    writes=("record",),
    reject_codes={WITHDRAWN: "It was withdrawn; its id is not used again."},
)  # fmt: skip


def run(item: Item, tools: Tools) -> Outcome:
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
