"""What a run will have cost when it is done: the estimate made before it, corrected by what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .progress import Event, Reporter


@dataclass(slots=True)
class Forecast:
    """The expected cost of a run, from its plan and from how it goes.

    A stage that is under way is expected to go on as it has begun. Stages that have not begun are expected to
    cost what was planned, times what those before them cost by what was planned for them.

    Attributes:
        planned: stage -> USD expected before the run, in the order of the stages.
        cost: stage -> USD that it has cost, or that it is expected to have cost at its end.
    """

    planned: dict[str, float]
    cost: dict[str, float] = field(default_factory=dict)

    def expect(self, stage: str, spent: float, projected: float) -> dict[str, float] | None:
        """Return the USD expected in all, and the factor for what has not begun; None without a plan.

        Args:
            stage: that is under way.
            spent: USD that the run has spent before this stage.
            projected: USD that it will have spent at the end of this stage.
        """
        if stage not in self.planned:
            return None
        self.cost[stage] = projected - spent
        known = sum(self.planned[name] for name in self.cost)
        factor = sum(self.cost.values()) / known if known > 0 else 1.0
        later = sum(usd for name, usd in self.planned.items() if name not in self.cost)
        return {"expected": round(projected + factor * later, 6), "factor": round(factor, 4)}


class Forecasting:
    """A reporter that adds to the progress of stages what the whole run is expected to cost.

    Args:
        reporter: who is told.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._forecast = Forecast({})

    def emit(self, event: Event) -> None:
        """Pass an event on."""
        if event.kind == "plan":
            self._forecast = Forecast(dict(event.data.get("stages") or {}))
        elif event.kind == "progress" and event.stage is not None and "before" in event.data:
            event = replace(event, data={**event.data, **self._expected(event.stage, event.data)})
        self._reporter.emit(event)

    def close(self) -> None:
        """Leave the display in order."""
        self._reporter.close()

    def _expected(self, stage: str, data: Mapping[str, Any]) -> dict[str, float]:
        return self._forecast.expect(stage, data["before"], data["projected"]) or {}
