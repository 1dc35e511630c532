"""What runs cost, and what is left of one cost limit that several runs share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...schemas.canonical import Json

if TYPE_CHECKING:
    from ...engine.report import RunReport


@dataclass(frozen=True, slots=True)
class Spent:
    """What one run asked and cost, over all time.

    Attributes:
        calls: answered calls of models.
        usd: what they cost at most, as far as prices are known.
        unpriced: calls whose price is not known.
    """

    calls: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"calls": self.calls, "usd": round(self.usd, 6), "unpriced": self.unpriced}


@dataclass
class Ledger:
    """The costs of runs that share a limit.

    Attributes:
        limit: most USD in all; None for no limit.
        spent: name of a run -> what it cost.
    """

    limit: float | None = None
    spent: dict[str, Spent] = field(default_factory=dict)

    def left(self, run: str) -> float | None:
        """Return what a run may cost in all, the others considered; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - sum(spent.usd for name, spent in self.spent.items() if name != run))

    def enter(self, run: str, report: "RunReport") -> None:
        """Take in what a run cost."""
        self.spent[run] = Spent(
            sum(use.calls for use in report.models),
            sum(use.cost + use.uncertain_cost for use in report.models),
            sum(use.unpriced for use in report.models),
        )

    def as_json(self) -> Mapping[str, Json]:
        """Return it as plain JSON, sorted."""
        return {name: spent.as_json() for name, spent in sorted(self.spent.items())}
