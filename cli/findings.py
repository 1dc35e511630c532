"""Findings as lines for people: those that repeat are told once, with their count and the first places."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..schemas.issue import Issue

PLACES, VALUES = 3, 10
"""So many places of a finding that repeats are named, and so many different findings of one rule."""

AllOption = Annotated[
    bool, typer.Option("--all", help="Print every finding [those that repeat once, with their count].")
]


def finding_lines(issues: Iterable["Issue"], *, everything: bool, owner: str = "") -> Iterator[str]:
    """Yield findings as lines, in their order.

    Args:
        issues: the findings.
        everything: print each by itself; otherwise those of one rule with one message are told once, and
            after the first few messages of a rule the rest is counted.
        owner: whose findings they are, such as a method; stands before each place.
    """
    groups: dict[tuple[str, ...], list[Issue]] = {}
    for number, issue in enumerate(issues):
        alone = (str(number),) if everything else ()
        groups.setdefault((issue.level, issue.code, issue.message, issue.cure, *alone), []).append(issue)
    shown: dict[str, int] = {}
    unshown: dict[str, list[Issue]] = {}
    for group in groups.values():
        first = group[0]
        shown[first.code] = shown.get(first.code, 0) + 1
        if shown[first.code] > VALUES and not everything:
            unshown.setdefault(first.code, []).extend(group)
        elif len(group) == 1:
            yield f"{first.level}: {owner}{first}"
        else:
            yield f"{first.level}: [{first.code}] {first.message}, in {len(group)} places:"
            yield from (f"  {owner}{issue.where} {issue.path}" for issue in group[:PLACES])
            if len(group) > PLACES:
                yield f"  ... and {len(group) - PLACES} more places; --all prints them"
            yield f"  fix: {first.cure}"
    for code, rest in unshown.items():
        yield f"... and {len(rest)} more of [{code}]; --all prints them"
