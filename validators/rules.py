"""The rules of a kind as a part of it: reading gives data, ``validate(data, rules)`` the findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..schemas.canonical import Json
from .report import IssueBin, ValidationReport


@dataclass(frozen=True, slots=True)
class Opened:
    """Data that was read."""

    path: Path  # where it lies
    kind: str  # what it is, as the report says
    content: Any  # the data, of a type of its kind
    found: IssueBin = field(default_factory=IssueBin)  # what is wrong with its form


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What data of a kind must satisfy, and what is counted over it."""

    open: Callable[[Path], Opened]  # reads what lies at a path, and notes what is wrong with its form
    # data, bin; the bin takes what breaks a rule. Returns what was looked at -> how many.
    check: Callable[[Any, IssueBin], Mapping[str, int]]
    count: Callable[[Path], Json]  # path -> counts and distributions


def validate(data: Opened, rules: RuleSet) -> ValidationReport:
    """Return every finding about data that was read."""
    checked = rules.check(data.content, data.found)
    return data.found.report(str(data.path), data.kind, dict(checked))
