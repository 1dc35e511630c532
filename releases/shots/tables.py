"""The flat tables of released shot scripts: stories, shots, characters and reference images."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, TypedDict

from ...schemas.canonical import Json
from ...schemas.shots import ShotRecord, TwoLists
from ..parquet import has_pictures
from ..tables import PictureCell, PlacedRow, Table, read_lines, table_of
from .tree import FOLDER, SHOT_SCRIPTS
from .tree import REFERENCES as REFERENCE_LINES

SPLIT = "test"
"""The one split that ``datasets`` sees: nothing in it is for training."""
_OF_STORY = {"story_id": ("stories", "story_id")}
_OfStory = Annotated[str, "The story, by the name of its folder."]


class StoryRow(TypedDict):
    """One row per story."""

    story_id: Annotated[str, "Name of the story's folder."]
    source_id: Annotated[str, "Id of the story that the script was made from."]
    story_type: Annotated[str, "Kind of the story, in English."]
    style: Annotated[str, "Visual style of the references (Table S1)."]
    culture: Annotated[str, "Cultural origin of the story."]
    realistic: Annotated[bool, "Whether the references are photographs."]
    shots: Annotated[int, "How many shots it has."]
    characters: Annotated[int, "How many characters."]
    references: Annotated[int, "How many reference images are in the release."]


class ShotRow(TypedDict):
    """One row per shot."""

    story_id: _OfStory
    shot: Annotated[int, "Number of the shot, from 1."]
    plot_en: Annotated[str, "The part of the story that the shot tells, in English."]
    plot_ch: Annotated[str, "The part of the story that the shot tells, in Chinese."]
    setting_en: Annotated[str, "The place, without any character, in English."]
    setting_ch: Annotated[str, "The place, without any character, in Chinese."]
    perspective_en: Annotated[str, "Shot distance, camera angle, camera type, in English."]
    perspective_ch: Annotated[str, "Shot distance, camera angle, camera type, in Chinese."]
    static_en: Annotated[str, "What is seen, as a still, in English."]
    static_ch: Annotated[str, "What is seen, as a still, in Chinese."]
    characters: Annotated[list[str], "Who is on stage, by key."]
    characters_ch: Annotated[list[str], "Who is on stage, in Chinese; empty where nobody wrote it."]


class CharacterRow(TypedDict):
    """One row per character of a story."""

    story_id: _OfStory
    character: Annotated[str, "Key of the character."]
    tag: Annotated[str, "realistic_human, unrealistic_human or non_human."]
    name_en: Annotated[str, "Name in English."]
    name_ch: Annotated[str, "Name in Chinese."]
    prompt_en: Annotated[str, "Appearance and clothing, in English."]
    prompt_ch: Annotated[str, "Appearance and clothing, in Chinese."]
    appearances: Annotated[int, "Shots in which it is on stage."]
    gender: Annotated[str, "male, female or other; null where nobody said."]
    ethnicity: Annotated[str, "Only where the author of the set gives it."]


class ReferenceRow(TypedDict):
    """One row per reference image of the release."""

    story_id: _OfStory
    character: Annotated[str, "Key of the character."]
    file: Annotated[str, "Path of the image in the release."]
    sha256: Annotated[str, "Hash of the file."]
    width: Annotated[int, "Pixels."]
    height: Annotated[int, "Pixels."]
    source: Annotated[str, "Where the image comes from."]
    rights: Annotated[str, "On what ground it may be used."]


class ReferencePictureRow(TypedDict):
    """One row per reference image of the release, with the image itself."""

    story_id: _OfStory
    character: Annotated[str, "Key of the character."]
    file: Annotated[str, "Path of the image in the release."]
    image: Annotated[PictureCell, "The image, byte for byte."]


STORIES = table_of("stories", StoryRow, ("story_id",))
SHOTS = table_of("shots", ShotRow, ("story_id", "shot"), _OF_STORY)
CHARACTERS = table_of("characters", CharacterRow, ("story_id", "character"), _OF_STORY)
REFERENCES = table_of("references", ReferenceRow, ("story_id", "file"), _OF_STORY)
REFERENCE_IMAGES = table_of(
    "reference_images", ReferencePictureRow, ("story_id", "file"), _OF_STORY, optional=True
)
_TEXTS = ("plot", "setting", "perspective", "static")
_LANGUAGES = ("en", "ch")
TABLES = (STORIES, SHOTS, CHARACTERS, REFERENCES, REFERENCE_IMAGES)


def script_rows(folder: Path) -> Iterator[PlacedRow]:
    """Yield every row that the scripts and reference images of a folder ask for, with its table and split."""
    images = list(read_lines(folder / FOLDER / REFERENCE_LINES))
    counts = Counter(image["story_id"] for image in images)
    for document in read_lines(folder / SHOT_SCRIPTS):
        for table, row in _story_rows(document, counts[document["story_id"]]):
            yield SPLIT, table, row
    for image in images:
        yield SPLIT, REFERENCES, _reference_row(image)
    if has_pictures(folder, REFERENCE_IMAGES, SPLIT):
        for image in images:
            yield SPLIT, REFERENCE_IMAGES, _picture_row(image)


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
        for name in _TEXTS:
            texts = getattr(shot, name)
            row |= {
                f"{name}_{language}": None if texts is None else getattr(texts, language)
                for language in _LANGUAGES
            }
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


def _picture_row(image: Mapping[str, Json]) -> dict[str, Json]:
    row = _reference_row(image)
    picture: PictureCell = {"path": row["file"], "sha256": row["sha256"]}
    return {name: row[name] for name in ("story_id", "character", "file")} | {"image": picture}


def _chinese(onstage: TwoLists | None) -> list[str]:
    return list(onstage.ch) if onstage is not None and isinstance(onstage.ch, tuple) else []
