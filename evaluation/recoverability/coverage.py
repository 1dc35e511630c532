"""What was asked and what came back, per judge and condition: refusals are counted, never dropped."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, get_args

from ...schemas.judgement import JudgementOutcome
from .replies import Replies

OUTCOMES: tuple[str, ...] = get_args(JudgementOutcome)


@dataclass(frozen=True)
class Coverage:
    """The replies of one judge to one kind of question under one condition.

    Attributes:
        judge: its spec.
        method: whose outputs were shown; None under text-only evidence.
        kind: of question.
        condition: evidence.
        asked: how many replies there are, votes counted apart.
        outcomes: outcome -> how many; all outcomes, in a fixed order.
    """

    judge: str
    method: str | None
    kind: str
    condition: str
    asked: int
    outcomes: dict[str, int]

    @property
    def answered(self) -> float:
        """Share of what was asked that was answered."""
        return self.outcomes["answered"] / self.asked

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "answered_share": self.answered}


def coverage_of(replies: Replies) -> tuple[Coverage, ...]:
    """Return one entry per judge, method, kind and condition that anything was asked under."""
    groups: dict[tuple[str, str | None, str, str], Counter[str]] = {}
    for (judge, method, kind, condition, outcome), count in replies.outcomes.items():
        groups.setdefault((judge, method, kind, condition), Counter())[outcome] += count
    order = sorted(groups, key=lambda one: (one[0], one[1] or "", *one[2:]))
    return tuple(
        Coverage(*place, groups[place].total(), {name: groups[place][name] for name in OUTCOMES})
        for place in order
    )
