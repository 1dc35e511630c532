"""The stages of the shot-script builder, in order, and the files that a finished run holds."""

from collections.abc import Iterable
from pathlib import Path

from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.shots.tree import FOLDER, SCRIPT, SHOT_SCRIPTS, STORIES, script_bytes
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.shots import ShotRecord, ShotScript
from ..step import added_fields, keeping_added, with_packages

STAGES = (
    f"{__package__}.load_stories",
    "fabula.builders.text.analyze_story",
    f"{__package__}.script_parts:PLAN_SCRIPT",
    f"{__package__}.script_parts:PLAN_SHOTS",
    f"{__package__}.write_characters",
    f"{__package__}.script_parts:PLACE_CHARACTERS",
    f"{__package__}.script_parts:DESCRIBE_SETTINGS",
    f"{__package__}.script_parts:DESIGN_PERSPECTIVES",
    f"{__package__}.script_parts:DESCRIBE_SHOTS",
    f"{__package__}.script_parts:NARRATE_PLOTS",
    f"{__package__}.translation:TRANSLATE_NAMES",
    f"{__package__}.translation:TRANSLATE_SCRIPT",
    f"{__package__}.script_parts:CLASSIFY_STORY",
    f"{__package__}.apply_edits",
    f"{__package__}.translate_edits",
    f"{__package__}.assemble_scripts",
)

PRODUCERS, FINDINGS = "producers.jsonl", "findings.jsonl"
"""Who made which field of a script, and what the rules found in it: one line for each story."""
SPANS = "spans.jsonl"
"""The words of the story that each shot tells, where plots are narration and dialogue; else no such file."""

_ADDED = added_fields("shots", STAGES)

PIPELINE = Pipeline(
    name="shots",
    stages=with_packages("shots", STAGES, before="apply_edits"),
    finish=f"{__name__}:finish",
    final_fields=_ADDED,
    identity=f"{__package__}.load_stories:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the official tree, the facts beside it, who made what, and what the rules found.

    Reference images that were put into the tree stay. The script of a story that is no longer built goes.
    """
    tree = folder / FOLDER
    tree.mkdir(exist_ok=True)
    drafted = keeping_added(folder, items, _ADDED)
    records = sorted(((item.id, item["record"]) for item in drafted), key=lambda pair: int(pair[1]["number"]))
    for _, record in records:
        folder_ = tree / record["number"]
        folder_.mkdir(exist_ok=True)
        write_atomic(folder_ / SCRIPT, [script_bytes(_script(record))])
    built = {record["number"] for _, record in records}
    for folder_ in tree.iterdir():
        if folder_.name.isdecimal() and folder_.name not in built:
            (folder_ / SCRIPT).unlink(missing_ok=True)
            if not any(folder_.iterdir()):
                folder_.rmdir()
    write_atomic(tree / STORIES, jsonl_lines([record["facts"] for _, record in records]))
    write_atomic(folder / SHOT_SCRIPTS, jsonl_lines(_line(key, record) for key, record in records))
    for name, field in ((PRODUCERS, "producers"), (FINDINGS, "findings")):
        rows = [{"id": key, "story_id": record["number"], field: record[field]} for key, record in records]
        write_atomic(folder / name, jsonl_lines(rows))
    narrated = [
        {"id": key, "story_id": record["number"], "spans": record["spans"]}
        for key, record in records
        if "spans" in record
    ]
    if narrated:
        write_atomic(folder / SPANS, jsonl_lines(narrated))
    else:
        (folder / SPANS).unlink(missing_ok=True)


def _line(key: str, record: Json) -> Json:
    """Return what ``scripts.jsonl`` has of a story."""
    return ShotRecord(
        story_id=record["number"],
        source_id=key,
        order=tuple(record["order"]),
        script=_script(record).as_json(),
        facts=record["facts"],
        producers=tuple(record["producers"]),
    ).as_json()


def _script(record: Json) -> ShotScript:
    """Return a record's script, its characters in the order of the cast; stored objects have none."""
    script = record["script"]
    characters = {key: script["Characters"][key] for key in record["order"]}
    return ShotScript.model_validate({**script, "Characters": characters})
