"""Answers as another tool gave them, before they are checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite

from ....errors import UserError
from ....schemas.canonical import Json

LARGEST = 256 * 1024 * 1024
"""Bytes of a file that is read."""


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody answered about an item in another tool.

    Attributes:
        where: file and line, for messages.
        user: who that is there; empty where the file does not say.
        key: the item, with ``#n`` for a repetition.
        answers: what an answer is called in a vote -> answer.
        seat: number of the seat; None where the file does not say.
        at: when, RFC 3339, UTC; None where the tool does not say.
        seconds: how long it took; None where the tool does not say.
        seen: hash of the record that was shown there; None where the file does not say.
    """

    where: str
    user: str
    key: str
    answers: Mapping[str, Json]
    seat: int | None = None
    at: str | None = None
    seconds: float | None = None
    seen: str | None = None


@dataclass
class Reading:
    """What a file of another tool holds.

    Attributes:
        given: the answers.
        problems: what is wrong in it.
        passed: what was passed over on purpose -> how often, such as drafts.
    """

    given: list[Given] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=dict)

    def wrong(self, where: str, what: str, fix: str) -> None:
        """Note a problem."""
        self.problems.append(UserError(where, what=what, fix=fix))

    def pass_over(self, what: str, count: int = 1) -> None:
        """Note what is passed over on purpose."""
        self.passed[what] = self.passed.get(what, 0) + count


def moment_of(value: Json) -> str | None:
    """Return a time as RFC 3339 in UTC, to the millisecond; None where it is no time of a known zone."""
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, TypeError, OverflowError):
        return None


def seconds_of(value: Json) -> float | None:
    """Return a time in seconds; None where it is no number from 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 and isfinite(value) else None
