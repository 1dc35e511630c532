"""Reading which events a verifier saw completed from the text of its reply."""

import re

MARK = "[COMPLETE_LIST]"
_MARK = re.compile(r"\[COMPLETE[_ ]LIST\]", re.IGNORECASE)
# Possessive: a reply may be long and hostile, and nothing is to be tried twice.
_FLAGS = re.compile(r"[\s*`_:=-]*+\[?[\s*`_]*+([01](?:\s*+,\s*+[01])*)(?![\w,]|\.\d|\s*+,\s*+\w)")


class Unreadable(ValueError):
    """A reply from which no completion list can be read; the message says why."""


def parse_completion(text: str, events: int) -> tuple[int, ...]:
    """Return the completion list of a reply: 1 for a completed event, 0 for another.

    The list stands after the mark ``[COMPLETE_LIST]``, flags separated by commas; markdown around it and
    words behind it do not matter. Where the mark is there more than once, the last list counts: replies
    often repeat it after their reasons. Nothing is guessed: a list of another length is no answer.

    Args:
        text: the reply.
        events: how many events the prompt has.

    Raises:
        Unreadable: there is no mark, no list behind it, or one of another length.

    >>> parse_completion("The door stays shut. Finally we have **[COMPLETE_LIST]: 1, 0**.", 2)
    (1, 0)
    """
    marks = list(_MARK.finditer(text))
    if not marks:
        raise Unreadable(f"no {MARK} in the reply")
    for mark in reversed(marks):
        found = _FLAGS.match(text, mark.end())
        if found is None:
            continue
        flags = tuple(int(char) for char in found.group(1) if char in "01")
        if len(flags) != events:
            raise Unreadable(f"{len(flags)} flags for {events} events")
        return flags
    raise Unreadable(f"no list of 0 and 1 after {MARK}")
