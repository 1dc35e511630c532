"""What a call costs: prices from the settings, else from the snapshot inside genai-prices; never online."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..schemas.canonical import Json
from .chat import Usage
from .options import ModelOptions
from .spec import COMPATIBLE, ModelSpec
from .tokens import MostTokens, within

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

MILLION = 1_000_000
NAMES = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cached_tokens": "cache_read",
    "thinking_tokens": "output_reasoning",
    "cache_write_tokens": "cache_write",
    "cache_write_1h_tokens": "cache_write_1h",
}
"""Counts of a usage, and what the library calls them."""

INPUTS = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
OUTPUTS = ("output_tokens", "thinking_tokens")
LAST_DAY = date(9999, 12, 30)
STANDARD = ("default", "standard", "standard_only")
"""Service tiers whose price is the listed one."""

CHANGES_PRICE = frozenset(
    (
        *("service_tier", "serviceTier", "speed", "inference_geo", "prediction"),
        *("tools", "web_search_options", "mcp_servers", "container", "cachedContent", "cached_content"),
        *("modalities", "audio", "responseModalities", "response_modalities"),
    )
)
"""Parameters of requests that make them cost something else than the listed price of their tokens."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of one model.

    Attributes:
        lists: price lists of the library, of which the dearest counts.
        source: ``settings``, or the library and version that the prices come from.
    """

    lists: tuple["ModelPrice", ...]
    source: str

    def cost(self, usage: Usage) -> Decimal:
        """Return what a call costs whose counts are all known and agree, in USD."""
        from genai_prices import Usage as Counts

        counts = {f"{NAMES[name]}_tokens": getattr(usage, name) for name in NAMES if self.rates(name)}
        return max(prices.calc_price(Counts(**counts))["total_price"] for prices in self.lists)

    def rates(self, name: str, tokens: int | None = None) -> tuple[Decimal, ...]:
        """Return the prices of a kind of token, per million; empty where it has none of its own.

        Args:
            name: of a count of :class:`~.chat.Usage`.
            tokens: most input tokens of a call: prices of longer calls are left out; None for all.
        """
        found: list[Decimal] = []
        for prices in self.lists:
            value: Any = vars(prices).get(f"{NAMES[name]}_mtok")
            if value is None:
                continue
            found.append(getattr(value, "base", value))
            tiers = getattr(value, "tiers", ())
            found.extend(tier.price for tier in tiers if tokens is None or tier.start < tokens)
        return tuple(found)

    def highest(self, names: tuple[str, ...], tokens: int) -> Decimal:
        """Return the dearest price, in USD, of kinds of token in a call of at most so many input tokens."""
        return max(rate for name in names for rate in (*self.rates(name, tokens), Decimal(0))) / MILLION


@dataclass(frozen=True, slots=True)
class Booked:
    """What a call is booked at.

    Attributes:
        cost: USD.
        is_read: whether all counts that the price depends on could be read; else it is the most that the call
            can have cost, as far as it is not known.
    """

    cost: float
    is_read: bool


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
        from genai_prices.types import ModelPrice

        given = {
            "input": own.input,
            "output": own.output,
            "cache_read": own.cached_input,
            "cache_write": own.cache_write,
        }
        known = {f"{name}_mtok": Decimal(str(usd)) for name, usd in given.items() if usd is not None}
        return Price((ModelPrice(**known),), "settings")
    return None if spec.provider == COMPATIBLE else _listed(spec, day or LAST_DAY)


def check_extra(spec: ModelSpec, options: ModelOptions) -> None:
    """Check that no setting in ``extra`` makes calls cost something else than what is listed.

    Raises:
        ConfigError: one does, and the settings give no prices.
    """
    name = _changing(options.extra)
    if name is None or options.prices is not None or price_of(spec, options) is None:
        return
    raise ConfigError(
        f'[models."{spec}"] extra.{name}',
        what="this parameter changes what a call costs, so the listed price would be wrong",
        fix="leave it out, or give the prices that apply with it: prices = { input = 0.4, output = 1.6 },"
        " in USD per million tokens",
    )


def _changing(extra: Json) -> str | None:
    """Return the path of the first parameter that changes the price."""
    for name, value in extra.items() if isinstance(extra, Mapping) else ():
        if name in CHANGES_PRICE and value not in STANDARD:
            return str(name)
        if (inner := _changing(value)) is not None:
            return f"{name}.{inner}"
    return None


def book(price: Price, usage: Usage | None, most: MostTokens) -> Booked:
    """Return what a call is booked at: a count that cannot be read at what was reserved for it.

    Args:
        price: of the model.
        usage: what the service counted; None where it did not tell.
        most: what the call can have used; counts above it do not count.
    """
    counts = within(usage or Usage(None, None), most)
    given, answered = counts.input_tokens, counts.output_tokens
    input_read, output_read = _input_read(price, counts), _output_read(price, counts)
    if input_read and output_read:
        return Booked(float(price.cost(_agreeing(counts))), is_read=True)
    if input_read:
        usd = price.cost(_agreeing(replace(counts, output_tokens=0, thinking_tokens=0)))
    else:
        given = most.input if given is None else given
        usd = price.cost(Usage()) + given * price.highest(INPUTS, given)
    answered = most.output if answered is None else answered
    return Booked(float(usd + answered * price.highest(OUTPUTS, given or 0)), is_read=False)


def highest_cost(price: Price, most: MostTokens) -> float:
    """Return the most in USD that a call of at most so many tokens can cost, whatever is cached."""
    return book(price, None, most).cost


def _input_read(price: Price, counts: Usage) -> bool:
    parts = [name for name in INPUTS[1:] if price.rates(name)]
    if counts.input_tokens is None or any(getattr(counts, name) is None for name in parts):
        return False
    return _input_agrees(counts) or not parts


def _input_agrees(counts: Usage) -> bool:
    written = counts.cache_write_tokens or 0
    in_all = (counts.cached_tokens or 0) + written
    return in_all <= (counts.input_tokens or 0) and (counts.cache_write_1h_tokens or 0) <= written


def _output_read(price: Price, counts: Usage) -> bool:
    if counts.output_tokens is None:
        return False
    return not price.rates("thinking_tokens") or (
        counts.thinking_tokens is not None and counts.thinking_tokens <= counts.output_tokens
    )


def _agreeing(counts: Usage) -> Usage:
    """Return the counts with 0 for what has no price of its own and is not known."""
    known = {field.name: getattr(counts, field.name) or 0 for field in fields(Usage)}
    return Usage(**known)


def _listed(spec: ModelSpec, day: date) -> Price | None:
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(spec.name, None, spec.provider, None)
    except LookupError:
        return None
    lists = tuple(model.get_prices(moment) for moment in _moments(model, day)) if model.prices else ()
    price = Price(lists, f"genai-prices {genai_prices.__version__}")
    # A vector costs what its text costs.
    if not price.rates("input_tokens") or not (price.rates("output_tokens") or spec.encodes):
        return None
    return price


def _moments(model: "ModelInfo", day: date) -> list[datetime]:
    """Return a time for each list of prices that holds on a day at some hour."""
    from genai_prices.types import TimeOfDateConstraint

    hours = {time(0)}
    for entry in model.prices if isinstance(model.prices, list) else []:
        if isinstance(entry.constraint, TimeOfDateConstraint):
            hours |= {entry.constraint.start_time, entry.constraint.end_time}
    return [datetime.combine(day, hour.replace(tzinfo=hour.tzinfo or UTC)) for hour in sorted(hours, key=str)]
