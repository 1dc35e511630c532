"""Reading which events a verifier saw completed from the text of its reply."""

import re
from dataclasses import dataclass

from ...schemas.canonical import Json

MARK = "[COMPLETE_LIST]"
_MARK = re.compile(r"\[COMPLETE[_ ]LIST\]", re.IGNORECASE)
# Possessive: a reply may be long and hostile, and nothing is to be tried twice.
_NUMBER = r"(?<![\w.])[01](?![\w.])"
_REMARK = rf"\((?![^()\n]*{_NUMBER})[^()\n]{{1,300}}\)"
_FLAG = rf"[01](?:\s*+{_REMARK})?+"
_OTHER_FLAG = r"\s*+\((?:or|maybe|perhaps|possibly)?\s*+[01]\b"
_FLAGS = re.compile(
    rf"[\s*`_:=-]*+\[?[\s*`_]*+({_FLAG}(?:\s*+,\s*+{_FLAG})*)"
    rf"(?![\w,]|\.\d|\s*+,\s*+\w|{_OTHER_FLAG})",
    re.IGNORECASE,
)
_EACH = re.compile(rf"([01])(?:\s*+({_REMARK}))?+")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a reply says of the events.

    Attributes:
        flags: 1 for a completed event, 0 for another.
        remarks: what stands in brackets behind each flag, such as ``partially``; None where nothing does.
    """

    flags: tuple[int, ...]
    remarks: tuple[str | None, ...]


class Unreadable(ValueError):
    """A reply from which no completion list can be read; the message says why."""


def parse_completion(text: str, events: int) -> Completion:
    """Return the completion list of a reply.

    The list stands after the mark ``[COMPLETE_LIST]``, flags separated by commas; markdown around it and
    words behind it do not matter. A flag counts as it stands, whatever remark in brackets follows it; a
    remark with another flag in it makes the list unreadable. Where the mark is there more than once, the
    last list counts: replies often repeat it after their reasons. Nothing is guessed: a list of another
    length is no answer.

    Args:
        text: the reply.
        events: how many events the prompt has.

    Raises:
        Unreadable: there is no mark, no list behind it, or one of another length.

    >>> parse_completion("The door stays shut. Finally we have **[COMPLETE_LIST]: 1, 0**.", 2).flags
    (1, 0)
    """
    marks = list(_MARK.finditer(text))
    if not marks:
        raise Unreadable(f"no {MARK} in the reply")
    for mark in reversed(marks):
        found = _FLAGS.match(text, mark.end())
        if found is None:
            continue
        read = [(int(flag), remark[1:-1].strip() or None) for flag, remark in _EACH.findall(found[1])]
        if len(read) != events:
            raise Unreadable(f"{len(read)} flags for {events} events")
        return Completion(tuple(flag for flag, _ in read), tuple(remark for _, remark in read))
    raise Unreadable(f"no list of 0 and 1 after {MARK}")


def parsed_completion(read: Completion) -> dict[str, Json]:
    """Return the flags as a judgement keeps them, with the remarks where there are any."""
    flags: dict[str, Json] = {"completion": list(read.flags)}
    return {**flags, "remarks": list(read.remarks)} if any(read.remarks) else flags
