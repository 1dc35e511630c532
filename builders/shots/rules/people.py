"""Who is in an English story, by rules: the characters that it names most often."""

import re

from ....schemas.canonical import Json
from ...katha.rules.analysis import Analysis
from ...katha.rules.lexicon import word_set
from ...katha.rules.words import lower_words
from ..cast import character
from .lexicon import words_for


def find_people(story: Json, analysis: Json, human: str, most: int) -> list[Json]:
    """Return the characters that a story names in most of its clauses, in the order in which they come."""
    found = [entity for entity in Analysis.from_json(analysis).entities if entity.character]
    often = sorted(found, key=lambda entity: (-len(entity.at), entity.at[0]))[:most]
    kept: dict[str, Json] = {}
    for entity in sorted(often, key=lambda entity: entity.at[0]):
        key = entity.name[:1].upper() + entity.name[1:]
        one = {**character(key, key), "prompt": _appearance(story["normalized_text"], entity.name)}
        kept.setdefault(key.casefold(), describe(story, one, human))
    return list(kept.values())


def describe(story: Json, one: Json, human: str) -> Json:
    """Return a character with what rules can tell: tag, gender, and the words that describe it."""
    prompt = one["prompt"] or _appearance(story["normalized_text"], one["name"])
    animal = is_animal(one["name"]) or is_animal(prompt or "")
    return {
        **one,
        "tag": one["tag"] or ("non_human" if animal else human),
        "gender": one["gender"] or _gender(one["name"]),
        "prompt": prompt,
    }


def is_animal(name: str) -> bool:
    """Return whether a name or a phrase is that of an animal, by its last word."""
    words = lower_words(name)
    return bool(words) and words[-1] in word_set("nouns", "animals")


def _gender(name: str) -> str | None:
    """Return the gender that a name itself says; whom a pronoun means, rules cannot tell."""
    words = set(lower_words(name))
    if bool(words & words_for("male")) == bool(words & words_for("female")):
        return None
    return "male" if words & words_for("male") else "female"


def _appearance(text: str, name: str) -> str | None:
    """Return a phrase such as "A poor young shepherd" or "Hermes, a god"; None where the text has none."""
    if name[-1:] == "s" and name[-2:] != "ss" and name.islower():
        return None
    known = word_set("words", "function") | word_set("words", "determiners") | words_for("no_look")
    pattern = rf"\b(?:[Aa]n?|[Tt]he)\s+((?:[a-z]+\s+){{1,3}}){re.escape(name)}\b"
    for match in re.finditer(pattern, text):
        words = lower_words(match[1])
        if any(word in known or word.endswith(("ed", "ly", "est")) for word in words):
            continue
        kinds = word_set("nouns", "animals", "people", "titles")
        if name[0].isupper() and words[-1] not in kinds:
            continue  # "a windy morning Mira walked"
        phrase = " ".join(words)
        article = "an" if phrase[0] in "aeiou" else "a"
        return f"{name}, {article} {phrase}" if name[0].isupper() else f"{article.title()} {phrase} {name}"
    return None
