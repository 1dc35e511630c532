"""The flat tables of released shot scripts: stories, shots, characters and reference images."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schemas.shots import ShotRecord, TwoLists
from ..parquet import has_pictures
from ..tables import Declared, PictureCell, PlacedRow, Table, read_lines, row_of, table
from .tree import FOLDER, SHOT_SCRIPTS
from .tree import REFERENCES as REFERENCE_LINES

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training."""
_OF_STORY = {"story_id": ("stories", "story_id")}
_STORY: Declared = ("story_id", "text", "The story, by the name of its folder.")

STORIES = table(
    "stories", "One row per story.", "story_id",
    ("story_id", "text", "Name of the story's folder."),
    ("source_id", "text", "Id of the story that the script was made from.", "record.source_id"),
    ("story_type", "text", "Kind of the story, in English.", "script.story_type.en"),
    ("style", "text", "Visual style of the references (Table S1).", "facts.style"),
    ("culture", "text", "Cultural origin of the story.", "facts.culture"),
    ("realistic", "boolean", "Whether the references are photographs.", "facts.realistic"),
    ("shots", "integer", "How many shots it has."),
    ("characters", "integer", "How many characters."),
    ("references", "integer", "How many reference images are in the release."),
)  # fmt: skip
SHOTS = table(
    "shots", "One row per shot.", "story_id shot",
    _STORY,
    ("shot", "integer", "Number of the shot, from 1.", "shown.index"),
    ("plot_en", "text", "The part of the story that the shot tells, in English.", "shown.plot.en"),
    ("plot_ch", "text", "The part of the story that the shot tells, in Chinese.", "shown.plot.ch"),
    ("setting_en", "text", "The place, without any character, in English.", "shown.setting.en"),
    ("setting_ch", "text", "The place, without any character, in Chinese.", "shown.setting.ch"),
    (
        "perspective_en", "text", "Shot distance, camera angle, camera type, in English.",
        "shown.perspective.en",
    ),
    (
        "perspective_ch", "text", "Shot distance, camera angle, camera type, in Chinese.",
        "shown.perspective.ch",
    ),
    ("static_en", "text", "What is seen, as a still, in English.", "shown.static.en"),
    ("static_ch", "text", "What is seen, as a still, in Chinese.", "shown.static.ch"),
    ("characters", "texts", "Who is on stage, by key.", "shown.characters"),
    ("characters_ch", "texts", "Who is on stage, in Chinese; empty where nobody wrote it."),
    references=_OF_STORY,
)  # fmt: skip
CHARACTERS = table(
    "characters", "One row per character of a story.", "story_id character",
    _STORY,
    ("character", "text", "Key of the character."),
    ("tag", "text", "realistic_human, unrealistic_human or non_human.", "sheet.tag"),
    ("name_en", "text", "Name in English.", "sheet.name_en"),
    ("name_ch", "text", "Name in Chinese.", "sheet.name_ch"),
    ("prompt_en", "text", "Appearance and clothing, in English.", "sheet.prompt_en"),
    ("prompt_ch", "text", "Appearance and clothing, in Chinese.", "sheet.prompt_ch"),
    ("appearances", "integer", "Shots in which it is on stage."),
    ("gender", "text", "male, female or other; null where nobody said.", "known.gender"),
    ("ethnicity", "text", "Only where the author of the set gives it.", "known.ethnicity"),
    references=_OF_STORY,
)  # fmt: skip
REFERENCES = table(
    "references", "One row per reference image of the release.", "story_id file",
    _STORY,
    ("character", "text", "Key of the character."),
    ("file", "text", "Path of the image in the release."),
    ("sha256", "text", "Hash of the file."),
    ("width", "integer", "Pixels."),
    ("height", "integer", "Pixels."),
    ("source", "text", "Where the image comes from."),
    ("rights", "text", "On what ground it may be used."),
    references=_OF_STORY,
)  # fmt: skip
REFERENCE_IMAGES = table(
    "reference_images", "One row per reference image of the release, with the image itself.", "story_id file",
    _STORY,
    ("character", "text", "Key of the character."),
    ("file", "text", "Path of the image in the release."),
    ("image", "picture", "The image, byte for byte."),
    references=_OF_STORY, optional=True,
)  # fmt: skip
TABLES = (STORIES, SHOTS, CHARACTERS, REFERENCES, REFERENCE_IMAGES)


def script_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the scripts and reference images of a folder ask for, with its table and split."""
    images = list(read_lines(folder / FOLDER / REFERENCE_LINES))
    counts = Counter(image["story_id"] for image in images)
    for document in read_lines(folder / SHOT_SCRIPTS):
        for made, part in _parts(ShotRecord.model_validate(document), counts[document["story_id"]]):
            yield SPLIT, made, row_of(made, {"story_id": document["story_id"], **part})
    tables = [REFERENCES, *([REFERENCE_IMAGES] if has_pictures(folder, REFERENCE_IMAGES, SPLIT) else [])]
    for made in tables:
        for image in images:
            file = f"{FOLDER}/{image['story_id']}/{image['file']}"
            picture: PictureCell = {"path": file, "sha256": image["sha256"]}
            yield SPLIT, made, row_of(made, {**image, "file": file, "image": picture})


def _parts(record: ShotRecord, references: int) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield what makes each row of one record, of whose reference images a number is in the release."""
    script, facts = record.parsed(), record.facts
    counts = {
        "shots": len(script.shots),
        "characters": len(script.characters),
        "references": references,
    }
    yield STORIES, {"record": record, "script": script, "facts": facts, **counts}
    for shot in script.shots:
        yield SHOTS, {"shown": shot, "characters_ch": _chinese(shot.onstage)}
    shown = script.appearances()
    for name, sheet in script.characters.items():
        known = facts.characters.get(name)
        yield CHARACTERS, {"character": name, "sheet": sheet, "known": known, "appearances": shown[name]}


def _chinese(onstage: TwoLists | None) -> list[str]:
    return list(onstage.ch) if onstage is not None and isinstance(onstage.ch, tuple) else []
