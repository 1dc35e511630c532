"""What a call weighs and costs: tokens estimated and bounded, prices from the settings or genai-prices.

Nothing is looked up online.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..schemas.canonical import Json, canonical_text
from .chat import ChatRequest, Image, Reply, Usage
from .generators.request import CHOSEN, longest_seconds
from .options import ModelOptions, Prices
from .spec import BEFORE, COMPATIBLE, ModelSpec, parse_spec, setting_lines

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

PER_REQUEST = 1000
"""Tokens that a service may add to a request of its own, such as the text that explains a forced tool."""

PER_MESSAGE = 32
TYPICAL_IMAGE = 800
_TYPICAL_OVERHEAD = 8
_CHARACTERS_PER_TOKEN = 4.0
_TOKENS_PER_LETTER = 0.7
_WIDE = "\u2e80"


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has.

    A quarter of its ASCII characters, 0.7 for each of other scripts, and 1 from the East Asian scripts on.
    Tokenizers differ by half as much again either way.
    """
    if text.isascii():
        return round(len(text) / _CHARACTERS_PER_TOKEN + 0.4)
    wide = sum(character >= _WIDE for character in text)
    plain = sum(character.isascii() for character in text)
    other = len(text) - wide - plain
    return round(plain / _CHARACTERS_PER_TOKEN + other * _TOKENS_PER_LETTER + wide + 0.4)


def estimate_request(request: ChatRequest) -> int:
    """Return about how many input tokens a request has, its schema included."""
    total = 0 if request.schema is None else estimate_tokens(canonical_text(request.schema.schema))
    for message in request.messages:
        total += _TYPICAL_OVERHEAD
        for part in message.parts:
            total += TYPICAL_IMAGE if isinstance(part, Image) else estimate_tokens(part)
    return total


def bound_tokens(request: ChatRequest, options: ModelOptions) -> int:
    """Return a number of input tokens that the request cannot exceed.

    No tokenizer makes more tokens than UTF-8 bytes. The schema counts twice, as services lay it out in their
    own way; images count ``image_tokens`` each.
    """
    total = PER_REQUEST
    if request.schema is not None:
        total += 2 * _bytes(canonical_text(request.schema.schema)) + _bytes(request.schema.name)
    for message in request.messages:
        total += PER_MESSAGE
        for part in message.parts:
            total += options.image_tokens if isinstance(part, Image) else _bytes(part)
    return total


@dataclass(frozen=True, slots=True)
class MostTokens:
    """The most that one call, or several, can use."""

    input: int  # tokens of the prompt
    output: int  # tokens of the reply
    files: int = 0  # pictures or videos that are made
    seconds: float = 0.0  # of videos that are made


def most_tokens(request: ChatRequest, options: ModelOptions) -> MostTokens:
    """Return the most that a call can use."""
    most = MostTokens(bound_tokens(request, options), request.max_tokens)
    if CHOSEN not in request.extra:
        return most
    seconds = longest_seconds(request) if request.model.startswith("video:") else 0.0
    return replace(most, files=1, seconds=seconds)


def within(usage: Usage, most: MostTokens) -> Usage:
    """Return the counts of a call with none that is more than it can have used.

    Those of prompt and reply are lowered to the most; of what they are made of, nothing is known then.
    """
    given, answered = usage.input_tokens, usage.output_tokens
    if given is not None and given > most.input:
        usage = replace(usage, input_tokens=most.input, **dict.fromkeys(INPUTS[1:]))
    if answered is not None and answered > most.output:
        usage = replace(usage, output_tokens=most.output, **dict.fromkeys(OUTPUTS[1:]))
    parts = {name: _possible(getattr(usage, name), most.input) for name in INPUTS[1:]}
    return replace(
        usage, **parts, **{name: _possible(getattr(usage, name), most.output) for name in OUTPUTS[1:]}
    )


def checked(reply: Reply, most: MostTokens) -> Reply:
    """Return a reply whose counts are possible; what the service claimed instead is kept beside them."""
    if reply.usage is None:
        return reply
    usage = within(reply.usage, most)
    return reply if usage == reply.usage else replace(reply, usage=usage, claimed=reply.usage)


def _possible(count: int | None, most: int) -> int | None:
    return None if count is None or count > most else count


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


MILLION = 1_000_000
NAMES = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cached_tokens": "cache_read",
    "thinking_tokens": "output_reasoning",
    "cache_write_tokens": "cache_write",
    "cache_write_1h_tokens": "cache_write_1h",
    "image_input_tokens": "input_image",
    "image_output_tokens": "output_image",
    "video_output_tokens": "output_video",
}
"""Counts of a usage, and what the library calls them."""

INPUTS = (
    *("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
    "image_input_tokens",
)
OUTPUTS = ("output_tokens", "thinking_tokens", "image_output_tokens", "video_output_tokens")
"""All tokens of a prompt and of a reply, and the kinds among them that may have a price of their own."""

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
    """Prices of one model."""

    # price lists of the library, of which the dearest counts; none where tokens cost nothing
    lists: tuple["ModelPrice", ...]
    source: str  # ``settings``, the library and version that the prices come from, or that it runs here
    per_file: Decimal = Decimal(0)  # USD for a picture or video
    per_second: Decimal = Decimal(0)  # USD for a second of video

    def of_files(self, most: MostTokens) -> Decimal:
        """Return what the pictures and videos of calls cost beside their tokens, in USD."""
        return most.files * self.per_file + Decimal(str(most.seconds)) * self.per_second

    def cost(self, usage: Usage) -> Decimal:
        """Return what the tokens of a call cost whose counts are all known and agree, in USD."""
        if not self.lists:
            return Decimal(0)
        from genai_prices import Usage as Counts

        counts = {f"{NAMES[name]}_tokens": getattr(usage, name) for name in NAMES if self.rates(name)}
        return max(prices.calc_price(Counts(**counts))["total_price"] for prices in self.lists)

    def rates(self, name: str, tokens: int | None = None) -> tuple[Decimal, ...]:
        """Return the prices of a kind of token, per million; empty where it has none of its own.

        ``tokens``: most input tokens of a call: prices of longer calls are left out; None for all.
        """
        rates: list[Decimal] = []
        for prices in self.lists:
            value: Any = vars(prices).get(f"{NAMES[name]}_mtok")
            if value is None:
                continue
            rates.append(getattr(value, "base", value))
            tiers = getattr(value, "tiers", ())
            rates.extend(tier.price for tier in tiers if tokens is None or tier.start < tokens)
        return tuple(rates)

    def highest(self, names: tuple[str, ...], tokens: int) -> Decimal:
        """Return the dearest price, in USD, of kinds of token in a call of at most so many input tokens."""
        return max(rate for name in names for rate in (*self.rates(name, tokens), Decimal(0))) / MILLION


@dataclass(frozen=True, slots=True)
class Booked:
    """What a call is booked at."""

    cost: float  # USD
    # whether all counts that the price depends on could be read; else it is the most that the call can have
    # cost, as far as it is not known
    is_read: bool


BATCH = {"processing": "batch"}
"""How the library names the prices of requests in a batch. It has them from the services' own pages
(developers.openai.com/api/docs/pricing, ai.google.dev/gemini-api/docs/pricing, platform.claude.com/docs/en/
about-claude/pricing), as they stood on 14 October 2026; what was before, it does not know."""
BATCH_SHARE = Decimal("0.5")
"""What a request in a batch costs of the price of input and output where the library has no price for batches
of a model: the share that the three services name on those pages. Cached input then costs what it always
costs, as it does at some models."""


def batch_price_of(spec: ModelSpec, options: ModelOptions, day: date | None = None) -> Price | None:
    """Return the prices of a model for requests in a batch; None where nobody knows them."""
    own = options.prices
    if own is not None:
        return _shared(_own_price(own), Decimal(str(own.batch)), f"{own.batch:g} of the settings")
    return _listed(spec, day or LAST_DAY, batch=True)


def _shared(price: Price, share: Decimal, source: str) -> Price:
    """Return prices of which input and output cost a share."""
    from genai_prices.types import ModelPrice

    lists = []
    for prices in price.lists:
        known = {name: value for name, value in vars(prices).items() if not name.startswith("_")}
        halved = {
            name: _share_of(known[name], share) for name in ("input_mtok", "output_mtok") if known.get(name)
        }
        lists.append(ModelPrice(**{**known, **halved}))
    return replace(price, lists=tuple(lists), source=source)


def _share_of(rate: Any, share: Decimal) -> Any:  # noqa: ANN401 - a price, or one with tiers, of the library
    if isinstance(rate, Decimal):
        return rate * share
    tiers = [replace(tier, price=tier.price * share) for tier in rate.tiers]
    return replace(rate, base=rate.base * share, tiers=tiers)


def price_of(spec: ModelSpec, options: ModelOptions, day: date | None = None) -> Price | None:
    """Return the prices of a model; None where nobody knows them.

    A server given by its address has a price only in the settings: who runs it decides what it costs. What
    runs on this machine costs nothing.
    """
    own = options.prices
    if own is not None:
        return _own_price(own)
    if spec.is_local:
        return Price((), "it runs on this machine, and nobody charges for it")
    return None if spec.provider == COMPATIBLE else _listed(spec, day or LAST_DAY)


def _own_price(own: Prices) -> Price:
    from genai_prices.types import ModelPrice

    given = {
        "input": own.input,
        "output": own.output,
        "cache_read": own.cached_input,
        "cache_write": own.cache_write,
    }
    known = {f"{name}_mtok": Decimal(str(usd)) for name, usd in given.items() if usd is not None}
    per_file, per_second = (Decimal(str(usd or 0)) for usd in (own.picture, own.second))
    return Price((ModelPrice(**known),) if known else (), "settings", per_file, per_second)


def price_setting(model: str) -> str:
    """Return the lines that give the price of a model in the settings, with its unit."""
    made = next((makes for before, makes in BEFORE.items() if model.startswith(before)), "text")
    names, unit = {
        "image": (("picture",), "USD per picture"),
        "video": (("second",), "USD per second of video"),
    }.get(made, (("input", "output"), "USD per million tokens"))
    rates = ", ".join(f"{name} = PRICE" for name in names)
    free = ", 0 where nobody charges for it" if parse_spec(model).provider == COMPATIBLE else ""
    return setting_lines(model, f"prices = {{ {rates} }}  # PRICE in {unit}{free}")


def listed_like(name: str, provider: str | None = None) -> list[str]:
    """Return the spec of the model with a known price whose name is nearest to this one, if one is near.

    ``provider``: who serves it; None where that is not known.
    """
    from genai_prices.data_snapshot import get_snapshot

    specs = {
        model.id: f"{there.id}:{model.id}"
        for there in get_snapshot().providers
        if there.id in (("openai", "google", "anthropic") if provider is None else (provider,))
        for model in there.models
    }
    return [specs[close] for close in get_close_matches(name.lower(), specs, n=1, cutoff=0.75)]


def tell_unknown_price(model: str) -> str:
    """Return the sentence on a model whose price is not known: how it is given, and what may be mistyped."""
    spec = parse_spec(model)
    close = [] if spec.provider == COMPATIBLE or spec.draws else listed_like(spec.name, spec.provider)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"the price of {model} is not known{meant}; give it in fabula.toml:{price_setting(model)}"


def check_extra(spec: ModelSpec, options: ModelOptions) -> None:
    """Check that no setting in ``extra`` makes calls cost something else than what is listed."""
    name = _changing(options.extra)
    if name is None or options.prices is not None or price_of(spec, options) is None:
        return
    raise ConfigError(
        f'[models."{spec}"] extra.{name}',
        what="this parameter changes what a call costs, so the listed price would be wrong",
        fix=f"leave it out, or give the prices that apply with it:{price_setting(spec.text)}",
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

    A picture or video has its price whatever came of it: few services say what they charge for one that
    they refused.

    ``usage``: what the service counted; None where it did not tell. ``most``: what the call can have used;
    counts above it do not count.
    """
    files = price.of_files(most)
    if not price.lists:
        return Booked(float(files), is_read=True)
    counts = within(usage or Usage(None, None), most)
    given, answered = counts.input_tokens, counts.output_tokens
    input_read, output_read = _input_read(price, counts), _output_read(price, counts)
    if input_read and output_read:
        return Booked(float(files + price.cost(_agreeing(counts))), is_read=True)
    if input_read:
        usd = files + price.cost(_agreeing(replace(counts, **dict.fromkeys(OUTPUTS, 0))))
    else:
        given = most.input if given is None else given
        usd = files + price.cost(Usage()) + given * price.highest(INPUTS, given)
    answered = most.output if answered is None else answered
    return Booked(float(usd + answered * price.highest(OUTPUTS, given or 0)), is_read=False)


def highest_cost(price: Price, most: MostTokens) -> float:
    """Return the most in USD that calls that use at most so much can cost, whatever is cached."""
    return book(price, None, most).cost


def _input_read(price: Price, counts: Usage) -> bool:
    parts = [name for name in INPUTS[1:] if price.rates(name)]
    if counts.input_tokens is None or any(getattr(counts, name) is None for name in parts):
        return False
    return _input_agrees(counts) or not parts


def _input_agrees(counts: Usage) -> bool:
    written = counts.cache_write_tokens or 0
    in_all = (counts.cached_tokens or 0) + written + (counts.image_input_tokens or 0)
    return in_all <= (counts.input_tokens or 0) and (counts.cache_write_1h_tokens or 0) <= written


def _output_read(price: Price, counts: Usage) -> bool:
    if counts.output_tokens is None:
        return False
    parts = [getattr(counts, name) for name in OUTPUTS[1:] if price.rates(name)]
    known = [part for part in parts if part is not None]
    return len(known) == len(parts) and sum(known) <= counts.output_tokens


def _agreeing(counts: Usage) -> Usage:
    """Return the counts with 0 for what has no price of its own and is not known."""
    known = {field.name: getattr(counts, field.name) or 0 for field in fields(Usage)}
    return Usage(**known)


def _listed(spec: ModelSpec, day: date, *, batch: bool = False) -> Price | None:
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model = get_snapshot().find_provider_model(spec.name, None, spec.provider, None)
    except LookupError:
        return None
    known = _batch_start(model) if batch else None
    moments = _moments(model, day if known is None else max(day, known)) if model.prices else []
    context = BATCH if known is not None else None
    lists = tuple(model.get_prices(moment, context) for moment in moments)
    price = Price(lists, f"genai-prices {genai_prices.__version__}")
    # A vector costs what its text costs.
    if not price.rates("input_tokens") or not (price.rates("output_tokens") or spec.encodes):
        return None
    if batch and known is None:
        return _shared(price, BATCH_SHARE, f"{BATCH_SHARE} of {price.source}")
    return price


def _batch_start(model: "ModelInfo") -> date | None:
    """Return the first day for which the library knows what batches of a model cost; None for none."""
    known = [variant for variant in model.price_variants or () if variant.when == BATCH]
    starts = [getattr(variant.constraint, "start_date", date.min) for variant in known]
    return min(starts, default=None)


def _moments(model: "ModelInfo", day: date) -> list[datetime]:
    """Return a time for each list of prices that holds on a day at some hour."""
    from genai_prices.types import TimeOfDateConstraint

    hours = {time(0)}
    for entry in model.prices if isinstance(model.prices, list) else []:
        if isinstance(entry.constraint, TimeOfDateConstraint):
            hours |= {entry.constraint.start_time, entry.constraint.end_time}
    return [datetime.combine(day, hour.replace(tzinfo=hour.tzinfo or UTC)) for hour in sorted(hours, key=str)]
