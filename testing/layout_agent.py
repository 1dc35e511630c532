"""A stand-in for the model that arranges shots: it sees the prompt alone, and keeps its rules or breaks them.

Its layouts are plain: everybody in one keyframe, who stays where they were, newcomers in free cells. It says
nothing about any real model.
"""

import json
import re

from ..generation.memory.shots.layout import CELLS
from ..schemas.canonical import Json
from .asked_prompts import fenced_texts, prompt_of, user_text
from .model_server import Asked

PROMPT = "memory/layout_shot"
_LINE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
_LISTS = ("Characters of the shot", "Places of the shot", "Objects of the shot")


def answer(asked: Asked) -> Json:
    """Return a valid layout for a shot.

    Raises:
        ValueError: the request was made with another prompt.
    """
    characters, places, objects = lists_of(asked)
    before = before_of(asked)
    cells = {entry["name"]: entry["cell"] for entry in before["characters"]} if before else {}
    cells = {name: cell for name, cell in cells.items() if name in characters}
    free = [cell for cell in CELLS if cell not in cells.values()]
    for name in characters:
        if name not in cells:
            cells[name] = free.pop(0)
    same = before is not None and before["place"] in places
    keyframe = {
        "pan": "none", "camera": before["camera"] if before and same else "front",
        "place": before["place"] if before and same else places[0] if places else None,
        "shows": "everybody",
        "characters": [{"name": name, "cell": cell} for name, cell in cells.items()],
        "objects": [{"name": name, "beside": characters[0] if characters else None} for name in objects],
    }  # fmt: skip
    others = [place for place in places if place != keyframe["place"]]
    return {
        "reasoning": "The camera rests.",
        "keyframes": [keyframe, *({**keyframe, "place": place, "camera": "front"} for place in others)],
    }


def crowded(asked: Asked) -> Json:
    """Return a layout in which everybody stands in the centre, which is valid for one character at most."""
    reply = answer(asked)
    for keyframe in reply["keyframes"]:
        for standing in keyframe["characters"]:
            standing["cell"] = "centre"
    return reply


def lists_of(asked: Asked) -> tuple[list[str], list[str], list[str]]:
    """Return the characters, places and objects that a request lists.

    Raises:
        ValueError: the request was made with another prompt.
    """
    if prompt_of(asked) != PROMPT:
        raise ValueError(f"not a prompt about layouts: {asked.system[:80]!r}")
    text = user_text(asked)
    lists: list[list[str]] = []
    for heading in _LISTS:
        part = text.split(f"{heading}:\n", 1)[1]
        body = "" if part.startswith("none") else fenced_texts(part)[0]
        lists.append(_LINE.findall(body))
    return lists[0], lists[1], lists[2]


def before_of(asked: Asked) -> dict[str, Json] | None:
    """Return the arrangement from which a shot goes on, as a request tells it; None after a cut."""
    text = user_text(asked)
    if "The shot goes on from another one" not in text:
        return None
    shown: dict[str, Json] = json.loads(fenced_texts(text.split("which ended like this:\n", 1)[1])[0])
    return shown
