"""The English cue lists of the rules, kept as a data file: people, places, times, words of story types."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _lists() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((files(__package__) / "words.json").read_text("utf-8"))
    return document


@cache
def words_for(name: str) -> frozenset[str]:
    """Return a list, such as ``places``."""
    return frozenset(_lists()[name])


@cache
def cues_of(table: str) -> dict[str, frozenset[str]]:
    """Return label -> words, of the lists whose names start with that of a table, as ``story_type war``."""
    start = f"{table} "
    return {name.removeprefix(start): words_for(name) for name in _lists() if name.startswith(start)}
