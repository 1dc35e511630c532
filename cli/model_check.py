"""The check behind ``fabula models check``: one small structured call, and what it shows."""

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..engine.asker import model_error
from ..errors import FabulaError
from ..models.chat import CallFault, ChatRequest, Reply, Usage, encode_request, unpacked
from ..models.generators.request import PictureRequest, read_generated
from ..models.keys import SHORT_KEY, key_status
from ..models.limits import Clock, SystemClock
from ..models.options import ModelOptions, options_for
from ..models.prices import MostTokens, most_tokens
from ..models.spec import ModelSettings, ModelSpec, is_stand_in, parse_spec
from .checkup import place_of
from .common import warn
from .full_check import ask_more, tell_cost
from .questioning import SEED, Heard, ModelCheck, Questioning, Step

if TYPE_CHECKING:
    from decimal import Decimal

    from ..models.prices import Price

PROMPT = "models/check"
STORY = "A hungry crow begged for food. A fox shared her bread with him, and the crow never forgot it."
SECONDS = 4.0
"""Duration of the video that is made, in seconds: what services offer as the shortest."""
START = 20.0
"""Most seconds that a server on this machine, started a moment ago, has to begin to listen."""


def check_model(
    text: str, sections: Mapping[str, Mapping[str, Any]], clock: Clock | None = None, *, full: bool = False
) -> ModelCheck:
    """Ask a model as a builder would, and return what came of it: once, or in full.

    The full check has questions with known answers, about a story and about pictures. Chat models that cost
    nothing get it unasked, unless a program stands in for one.

    Args:
        text: the model's spec.
        sections: the settings of models: spec -> key -> value.
        clock: measures how long the calls take.
        full: whether a model that costs something gets the full check, too.

    Raises:
        ConfigError: the spec or a setting is wrong.
        MissingRequirement: the key or the service's library is missing.
    """
    from ..models.prices import check_extra, highest_cost, price_of
    from ..prompts.loader import load_prompt

    spec = parse_spec(text)
    options = options_for(spec, sections)
    check_extra(spec, options)
    if spec.encodes:
        request = encode_request(spec.text, STORY)
    elif spec.draws:
        request = picture_to_check(spec).chat()
    else:
        request = load_prompt(PROMPT).request(ModelSettings(model=spec.text), SEED, story=STORY)
    price = price_of(spec, options)
    chats = spec.makes == "text"
    is_free = chats and price is not None and not highest_cost(price, most_tokens(request, options))
    full = chats and full
    if full and not is_free:
        warn(tell_cost(request, options, price))
    _await_server(options.base_url or spec.base_url or "")

    async def ask() -> ModelCheck:
        async with Questioning(spec, options, clock or SystemClock()) as asking:
            heard = await asking.ask(request)
            short = _short(spec, options, heard)
            reply = heard.reply
            # A stand-in is a program: what it answers means nothing, and it is there to be tried.
            if reply is None or not (full or (is_free and not is_stand_in(reply.reported_model))):
                return short
            return await ask_more(asking, heard, short)

    return asyncio.run(ask())


def _short(spec: ModelSpec, options: ModelOptions, heard: Heard) -> ModelCheck:
    """Return what one call shows."""
    reply, request = heard.reply, heard.request
    if reply is None:
        assert heard.fault is not None
        failed = (_address(spec, options), _key(spec, options), _fault(spec, heard.fault))
        return ModelCheck(spec.text, failed, heard.seconds)
    price = _price(spec, options, reply, most_tokens(request, options))
    loaded = ", loading included," if spec.is_local and not spec.draws else ""
    named = reply.reported_model or "an unnamed model"
    steps = (
        _address(spec, options),
        _key(spec, options),
        Step("call", "ok", f"answered in {heard.seconds:.1f} s{loaded} as {named}"),
        *(_made(spec, reply) if spec.draws else [_read(spec, options, request, reply)]),
        *([] if spec.draws and reply.usage == Usage() else [_usage(reply)]),
        price[0],
    )
    return ModelCheck(spec.text, steps, heard.seconds, reply.usage, price[1])


def _await_server(address: str) -> None:
    """Return when something listens at an address of this machine, or does not within :data:`START`."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    if host not in ("127.0.0.1", "localhost", "::1") or port is None:
        return
    end, told = time.monotonic() + START, False
    while time.monotonic() < end:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            if not told:
                warn(f"nothing listens at {host}:{port} yet; waiting, {START:g} s at most")
            told = True
            time.sleep(0.1)
        else:
            return


def picture_to_check(spec: ModelSpec) -> PictureRequest:
    """Return a small picture, or the shortest video, that shows whether a generator can be used."""
    prompt = "A fox under an oak tree, in plain colours, without any text."
    seconds = SECONDS if spec.makes == "video" else None
    if spec.provider == "diffusers":
        return PictureRequest(spec.text, prompt, seed=SEED, seconds=seconds, width=256, height=256, steps=2)
    return PictureRequest(spec.text, prompt, seed=SEED, seconds=seconds)  # services have sizes of their own


def _address(spec: ModelSpec, options: ModelOptions) -> Step:
    address = options.base_url or spec.base_url or "its usual address"
    if spec.is_local:
        return Step("model", "ok", f"{spec.name} ({spec.provider}) on this machine")
    return Step("model", "ok", f"{spec.name} ({spec.provider}) at {address}")


def _key(spec: ModelSpec, options: ModelOptions) -> Step:
    status = key_status(spec, options)
    if spec.is_local:
        return Step("key", "ok", "none is needed: it runs on this machine")
    if status.source is None:
        return Step("key", "ok", "none is sent; a server that wants one needs api_key_env in its settings")
    where = f"{status.variable}, in {place_of(status.source)}"
    return (
        Step("key", "warning", where, f"it is short: {SHORT_KEY}")
        if status.is_short
        else Step("key", "ok", where)
    )


def _fault(spec: ModelSpec, fault: CallFault) -> Step:
    status = f" (HTTP {fault.status})" if fault.status else ""
    if fault.kind in ("too_long", "bad_request"):
        fix = "the service does not take this small request: check the model's name and settings"
    else:
        fix = model_error(spec.text, fault).fix.partition("; then give")[0]
    return Step("call", "failed", f"{fault.kind}{status}: {fault.message}", fix)


def _read(spec: ModelSpec, options: ModelOptions, request: ChatRequest, reply: Reply) -> Step:
    return _vector(reply) if spec.encodes else _reply(spec, options, request, reply)


def _vector(reply: Reply) -> Step:
    if reply.outcome != "ok":
        fix = "choose another model: this one, or its server, gives no embeddings"
        return Step("reply", "failed", f"{reply.outcome}: {reply.detail}", fix)
    return Step("reply", "ok", f"a vector of {unpacked(reply.text).size} numbers")


def _reply(spec: ModelSpec, options: ModelOptions, request: ChatRequest, reply: Reply) -> Step:
    from ..models.replies import Malformed, parse_reply

    way = f'structured = "{options.structured}"'
    if reply.outcome != "ok":
        return Step(
            "reply", "failed", f"{reply.outcome}: {reply.detail or reply.text[:200]}", _looser(spec, way)
        )
    try:
        parsed = parse_reply(reply.text, request.schema)
    except Malformed as malformed:
        return Step("reply", "failed", f"{malformed.problem} ({way})", _looser(spec, way))
    if parsed.notes:
        return Step(
            "reply", "warning", f"keeps to the schema after repairs: {', '.join(parsed.notes)} ({way})"
        )
    return Step("reply", "ok", f"keeps to the schema ({way})")


def _made(spec: ModelSpec, reply: Reply) -> list[Step]:
    """Return what came back from a model that makes pictures or videos."""
    if reply.outcome != "ok":
        fix = "choose another model, or look at its settings: this harmless request gave nothing"
        return [Step("reply", "failed", f"{reply.outcome}: {reply.detail or reply.text[:200]}", fix)]
    made = read_generated(reply.text)
    size = f"{made.file.media_type}, {len(made.file.data):,} bytes"
    steps = [
        _picture(made.file.data, size) if spec.makes == "image" else Step("reply", "ok", f"a video: {size}")
    ]
    if reply.detail:
        steps.append(Step("prompt", "warning", reply.detail))
    if made.revised_prompt is not None:
        steps.append(Step("prompt", "warning", f"the service rewrote it: {made.revised_prompt[:200]}"))
    if made.unsupported:
        names = ", ".join(made.unsupported)
        steps.append(Step("choices", "warning", f"not taken: {names}; this is recorded with each file"))
    return steps


def _picture(data: bytes, size: str) -> Step:
    from ..media.images import open_picture

    try:
        image = open_picture(data).image
    except FabulaError as error:
        return Step(
            "reply", "failed", f"no picture that can be opened ({size}): {error}", "choose another model"
        )
    return Step("reply", "ok", f"a picture of {image.width} x {image.height} pixels: {size}")


def _looser(spec: ModelSpec, way: str) -> str:
    if way.endswith('"prompt"'):
        return "choose another model: this one does not keep to a schema"
    return f'try structured = "json", then "prompt", in fabula.toml under [models."{spec}"]'


def _usage(reply: Reply) -> Step:
    nothing = "nothing to do; a missing count is booked at the maximum that the call can cost"
    usage = reply.usage
    if usage is None:
        return Step("usage", "warning", "not reported", nothing)
    if reply.claimed is not None:
        claims = f"{_count(reply.claimed.input_tokens)} tokens in, {_count(reply.claimed.output_tokens)} out"
        fix = "nothing to do; such a call is booked at the maximum that it can cost"
        return Step("usage", "warning", f"more than the call can have used: {claims}", fix)
    if usage.input_tokens is None or usage.output_tokens is None:
        counts = f"{_count(usage.input_tokens)} tokens in, {_count(usage.output_tokens)} out"
        return Step("usage", "warning", f"not all of it can be read: {counts}", nothing)
    thinking = f", {usage.thinking_tokens} of them thinking" if usage.thinking_tokens else ""
    return Step("usage", "ok", f"{usage.input_tokens} tokens in, {usage.output_tokens} out{thinking}")


def _count(tokens: int | None) -> str:
    return "an unknown number of" if tokens is None else str(tokens)


def _price(
    spec: ModelSpec, options: ModelOptions, reply: Reply, most: MostTokens
) -> tuple[Step, float | None]:
    from ..models.prices import book, price_of, price_setting

    price = price_of(spec, options)
    if price is None:
        fix = (
            f"give it in fabula.toml: {price_setting(spec.text)}; without it costs are unknown and"
            " --max-cost is refused"
        )
        return Step("price", "warning", "not known", fix), None
    booked = book(price, reply.usage, most)
    this = f"this call {'' if booked.is_read else 'at most '}{booked.cost:.6f} USD"
    listed = _listed(price)
    return Step("price", "ok", f"{listed} ({price.source}); {this}" if listed else price.source), booked.cost


def _listed(price: "Price") -> str:
    listed = []
    if price.lists:
        given, answered = price.rates("input_tokens"), price.rates("output_tokens")
        drawn = (*price.rates("image_output_tokens"), *price.rates("video_output_tokens"))
        more = f", {_range(drawn)} for what is drawn" if drawn else ""
        listed.append(f"{_range(given)} in, {_range(answered)} out{more}, USD per million tokens")
    for usd, unit in ((price.per_file, "file"), (price.per_second, "second")):
        if usd:
            listed.append(f"{float(usd):g} USD per {unit}")
    return "; ".join(listed)


def _range(rates: "Sequence[Decimal]") -> str:
    values = [min(rates, default=0), max(rates, default=0)]
    return " to ".join(f"{float(value):g}" for value in dict.fromkeys(values))
