"""Leaving out what was not answered with care: every exclusion is counted and named, never silent."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..schemas.human import HumanRow


@dataclass(frozen=True)
class Exclusion:
    """What is left out (KathaTrace, section F.1, names the three reasons and no thresholds).

    Attributes:
        attention_failures: most attention checks that a person may fail; with more, all their lines go.
        min_seconds: a line answered faster than this goes; None: none does.
        min_consistency: least share of repeated controls answered as before; below it, all lines of the
            person go; None: nobody goes for that.
    """

    attention_failures: int = 0
    min_seconds: float | None = None
    min_consistency: float | None = None


@dataclass(frozen=True)
class Kept:
    """What is left of the lines.

    Attributes:
        rows: the lines that count, without attention checks.
        people: person -> why all their lines were left out.
        fast: how many lines of other people were left out as too fast.
        consistency: person -> share of repeated controls answered as before; only people who had some.
    """

    rows: tuple[HumanRow, ...]
    people: dict[str, str]
    fast: int
    consistency: dict[str, float]


def exclude(rows: Sequence[HumanRow], rule: Exclusion) -> Kept:
    """Return the lines that count, and what was left out and why."""
    failed: dict[str, int] = {}
    for row in rows:
        if row.kind == "attention" and row.value == 0:
            failed[row.rater] = failed.get(row.rater, 0) + 1
    consistency = _consistency(rows)
    people = {
        rater: f"attention checks failed: {count}"
        for rater, count in failed.items()
        if count > rule.attention_failures
    }
    if rule.min_consistency is not None:
        for rater, share in consistency.items():
            if share < rule.min_consistency and rater not in people:
                people[rater] = f"answered {share:.0%} of the repeated controls as before"
    careful = [row for row in rows if row.rater not in people and row.kind != "attention"]
    slow = [row for row in careful if not _too_fast(row, rule)]
    return Kept(tuple(slow), dict(sorted(people.items())), len(careful) - len(slow), consistency)


def _too_fast(row: HumanRow, rule: Exclusion) -> bool:
    return rule.min_seconds is not None and row.seconds is not None and row.seconds < rule.min_seconds


def _consistency(rows: Sequence[HumanRow]) -> dict[str, float]:
    """Return person -> share of repetitions that say what the first answer said."""
    first = {row.place(): _said(row) for row in rows if not row.repeat}
    same: dict[str, list[bool]] = {}
    for row in rows:
        before = first.get((*row.place()[:-1], 0))
        if row.repeat and before is not None:
            same.setdefault(row.rater, []).append(before == _said(row))
    return {rater: sum(found) / len(found) for rater, found in sorted(same.items())}


def _said(row: HumanRow) -> tuple[object, ...]:
    return (row.answer, row.labels[:1], row.value, row.completion)
