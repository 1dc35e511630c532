"""What a run may spend: prices known before it starts, cost reserved before a call and settled after it."""

import asyncio
from fractions import Fraction

from ..errors import BudgetStop, ConfigError, MissingRequirement
from ..models.keys import key_status
from ..models.options import ModelOptions
from ..models.prices import Price, check_extra, price_of, price_setting
from ..models.registry import check_adapter, has_batches
from ..models.spec import parse_spec
from .config import RunConfig


class Budget:
    """Money that a run may spend, added exactly. Used in one event loop only.

    Args:
        limit: USD in all, over the whole life of the run; None for no limit.
        spent: USD spent before.
    """

    def __init__(self, limit: float | None, spent: float) -> None:
        self.limit = limit
        self._spent = Fraction(spent)
        self._reserved = Fraction(0)
        self._flying = 0
        self._settled = asyncio.Event()

    @property
    def spent(self) -> float:
        """USD spent so far."""
        return float(self._spent)

    def spend(self, amount: float) -> None:
        """Count what a call cost, or may have cost."""
        self._spent += Fraction(amount)

    async def reserve(self, bound: float) -> bool:
        """Set money aside for one call, waiting for calls in flight to be settled where that may help.

        Args:
            bound: USD that the call costs at most.

        Returns:
            False when the call does not fit and nothing is in flight that could make room.
        """
        while not self.fits(bound):
            if not self._flying:
                return False
            self._settled.clear()
            await self._settled.wait()
        self.hold(bound)
        return True

    def try_reserve(self, bound: float) -> bool:
        """Set money aside for one request, if it fits now; return whether it does."""
        if not self.fits(bound):
            return False
        self.hold(bound)
        return True

    def hold(self, bound: float) -> None:
        """Set money aside for a request that is under way, whether it fits or not."""
        self._reserved += Fraction(bound)
        self._flying += 1

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way that could make room."""
        return not self._flying

    def fits(self, bound: float) -> bool:
        """Whether a call that costs at most so much may be made now."""
        return self.limit is None or self._spent + self._reserved + Fraction(bound) <= self.limit

    def release(self, bound: float) -> None:
        """Give back what was set aside for a call; what it cost is added to ``spent`` by then."""
        self._reserved -= Fraction(bound)
        self._flying -= 1
        self._settled.set()


def over_budget(budget: Budget, bound: float) -> BudgetStop:
    """Return the error for a call that does not fit the limit."""
    return BudgetStop(
        f"stopped at the cost limit: {budget.spent:.4f} of {budget.limit:g} USD are spent, and the next call"
        f" may cost up to {bound:.4f} USD\n  fix: raise --max-cost and give the same command again: finished"
        " work is kept, nothing is asked twice"
    )


def check_models(config: RunConfig, max_cost: float | None) -> None:
    """Check that every model that the settings name can be asked, as far as that shows without asking.

    Raises:
        MissingRequirement: a key or a library is missing.
        ConfigError: nobody serves a model, or its price is not known and the cost is limited, or a setting
            makes it cost something else than the listed price.
    """
    for text, options in config.models.items():
        spec = parse_spec(text)
        check_adapter(spec)
        status = key_status(spec, options)
        if not status.found:
            raise MissingRequirement(
                f"model {text}",
                what=f"{' or '.join(status.variables)} is not set, in the environment or in .env",
                fix=f"export {status.variables[0]}=..., or write it into the file .env here",
            )  # fmt: skip
        check_extra(spec, options)
        if max_cost is not None:
            known_price(text, options)


def asked_singly(config: RunConfig) -> str | None:
    """Return what people must know where none of a run's models takes requests in batches."""
    if not config.models or any(has_batches(parse_spec(text)) for text in config.models):
        return None
    models = ", ".join(config.models)
    return f"--batch: no model of this run takes batches, so they are asked one by one: {models}"


def known_price(text: str, options: ModelOptions) -> Price:
    """Return the price of a model whose cost is limited.

    Raises:
        ConfigError: nobody knows it.
    """
    price = price_of(parse_spec(text), options)
    if price is None:
        raise unknown_price(text)
    return price


def unknown_price(text: str) -> ConfigError:
    """Return the error for a cost limit beside a model whose price nobody knows."""
    return ConfigError(
        f"--max-cost with {text}", what="the price of this model is not known, so its cost cannot be limited",
        fix=f"give it in fabula.toml: {price_setting(text)} (0 where it costs nothing)",
    )  # fmt: skip
