"""A script in the official form, from its parts as they are drafted."""

from collections.abc import Mapping, Sequence

from ...schemas.canonical import Json
from ...validators.shots.script_rules import FIELDS
from .translation import other_language
from .words import camera_texts, story_type_texts


def official_script(base: str, draft: Json, cast: Sequence[Json], story_type: str | None = None) -> Json:
    """Return the content of ``story.json``.

    Args:
        base: the key of the story's language, ``en`` or ``ch``.
        draft: ``plot``, ``onstage``, ``settings``, ``cameras``, ``statics``, and ``other``, which holds the
            texts in the other language; see :mod:`.draft`.
        cast: the characters that the script lists; see :mod:`.cast`.
        story_type: value of the vocabulary, if it is known.
    """
    other, translated = other_language(base), draft["other"]
    counts = {one["key"]: sum(one["key"] in keys for keys in draft["onstage"]) for one in cast}

    def both(text: str | None, translation: str | None) -> dict[str, str | None]:
        return _in_order({base: text, other: translation})

    characters = {}
    for one in cast:
        key = one["key"]
        names = both(one["name"], translated["names"][key])
        # The key is the English name, unless the story has none.
        names["en"] = names["en"] if base == "en" else (names["en"] or (key if key.isascii() else None))
        prompts = both(one["prompt"], translated["prompts"][key])
        characters[key] = {
            "tag": one["tag"],
            "name_en": names["en"],
            "name_ch": names["ch"],
            "prompt_en": prompts["en"],
            "prompt_ch": prompts["ch"],
            "num_of_appearances": counts[key],
        }
    shots = []
    for place, keys in enumerate(draft["onstage"]):
        chinese: list[str | None] = [characters[key]["name_ch"] for key in keys]
        shots.append(
            {
                "index": place + 1,
                FIELDS["plot"]: both(draft["plot"][place], translated["plot"][place]),
                FIELDS["setting"]: both(draft["settings"][place], translated["settings"][place]),
                FIELDS["perspective"]: camera_texts(draft["cameras"][place]),
                FIELDS["onstage"]: {"en": list(keys), "ch": None if None in chinese else chinese},
                FIELDS["static"]: both(draft["statics"][place], translated["statics"][place]),
            }
        )
    kind = story_type_texts(story_type)
    return {**({} if kind is None else {"Story_type": kind}), "Characters": characters, "Shots": shots}


def _in_order(texts: Mapping[str, str | None]) -> dict[str, str | None]:
    return {language: texts[language] for language in ("en", "ch")}
