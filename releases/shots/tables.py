"""The flat tables of released shot scripts: stories, shots, characters and reference images."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...schemas.canonical import Json
from ...schemas.shots import ShotRecord, TwoLists
from ..layout import SHOT_SCRIPTS
from ..tables import Column, Kind, PlacedRow, Table, read_lines
from .tree import FOLDER
from .tree import REFERENCES as REFERENCE_LINES

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training."""
_OF_STORY = {"story_id": ("stories", "story_id")}


def _column(name: str, kind: Kind, description: str) -> Column:
    return Column(name, kind, (name,), description)


_STORY = _column("story_id", "text", "The story, by the name of its folder.")

STORIES = Table(
    "stories",
    "One row per story.",
    (
        _column("story_id", "text", "Name of the story's folder."),
        _column("source_id", "text", "Id of the story that the script was made from."),
        _column("story_type", "text", "Kind of the story, in English."),
        _column("style", "text", "Visual style of the references (Table S1)."),
        _column("culture", "text", "Cultural origin of the story."),
        _column("realistic", "boolean", "Whether the references are photographs."),
        _column("shots", "integer", "How many shots it has."),
        _column("characters", "integer", "How many characters."),
        _column("references", "integer", "How many reference images are in the release."),
    ),
    ("story_id",),
    {},
)
_TEXTS = (
    ("plot", "The part of the story that the shot tells"),
    ("setting", "The place, without any character"),
    ("perspective", "Shot distance, camera angle, camera type"),
    ("static", "What is seen, as a still"),
)
_LANGUAGES = (("en", "in English"), ("ch", "in Chinese"))
SHOTS = Table(
    "shots",
    "One row per shot.",
    (
        _STORY,
        _column("shot", "integer", "Number of the shot, from 1."),
        *(
            _column(f"{name}_{language}", "text", f"{text}, {words}.")
            for name, text in _TEXTS
            for language, words in _LANGUAGES
        ),
        _column("characters", "texts", "Who is on stage, by key."),
        _column("characters_ch", "texts", "Who is on stage, in Chinese; empty where nobody wrote it."),
    ),
    ("story_id", "shot"),
    _OF_STORY,
)
CHARACTERS = Table(
    "characters",
    "One row per character of a story.",
    (
        _STORY,
        _column("character", "text", "Key of the character."),
        _column("tag", "text", "realistic_human, unrealistic_human or non_human."),
        _column("name_en", "text", "Name in English."),
        _column("name_ch", "text", "Name in Chinese."),
        _column("prompt_en", "text", "Appearance and clothing, in English."),
        _column("prompt_ch", "text", "Appearance and clothing, in Chinese."),
        _column("appearances", "integer", "Shots in which it is on stage."),
        _column("gender", "text", "male, female or other; null where nobody said."),
        _column("ethnicity", "text", "Only where the author of the set gives it."),
    ),
    ("story_id", "character"),
    _OF_STORY,
)
REFERENCES = Table(
    "references",
    "One row per reference image of the release.",
    (
        _STORY,
        _column("character", "text", "Key of the character."),
        _column("file", "text", "Path of the image in the release."),
        _column("sha256", "text", "Hash of the file."),
        _column("width", "integer", "Pixels."),
        _column("height", "integer", "Pixels."),
        _column("source", "text", "Where the image comes from."),
        _column("rights", "text", "On what ground it may be used."),
    ),
    ("story_id", "file"),
    _OF_STORY,
)
TABLES = (STORIES, SHOTS, CHARACTERS, REFERENCES)


def script_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the scripts and reference images of a folder ask for, with its table and split."""
    images = list(read_lines(folder / FOLDER / REFERENCE_LINES))
    counts = Counter(image["story_id"] for image in images)
    for document in read_lines(folder / SHOT_SCRIPTS):
        for table, row in _story_rows(document, counts[document["story_id"]]):
            yield SPLIT, table, row
    for image in images:
        yield SPLIT, REFERENCES, _reference_row(image)


def _story_rows(document: Json, references: int) -> Iterator[tuple[Table, dict[str, Json]]]:
    """Yield the rows of one record, of whose reference images a number is in the release."""
    record = ShotRecord.model_validate(document)
    script, facts, key = record.parsed(), record.facts, {"story_id": record.story_id}
    yield (
        STORIES,
        {
            **key,
            "source_id": record.source_id,
            "story_type": None if script.story_type is None else script.story_type.en,
            "style": facts.style, "culture": facts.culture, "realistic": facts.realistic,
            "shots": len(script.shots), "characters": len(script.characters), "references": references,
        },
    )  # fmt: skip
    for shot in script.shots:
        row: dict[str, Json] = {**key, "shot": shot.index}
        for name, _ in _TEXTS:
            texts = getattr(shot, name)
            row |= {f"{name}_{one}": None if texts is None else getattr(texts, one) for one, _ in _LANGUAGES}
        row["characters"] = list(shot.characters)
        row["characters_ch"] = _chinese(shot.onstage)
        yield SHOTS, row
    counts = script.appearances()
    for name, sheet in script.characters.items():
        known = facts.characters.get(name)
        yield (
            CHARACTERS,
            {
                **key, "character": name, "tag": sheet.tag, "name_en": sheet.name_en,
                "name_ch": sheet.name_ch, "prompt_en": sheet.prompt_en, "prompt_ch": sheet.prompt_ch,
                "appearances": counts[name], "gender": None if known is None else known.gender,
                "ethnicity": None if known is None else known.ethnicity,
            },
        )  # fmt: skip


def _reference_row(image: Mapping[str, Json]) -> dict[str, Json]:
    return {
        **{name: image.get(name) for name in ("character", "sha256", "width", "height", "source", "rights")},
        "story_id": image["story_id"],
        "file": f"{FOLDER}/{image['story_id']}/{image['file']}",
    }


def _chinese(onstage: TwoLists | None) -> list[str]:
    return list(onstage.ch) if onstage is not None and isinstance(onstage.ch, tuple) else []
