"""What all readers of replies share: gathering problems, tidying texts, matching numbers.

A reader is given JSON that satisfies the prompt's schema. It never trusts the reply with anything that is
known otherwise: ids and scene texts are filled in from the draft, numbers only choose among what is there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ....engine.asking import BadReply
from ....schemas.canonical import Json
from ....schemas.issue import Issue
from ....schemas.text import normalize_answer, normalize_text
from .script import script_problem

LONGEST_TEXT = 1000
"""Most characters of one field."""

LONGEST_LIST = 30
"""Most entries of one list of words or answers."""

_SHOWN = 8


class Problems:
    """Problems of one reply, told to the model all at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem, worded so that the model can act on it."""
        self.found.append(problem)

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Note what rules of ``fabula validate`` found."""
        self.found += [f"{issue.path}: {issue.message}" for issue in issues]

    def check_script(self, story: Json, values: Json) -> None:
        """Note it if the texts in some values are not in the story's script."""
        problem = script_problem(story["normalized_text"], story["language"], " ".join(texts_in(values)))
        if problem is not None:
            self.add(problem)

    def settle(self) -> None:
        """Do nothing if no problem was noted.

        Raises:
            BadReply: some were; up to eight are named.
        """
        if not self.found:
            return
        more = len(self.found) - _SHOWN
        raise BadReply("; ".join(self.found[:_SHOWN]) + (f"; and {more} more" if more > 0 else ""))


def texts_in(values: Json) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from texts_in(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from texts_in(value)


def needed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str:
    """Return a text of an entry in its normal form; note it where it is empty or too long."""
    text = normalize_text(str(entry[name]))
    if not normalize_answer(text):
        problems.add(f"{where}: {name} says nothing")
    elif len(text) > LONGEST_TEXT:
        problems.add(f"{where}: {name} has {len(text)} characters; one sentence is asked for")
    return text


def optional(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str | None:
    """Return a text of an entry in its normal form, None for null and for nothing."""
    if entry[name] is None or not normalize_answer(entry[name]):
        return None
    return needed(entry, name, where, problems)


def listed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> list[str]:
    """Return a list of texts in their normal form, without empty and repeated ones."""
    kept: dict[str, str] = {}
    for text in map(normalize_text, entry[name]):
        kept.setdefault(normalize_answer(text), text)
    kept.pop("", None)
    if len(kept) > LONGEST_LIST or any(len(text) > LONGEST_TEXT for text in kept.values()):
        problems.add(f"{where}: {name} is too long; a few short phrases are asked for")
    return list(kept.values())


def by_number(entries: Sequence[Json], key: str, numbers: Sequence[int], what: str) -> list[Json]:
    """Return the entries with given numbers, in the order of these.

    Args:
        entries: objects, each with its number under ``key``.
        key: such as ``scene``.
        numbers: the numbers that there must be, each once.
        what: what the entries are, for the problem.

    Raises:
        BadReply: a number is missing, repeated or none of these.
    """
    found = [entry[key] for entry in entries]
    if sorted(found) != sorted(numbers):
        shown = ", ".join(map(str, found[:20])) or "none"
        raise BadReply(
            f"expected {what} {_range(numbers)}, each once: the values of {key} must be"
            f" {', '.join(map(str, numbers[:20])) or 'none'}; found {shown}"
        )
    place = {entry[key]: entry for entry in entries}
    return [place[number] for number in numbers]


def _range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else "".join(map(str, numbers))


def check_count(entries: Sequence[Json], count: int, what: str) -> None:
    """Check how many entries there are.

    Raises:
        BadReply: not as many as asked for.
    """
    if len(entries) != count:
        raise BadReply(f"expected exactly {count} {what}, found {len(entries)}")
