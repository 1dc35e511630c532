"""What a call costs: prices from the settings, else from the snapshot inside genai-prices; never online."""

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias

from .chat import Usage
from .options import ModelOptions
from .spec import COMPATIBLE, ModelSpec

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

Tiers: TypeAlias = tuple[tuple[int, float], ...]
"""USD per million tokens by number of input tokens: from so many on (the first starts at 0), this price holds
for all of them."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of one model.

    Attributes:
        input: of input tokens.
        output: of output tokens, thinking included.
        cached_input: of input tokens that the service had cached.
        source: ``settings``, or the library and version that the prices come from.
    """

    input: Tiers
    output: Tiers
    cached_input: Tiers
    source: str


def price_of(spec: ModelSpec, options: ModelOptions, day: date | None = None) -> Price | None:
    """Return the prices of a model; None where nobody knows them.

    A server given by its address has a price only in the settings: who runs it decides what it costs.

    Args:
        spec: the model.
        options: its settings.
        day: prices that start later do not count; without it, those that start last hold.
    """
    own = options.prices
    if own is not None:
        cached = own.input if own.cached_input is None else own.cached_input
        return Price(_flat(own.input), _flat(own.output), _flat(cached), "settings")
    return None if spec.provider == COMPATIBLE else _listed(spec, day)


def cost(price: Price, usage: Usage) -> float:
    """Return what a call costs, in USD."""
    total = usage.input_tokens
    cached = min(usage.cached_tokens, total)
    return (
        (total - cached) * _at(price.input, total)
        + cached * _at(price.cached_input, total)
        + usage.output_tokens * _at(price.output, total)
    ) / MILLION


def highest_cost(price: Price, input_tokens: int, output_tokens: int) -> float:
    """Return the most in USD that a call of at most so many tokens can cost, whatever is cached."""
    per_input = max(value for tiers in (price.input, price.cached_input) for _, value in tiers)
    per_output = max(value for _, value in price.output)
    return (input_tokens * per_input + output_tokens * per_output) / MILLION


def _flat(price: float) -> Tiers:
    return ((0, price),)


def _at(tiers: Tiers, tokens: int) -> float:
    return next(price for start, price in reversed(tiers) if tokens >= start)


def _listed(spec: ModelSpec, day: date | None) -> Price | None:
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(spec.name, None, spec.provider, None)
    except LookupError:
        return None
    listed = _standing(model.prices, day)
    if listed is None:
        return None
    given, answered = _tiers(listed.input_mtok), _tiers(listed.output_mtok)
    if answered is None and spec.encodes:  # a vector costs what its text costs
        answered = _flat(0.0)
    if given is None or answered is None:
        return None
    cached = _tiers(listed.cache_read_mtok) or given
    return Price(given, answered, cached, f"genai-prices {genai_prices.__version__}")


def _standing(prices: Any, day: date | None) -> "ModelPrice | None":  # noqa: ANN401 - one price or a list of conditional ones
    """Return the prices that hold on a day; of prices by time of day, the dearest."""
    if not isinstance(prices, list):
        return prices  # type: ignore[no-any-return]
    if not prices:
        return None
    dated = [
        entry
        for entry in prices
        if not hasattr(entry.constraint, "start_time")
        and (day is None or day >= getattr(entry.constraint, "start_date", date.min))
    ]
    hourly = [entry for entry in prices if hasattr(entry.constraint, "start_time")]
    candidates = [*dated[-1:], *hourly]
    return max((entry.prices for entry in candidates), key=_height)  # type: ignore[no-any-return]


def _height(prices: "ModelPrice") -> float:
    return sum(
        tiers[-1][1] for tiers in (_tiers(prices.input_mtok), _tiers(prices.output_mtok)) if tiers is not None
    )


def _tiers(value: Any) -> Tiers | None:  # noqa: ANN401 - a decimal or tiered prices
    if value is None:
        return None
    if hasattr(value, "tiers"):
        return ((0, float(value.base)), *((tier.start, float(tier.price)) for tier in value.tiers))
    return _flat(float(value))
