"""What the closed lists are called in the two languages of the format, and the cue lists of the rules."""

import json
from functools import cache
from importlib.resources import files

from ...schemas.vocabulary import vocabulary
from ...validators.shots.script_rules import Camera

STORY_TYPES_CH = {
    "folktale": "民间故事",
    "romance": "爱情",
    "crime": "悬疑犯罪",
    "horror": "恐怖",
    "historical": "历史",
    "fantasy": "奇幻",
    "science_fiction": "科幻",
    "war": "战争",
    "social_life": "社会生活",
    "adventure": "冒险",
    "fairy_tale": "童话",
}


def story_type_texts(value: str | None) -> dict[str, str] | None:
    """Return a story type in both languages; None where there is none."""
    if value is None:
        return None
    english = value.replace("_", " ") if value in vocabulary("story_type").values else value
    return {"en": english, "ch": STORY_TYPES_CH.get(value, value)}


def camera_texts(camera: dict[str, str | None]) -> dict[str, str]:
    """Return a perspective in both languages."""
    words = Camera(camera["distance"], camera["angle"], camera["type"])
    return {language: words.text(language) for language in ("en", "ch")}


@cache
def words_for(name: str) -> frozenset[str]:
    """Return a list, ``places`` or ``times``."""
    return frozenset(json.loads((files(__package__) / "words.json").read_text("utf-8"))[name])
