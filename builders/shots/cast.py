"""Characters while a script is drafted: plain JSON with these fields.

``key`` (the official key, English where it is known), ``name`` (in the story's language, as the text has
it), ``tag``, ``gender``, ``ethnicity`` (the author's word, never drafted), ``prompt`` (appearance and
clothing in the story's language), ``other_name`` and ``other_prompt`` (in the other language; null until
translated).
"""

from collections.abc import Iterable, Sequence

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer, unspaced_count

MOST_ONSTAGE = 3


def character(key: str, name: str, **more: Json) -> Json:
    """Return a character; what is not said of it is null."""
    names = ("tag", "gender", "ethnicity", "prompt", "other_name", "other_prompt")
    return {"key": key, "name": name, **{field: more.get(field) for field in names}}


def names_of(one: Json) -> tuple[str, ...]:
    """Return the names of a character that its text may use: its name and its key."""
    return tuple(dict.fromkeys((one["name"], one["key"])))


def is_named(one: Json, text: str) -> bool:
    """Return whether a text names a character."""
    plain = normalize_answer(text)
    return any(_holds(text, plain, name) for name in names_of(one))


def named_in(cast: Iterable[Json], text: str) -> list[str]:
    """Return the keys of the characters that a text names, in the order of the cast."""
    return [one["key"] for one in cast if is_named(one, text)]


def _holds(text: str, plain: str, name: str) -> bool:
    if unspaced_count(name):
        return name in text
    words = normalize_answer(name)
    return bool(words) and contains_phrase(plain, words)


def named_first(cast: Sequence[Json], text: str) -> list[str]:
    """Return the keys of the characters that a text names, by where it first does."""
    folded = text.casefold()

    def place(one: Json) -> int:
        places = [folded.find(name.casefold()) for name in names_of(one)]
        return min((at for at in places if at >= 0), default=len(folded))

    return [one["key"] for one in sorted((one for one in cast if is_named(one, text)), key=place)]


def by_key(cast: Iterable[Json]) -> dict[str, Json]:
    """Return key -> character."""
    return {one["key"]: one for one in cast}
