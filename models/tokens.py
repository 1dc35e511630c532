"""How many tokens a request has: an estimate for plans, and a bound for budgets and what services claim."""

from dataclasses import dataclass, replace

from ..schemas.canonical import canonical_text
from .chat import ChatRequest, Image, Reply, Usage
from .options import ModelOptions

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
    """The most tokens that one call can use: of its prompt, and of its reply."""

    input: int
    output: int


def most_tokens(request: ChatRequest, options: ModelOptions) -> MostTokens:
    """Return the most tokens that a call can use."""
    return MostTokens(bound_tokens(request, options), request.max_tokens)


def within(usage: Usage, most: MostTokens) -> Usage:
    """Return the counts of a call with none that is more than it can have used.

    Those of prompt and reply are lowered to the most; of what they are made of, nothing is known then.
    """
    given, answered = usage.input_tokens, usage.output_tokens
    if given is not None and given > most.input:
        usage = replace(
            usage, input_tokens=most.input, cached_tokens=None, cache_write_tokens=None,
            cache_write_1h_tokens=None,
        )  # fmt: skip
    if answered is not None and answered > most.output:
        usage = replace(usage, output_tokens=most.output, thinking_tokens=None)
    return replace(
        usage,
        cached_tokens=_possible(usage.cached_tokens, most.input),
        cache_write_tokens=_possible(usage.cache_write_tokens, most.input),
        cache_write_1h_tokens=_possible(usage.cache_write_1h_tokens, most.input),
        thinking_tokens=_possible(usage.thinking_tokens, most.output),
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
