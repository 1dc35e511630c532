"""What ids and language tags look like; builders, validators and releases ask here."""

import re
import unicodedata

STORY_ID_LENGTH = 64
_STORY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_PART_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}", re.ASCII)
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", re.ASCII)


def is_story_id(text: str) -> bool:
    """Return whether a text may be the id of a story: it becomes part of file names and keys."""
    return _STORY_ID.fullmatch(text) is not None


def is_part_id(text: str) -> bool:
    """Return whether a text may be the id of a question, variant or pair.

    Such an id may be longer than a story's, because it may begin with one.
    """
    return _PART_ID.fullmatch(text) is not None


def is_language_tag(text: str) -> bool:
    """Return whether a text has the shape of a BCP 47 tag whose language has two or three letters.

    BCP 47 also sets aside longer languages, of which none is registered.
    """
    return _LANGUAGE_TAG.fullmatch(text) is not None


def primary_language(tag: str) -> str:
    """Return the language of a tag without script and region, in lower case: ``zh`` of ``zh-Hans``."""
    return tag.partition("-")[0].lower()


def slug(text: str) -> str:
    """Return a story id made of a text such as a file's name: ASCII letters, digits, ``_`` and ``-``.

    Accents are dropped, everything else becomes a dash; empty where nothing is left.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:STORY_ID_LENGTH].rstrip("-_")
