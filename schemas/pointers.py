"""JSON pointers (RFC 6901), such as ``/scenes/2/any key``: they reach keys of every form."""

from collections.abc import Sequence

from .canonical import Json


def pointer(steps: Sequence[str | int]) -> str:
    """Return the pointer made of these steps; of none it is empty, and stands for the whole."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def steps_of(text: str) -> tuple[str, ...]:
    """Return the steps of a pointer, as texts.

    Raises:
        ValueError: the text is no pointer.
    """
    if text and not text.startswith("/"):
        raise ValueError(f"a JSON pointer is empty or starts with /, not {text[:20]!r}")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def value_at(document: Json, text: str) -> Json:
    """Return the value that a pointer names.

    Raises:
        LookupError: nothing is there.
        ValueError: the text is no pointer.
    """
    value = document
    for step in steps_of(text):
        value = value[_key(value, step, text)]
    return value


def put(document: Json, text: str, value: Json) -> None:
    """Put a value where a pointer says, in place; the object or list that is to hold it exists.

    Raises:
        LookupError: nothing is there that could hold it.
        ValueError: the text is no pointer, or an empty one.
    """
    holder, key = _place(document, text)
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder[_key(holder, key, text)] = value


def drop(document: Json, text: str) -> None:
    """Remove the field of an object that a pointer names, in place.

    Raises:
        LookupError: nothing is there.
        ValueError: the text is no pointer, or an empty one.
    """
    holder, key = _place(document, text)
    del holder[_key(holder, key, text)]


def _place(document: Json, text: str) -> tuple[Json, str]:
    *above, last = steps_of(text) or ("",)
    if not text:
        raise ValueError("an empty JSON pointer names the whole, which nothing holds")
    return value_at(document, pointer(above)), last


def _key(holder: Json, step: str, text: str) -> str | int:
    if isinstance(holder, dict) and step in holder:
        return step
    if isinstance(holder, list) and step.isascii() and step.isdigit() and int(step) < len(holder):
        return int(step)
    raise LookupError(f"nothing at {text}")
