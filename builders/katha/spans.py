"""Where the scenes lie in the story text.

The join rule, exact for every script: scenes cover the normalised text in order, and nothing but white
space is lost between them. So the scene texts joined without white space equal the story text without
white space; where the script puts single spaces between sentences, " ".join(texts) is the story text.
"""

from collections.abc import Sequence

Span = tuple[int, int]


def scene_spans(text: str, scenes: Sequence[str]) -> tuple[Span, ...] | None:
    """Return the span of each scene in the text, or None where they do not cover it in order.

    White space counts neither in the text nor in the scenes.
    """
    spans: list[Span] = []
    place = 0
    for scene in scenes:
        start = _skip(text, place)
        end = start + len(scene)
        if not text.startswith(scene, start):
            found = _match_loosely(text, start, scene)
            if found is None:
                return None
            end = found
        if end == start:
            return None
        spans.append((start, end))
        place = end
    return tuple(spans) if _skip(text, place) == len(text) else None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _match_loosely(text: str, start: int, scene: str) -> int | None:
    place, end = start, start
    for char in scene:
        if char.isspace():
            continue
        place = _skip(text, place)
        if place >= len(text) or text[place] != char:
            return None
        place += 1
        end = place
    return end


def with_scene(text: str, span: Span, scene: str) -> str:
    """Return the text with one scene replaced; every other character stays."""
    return text[: span[0]] + scene + text[span[1] :]
