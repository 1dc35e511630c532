"""The other half of a boundary that moves: what is left to the neighbour of a part that was rewritten."""

from collections.abc import Sequence

from .spans import scene_spans


def neighbour_of_moved(text: str, parts: Sequence[str], number: int, new: str) -> tuple[int, str] | None:
    """Return which part gives or takes what one part takes or gives, and its text.

    Args:
        text: the whole text, which the parts cover in order.
        parts: the parts as they are.
        number: which of them changes, from 0.
        new: its new text. White space does not count.

    Returns:
        The number and text of the neighbour; ``None`` where the boundaries stay, the part is not a piece of
        the text at the same place, or nothing would be left of the neighbour.
    """
    spans = scene_spans(text, parts)
    if spans is None:
        return None
    start, end = spans[number]
    length, wanted = sum(not char.isspace() for char in new), "".join(new.split())
    places = [place for place, char in enumerate(text) if not char.isspace()]
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
