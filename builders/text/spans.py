"""Where the scenes lie in the story text.

The join rule, exact for every script: scenes cover the normalised text in order, and nothing but white
space is lost between them. So the scene texts joined without white space equal the story text without
white space; where the script puts single spaces between sentences, " ".join(texts) is the story text.

The other half of a boundary that moves: what is left to the neighbour of a part that was rewritten.
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


def neighbour_of_moved(text: str, parts: Sequence[str], number: int, new: str) -> tuple[int, str] | None:
    """Return which part gives or takes what one part takes or gives, and its text.

    ``text``: the whole text, which the parts cover in order. ``number``: which of them changes, from 0.

    Returns:
        The number and text of the neighbour; ``None`` where the boundaries stay, the part is not a piece of
        the text at the same place, or nothing would be left of the neighbour.
    """
    spans = scene_spans(text, parts)
    if spans is None:
        return None
    start, end = spans[number]
    length, wanted = sum(not char.isspace() for char in new), "".join(new.split())
    places = [index for index, char in enumerate(text) if not char.isspace()]
    first, last = places.index(start), places.index(end - 1)
    if number + 1 < len(parts) and first + length < len(places):
        cut = places[first + length]
        left = text[cut : spans[number + 1][1]]
        if cut != spans[number + 1][0] and left.strip() and "".join(text[start:cut].split()) == wanted:
            return number + 1, left.strip()
    if number and last - length + 1 >= 0:
        cut = places[last - length + 1]
        left = text[spans[number - 1][0] : cut]
        if cut != start and left.strip() and "".join(text[cut:end].split()) == wanted:
            return number - 1, left.strip()
    return None
