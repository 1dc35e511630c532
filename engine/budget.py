"""What a run may spend: prices known before it starts, cost reserved before a call and settled after it."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..errors import BudgetStop, ConfigError, MissingRequirement
from ..models.keys import key_status
from ..models.options import ModelOptions
from ..models.prices import Price, check_extra, price_of, price_setting
from ..models.registry import check_adapter, has_batches
from ..models.spec import parse_spec
from .config import RunConfig, models_of


@dataclass(slots=True)
class Pot:
    """Money that may be spent on something, added exactly."""

    limit: float | None  # USD in all; None for no limit
    spent: Fraction  # USD spent so far
    reserved: Fraction = Fraction(0)  # USD set aside

    def fits(self, bound: float) -> bool:
        """Whether a call that costs at most so much may be made now."""
        return self.limit is None or self.spent + self.reserved + Fraction(bound) <= self.limit


class Budget:
    """Money that a run may spend, and stages of it. Used in one event loop only.

    ``limit``: USD in all, over the whole life of the run; None for no limit. ``spent``: USD spent before.
    ``stages``: stage -> USD that it may cost, and that it has cost before; others have no limit of their own.
    """

    def __init__(
        self, limit: float | None, spent: float, stages: Mapping[str, tuple[float, float]] | None = None
    ) -> None:
        self._all = Pot(limit, Fraction(spent))
        self._stages = {
            stage: Pot(most, Fraction(before)) for stage, (most, before) in (stages or {}).items()
        }
        self._flying = 0
        self._spent_in: dict[str, Fraction] = {}
        self._settled = asyncio.Event()

    @property
    def spent(self) -> float:
        """USD spent so far."""
        return float(self._all.spent)

    def is_limited(self, stage: str) -> bool:
        """Whether what a stage may spend is limited."""
        return self._all.limit is not None or stage in self._stages

    def spend(self, amount: float, stage: str) -> None:
        """Count what a call cost, or may have cost."""
        for pot in self._pots(stage):
            pot.spent += Fraction(amount)
        self._spent_in[stage] = self._spent_in.get(stage, Fraction(0)) + Fraction(amount)

    def spent_in(self, stage: str) -> float:
        """Return the USD that a stage has cost since this began to count."""
        return float(self._spent_in.get(stage, 0))

    def _pots(self, stage: str) -> list[Pot]:
        return [self._all, *([self._stages[stage]] if stage in self._stages else [])]

    def short(self, bound: float, stage: str) -> tuple[Pot, str]:
        """Return the money that a call does not fit, and words for whose it is: of a stage, or of all."""
        in_all = stage not in self._stages or not self._all.fits(bound)
        return (self._all, "") if in_all else (self._stages[stage], f" of {stage}")

    async def reserve(self, bound: float, stage: str) -> bool:
        """Set money aside for one call, waiting for calls in flight to be settled where that may help.

        ``bound``: USD that the call costs at most.

        Returned: False when the call does not fit and nothing is in flight that could make room.
        """
        while not self.fits(bound, stage):
            if not self._flying:
                return False
            self._settled.clear()
            await self._settled.wait()
        self.hold(bound, stage)
        return True

    def try_reserve(self, bound: float, stage: str) -> bool:
        """Set money aside for one request, if it fits now; return whether it does."""
        if not self.fits(bound, stage):
            return False
        self.hold(bound, stage)
        return True

    def hold(self, bound: float, stage: str) -> None:
        """Set money aside for a request that is under way, whether it fits or not."""
        for pot in self._pots(stage):
            pot.reserved += Fraction(bound)
        self._flying += 1

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way that could make room."""
        return not self._flying

    def fits(self, bound: float, stage: str) -> bool:
        """Whether a call of a stage that costs at most so much may be made now."""
        return all(pot.fits(bound) for pot in self._pots(stage))

    def release(self, bound: float, stage: str) -> None:
        """Give back what was set aside for a call; what it cost is added to ``spent`` by then."""
        for pot in self._pots(stage):
            pot.reserved -= Fraction(bound)
        self._flying -= 1
        self._settled.set()


def over_budget(budget: Budget, bound: float, stage: str) -> BudgetStop:
    """Return the error for a call of a stage that does not fit the limit."""
    pot, of = budget.short(bound, stage)
    option, limit = f"--max-cost {stage}=USD" if of else "--max-cost", pot.limit or 0.0
    return BudgetStop(
        f"stopped at the cost limit{of}: {float(pot.spent):.4f} of {limit:g} USD are spent, and the"
        f" next call may cost up to {bound:.4f} USD\n  fix: raise {option} and give the same command again:"
        " finished work is kept, nothing is asked twice"
    )


def check_models(
    config: RunConfig,
    max_cost: float | None,
    stages: Collection[str] = (),
    asked_before: Collection[str] = (),
) -> None:
    """Check that every model that the settings name can be asked, as far as that shows without asking.

    ``max_cost``: USD that the run may cost; None for no limit.
    """
    for text, options in config.models.items():
        if text in asked_before:
            continue
        spec = parse_spec(text)
        check_adapter(spec, options)
        status = key_status(spec, options)
        if not status.found:
            raise MissingRequirement(
                f"model {text}",
                what=f"{' or '.join(status.variables)} is not set, in the environment or in .env",
                fix=f"export {status.variables[0]}=..., or write it into the file .env here",
            )  # fmt: skip
        check_extra(spec, options)
        if max_cost is not None or any(text in models_of(config.stages[stage]) for stage in stages):
            known_price(text, options)


def asked_singly(config: RunConfig) -> str | None:
    """Return what people must know where none of a run's models takes requests in batches."""
    if not config.models or any(has_batches(parse_spec(text)) for text in config.models):
        return None
    models = ", ".join(config.models)
    return f"--batch: no model of this run takes batches, so they are asked one by one: {models}"


def known_price(text: str, options: ModelOptions) -> Price:
    """Return the price of a model whose cost is limited."""
    price = price_of(parse_spec(text), options)
    if price is None:
        raise unknown_price(text)
    return price


def unknown_price(text: str) -> ConfigError:
    """Return the error for a cost limit beside a model whose price nobody knows."""
    return ConfigError(
        f"--max-cost with {text}", what="the price of this model is not known, so its cost cannot be limited",
        fix=f"give it in fabula.toml:{price_setting(text)}",
    )  # fmt: skip
