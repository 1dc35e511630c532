"""The rules of a kind as a part of it: reading gives data, ``validate(data, rules)`` the findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json
from .report import IssueBin, ValidationReport


@dataclass(frozen=True, slots=True)
class Opened:
    """Data that was read.

    Attributes:
        path: where it lies.
        kind: what it is, as the report says.
        content: the data, of a type of its kind.
        found: what is wrong with its form.
    """

    path: Path
    kind: str
    content: Any
    found: IssueBin = field(default_factory=IssueBin)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What data of a kind must satisfy, and what is counted over it.

    Attributes:
        open: reads what lies at a path, and notes what is wrong with its form.
        check: data, bin; the bin takes what breaks a rule. Returns what was looked at -> how many.
        count: path -> counts and distributions.
    """

    open: Callable[[Path], Opened]
    check: Callable[[Any, IssueBin], Mapping[str, int]]
    count: Callable[[Path], Json]


def validate(data: Opened, rules: RuleSet) -> ValidationReport:
    """Return every finding about data that was read."""
    checked = rules.check(data.content, data.found)
    return data.found.report(str(data.path), data.kind, dict(checked))
