"""Names in texts, letter for letter: an alias, or another case, becomes the name as the registry has it."""

import re

from ...validators.entities.view import holds
from .drafts import Entity
from .mentions import names_of, without_article

_ARTICLE = r"(?:\b(?:the|a|an|this|that|his|her|its|their|my|our|your)\s+)?"


def spelled(text: str, entity: Entity) -> str:
    """Return a text in which an entity is named letter for letter, if another name of it stands there.

    The first such place is changed, with the article before it where the name has its own. At the start of a
    sentence a name of small letters keeps its capital: the text stays as it is.
    """
    if holds(text, entity.name):
        return text
    own_article = without_article(entity.name) != entity.name
    for name in names_of(entity):
        article = _ARTICLE if own_article else ""
        pattern = re.compile(rf"{article}(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        match = pattern.search(text)
        if match is None:
            continue
        before = text[: match.start()].rstrip(" \"'")
        if entity.name[:1].islower() and (not before or before[-1] in ".!?"):
            replaced = f"{entity.name[:1].upper()}{entity.name[1:]}"
        else:
            replaced = entity.name
        return f"{text[: match.start()]}{replaced}{text[match.end() :]}"
    return text
