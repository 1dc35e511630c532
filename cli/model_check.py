"""The check behind ``fabula models check``: one small structured call, and what it shows."""

import asyncio
import io
import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from ..engine.asker import model_error
from ..errors import FabulaError
from ..models.chat import (
    CallFault,
    ChatRequest,
    Image,
    Message,
    Reply,
    Structured,
    Usage,
    encode_request,
    unpacked,
)
from ..models.generators.request import PictureRequest, read_generated
from ..models.keys import SHORT_KEY, key_status
from ..models.limits import Clock, SystemClock
from ..models.options import ModelOptions, options_for
from ..models.prices import MostTokens, book, highest_cost, most_tokens, price_of
from ..models.spec import ModelSettings, ModelSpec, is_stand_in, parse_spec, setting_lines
from ..prompts.loader import load_prompt
from .checkup import place_of
from .common import warn

if TYPE_CHECKING:
    from decimal import Decimal

    from ..models.client import ModelClient
    from ..models.prices import Price


# -- How ``fabula models check`` asks one model, and what it found

SEED = 42
Use: TypeAlias = Literal["drafting", "judging"]
"""What a model can be used for: drafting fields of records, or judging pictures."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at."""

    name: str  # what it is
    status: Literal["ok", "warning", "failed"]  # ``ok``, ``warning`` (works, with a loss), ``failed``
    detail: str  # what was found
    fix: str = ""  # what to do, if anything


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What a check of one model found."""

    model: str  # its spec
    steps: tuple[Step, ...]  # everything looked at, in order
    seconds: float  # time that the call took
    usage: Usage | None = None  # tokens of the call, where the service tells
    # USD of all calls, where the price is known; at most that, where tokens are not
    cost: float | None = None
    # what the model is fit for; None where only the short check was made
    fit: tuple[Use, ...] | None = None

    @property
    def passed(self) -> bool:
        """Whether a builder can work with the model."""
        if self.fit is not None:
            return bool(self.fit)
        return all(step.status != "failed" for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Return the check as plain JSON."""
        return {**asdict(self), "passed": self.passed}

    def lines(self) -> Iterator[str]:
        """Yield the check as lines for people."""
        for step in self.steps:
            yield f"{step.status:9}{step.name:8}{step.detail}"
            if step.fix:
                yield f"{'':9}fix: {step.fix}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one call: a reply, or why there is none."""

    request: ChatRequest  # as the settings want it asked
    reply: Reply | None
    fault: CallFault | None
    seconds: float  # from when it was sent


class Questioning:
    """Asks one model, each question once: who checks wants to see a fault, not wait until it has passed."""

    def __init__(self, spec: ModelSpec, options: ModelOptions, clock: Clock) -> None:
        self.spec, self.options = spec, options
        self._clock = clock
        self._client: ModelClient

    async def __aenter__(self) -> "Questioning":
        """Open the model."""
        from ..models.client import ModelClient
        from ..models.keys import Redactor
        from ..models.registry import open_model

        once = self.options.model_copy(update={"attempts": 1})
        self._client = ModelClient(open_model(self.spec, once, Redactor()), once)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the model."""
        await self._client.close()

    async def ask(self, request: ChatRequest, structured: Structured | None = None) -> Heard:
        """Ask a question; ``structured``: who enforces its schema, if not whom the settings say."""
        changed = {} if structured is None else {"structured": structured}
        asked = self.options.model_copy(update=changed).apply(request)
        started = self._clock.monotonic()

        def send() -> None:  # loading the service's library takes longer than many a reply
            nonlocal started
            started = self._clock.monotonic()

        reply = fault = None
        try:
            reply = (await self._client.call(asked, on_send=send)).reply
        except CallFault as why:
            fault = why
        return Heard(asked, reply, fault, self._clock.monotonic() - started)


# -- The full check of a chat model: questions with known answers, and what the model is fit for

FULL_STORY = (
    "Nia gave her red kite to her brother Omar, because his own had torn. Omar flew it at the lake, and lost"
    " it on the way home. Nia was not angry. The next day she made a new one out of blue paper."
)
TEXT: Mapping[str, Any] = {
    "flown_by": "Omar", "torn": "the kite of Omar", "colour_made": "blue", "nia_was_angry": False,
    "children": 2,
}  # fmt: skip
"""Field of a reply -> the right answer, of a story."""
SIGHT: Mapping[str, Any] = {
    "left_shape": "square", "left_colour": "red", "right_shape": "circle", "right_colour": "blue",
    "boats": 3,
}  # fmt: skip
"""The same of two pictures."""
RIGHT = {"text": 4, "sight": 5}
"""So many of the five answers must be right; who guesses gets there once in 20 times, and once in 700."""
MOST_CALLS = 5
"""The first, two more ways to enforce its schema, the story, the pictures."""
WAYS: tuple[Structured, ...] = ("schema", "json", "prompt")


def tell_cost(request: ChatRequest, options: ModelOptions, price: "Price | None") -> str:
    """Return what the full check costs at most, before it is made."""
    if price is None:
        return f"the full check makes {MOST_CALLS} calls at most; what they cost is not known"
    most = MostTokens(0, 0)
    for asked in (request, *[request] * len(WAYS[1:]), text_request(request), picture_request(request)):
        each = most_tokens(asked, options)
        most = MostTokens(most.input + each.input, most.output + each.output)
    return f"the full check makes {MOST_CALLS} calls at most, for {highest_cost(price, most):.6f} USD at most"


def text_request(first: ChatRequest) -> ChatRequest:
    """Return the questions about a story, to the model of another request."""
    return load_prompt("models/check_text").request(ModelSettings(model=first.model), SEED, story=FULL_STORY)


def picture_request(first: ChatRequest) -> ChatRequest:
    """Return the questions about two pictures, shown as judges show a storyboard."""
    asked = load_prompt("models/check_pictures").request(ModelSettings(model=first.model), SEED)
    system, user = asked.messages
    shown = ("Image 1", shapes(), "Image 2", boats())
    return replace(asked, messages=(system, Message("user", (*shown, *user.parts))))


async def ask_more(asking: Questioning, first: Heard, short: ModelCheck) -> ModelCheck:
    """Ask what the short check leaves open, and add what came to it."""
    heard, way = [first], asking.options.structured
    if _problem(first):
        for other in WAYS[WAYS.index(way) + 1 :]:
            heard.append(await asking.ask(first.request, other))
            if not _problem(heard[-1]):
                way = other
                break
    works = not _problem(heard[-1])
    told = await asking.ask(text_request(first.request), way)
    seen = await asking.ask(picture_request(first.request), way)
    form = _form(asking.spec, asking.options, [*heard, told, seen], way, works=works)
    text, sight = _graded("text", told, TEXT), _graded("sight", seen, SIGHT)
    if seen.fault is not None:  # it may be a model of text, and good at that
        said = f"no pictures are taken: {seen.fault.message}"
        sight = Step("sight", "warning", said, "judge pictures with another model")
    fit: list[Use] = []
    if form.status != "failed" and text.status == "ok":
        fit = ["drafting", "judging"] if sight.status == "ok" else ["drafting"]
    calls = [*heard, told, seen]
    shown = [step for step in short.steps if step.name not in ("reply", "price")]
    cost, price = _cost(asking, calls)
    steps = (*shown, form, text, sight, _speed(calls), *_memory(asking), price, _fit(fit))
    return replace(short, steps=steps, cost=cost, fit=tuple(fit))


def _problem(heard: Heard) -> str:
    """Return why a reply is of no use; empty where it keeps to its schema."""
    from ..models.replies import Malformed, parse_reply

    if heard.reply is None:
        return str(heard.fault)
    if heard.reply.outcome != "ok":
        return f"{heard.reply.outcome}: {heard.reply.detail or heard.reply.text[:200]}"
    try:
        parse_reply(heard.reply.text, heard.request.schema)
    except Malformed as malformed:
        return malformed.problem
    return ""


def _form(
    spec: ModelSpec, options: ModelOptions, heard: Sequence[Heard], way: Structured, *, works: bool
) -> Step:
    first, setting = _problem(heard[0]), setting_lines(spec.text, f'structured = "{way}"')
    asked = [each for each in heard if each.reply is not None and each.request.structured == way]
    good = sum(not _problem(each) for each in asked)
    kept = f'{good} of {len(asked)} replies keep to their schema (structured = "{way}")'
    if not works and not good:
        said = f"keeps to no schema, whoever enforces it: {first}"
        return Step("form", "failed", said, "choose another model, or a server that enforces schemas")
    if way != options.structured:
        lost = f'{kept}; with "{options.structured}" none did: {first}'
        fix = "some servers, such as `transformers serve`, enforce nothing; write into fabula.toml:" + setting
        return Step("form", "warning", lost, fix)
    if good == len(asked):
        return Step("form", "ok", kept)
    problems = [_problem(each) for each in asked if _problem(each)]
    return Step("form", "warning" if good > 1 else "failed", f"{kept}: {problems[0]}", "choose another model")


def _graded(name: str, heard: Heard, right: Mapping[str, Any]) -> Step:
    """Return how many answers of a reply are right, with those that are not."""
    problem = _problem(heard)
    if problem:
        return Step(name, "failed", f"no answers: {problem}", "choose another model")
    assert heard.reply is not None
    from ..models.replies import read_json

    said, _ = read_json(heard.reply.text)
    assert isinstance(said, dict)
    wrong = [field for field, answer in right.items() if not _is(said.get(field), answer)]
    told = f"{len(right) - len(wrong)} of {len(right)} answers right"
    if wrong:
        shown = (f"{field} {json.dumps(said[field], ensure_ascii=False)[:60]} for {json.dumps(right[field])}"
                 for field in wrong)  # fmt: skip
        told += f"; wrong: {', '.join(shown)}"
    if len(right) - len(wrong) >= RIGHT[name]:
        return Step(name, "ok", told)
    blind = "it may get no pictures: look at the server's settings, or " if name == "sight" else ""
    return Step(name, "failed", told, f"{blind}choose another model")


def _is(said: object, right: object) -> bool:
    if isinstance(right, str) and isinstance(said, str):
        return right.casefold() in said.casefold()
    return said == right and type(said) is type(right)


def _speed(heard: Sequence[Heard]) -> Step:
    """Return how fast replies came; the first is left out, as a model may be loaded for it."""
    later = [each for each in heard[1:] if each.reply is not None] or list(heard[:1])
    seconds = sum(each.seconds for each in later)
    counts = [each.reply.usage.output_tokens for each in later if each.reply and each.reply.usage]
    said = f"{seconds / len(later):.1f} s a call"
    if len(counts) == len(later) and None not in counts and seconds > 0:
        said += f", {sum(count or 0 for count in counts) / seconds:.1f} tokens a second"
    return Step("speed", "ok", f"{said}, one call at a time")


def _memory(asking: Questioning) -> list[Step]:
    if asking.spec.provider != "hf":
        return []
    from ..models.options import find_files

    parameters, size, precision = find_files(asking.spec, asking.options).size(asking.options.dtype)
    said = f"{size / 1e9:.1f} GB for {parameters / 1e6:,.0f} million parameters in {precision}"
    return [Step("memory", "ok", f"{said}, and more for what it reads")]


def _cost(asking: Questioning, heard: Sequence[Heard]) -> tuple[float | None, Step]:
    price = price_of(asking.spec, asking.options)
    if price is None:
        return None, Step("price", "warning", "not known", "give it in fabula.toml: see docs/models.md")
    booked = [
        book(price, each.reply.usage if each.reply else None, most_tokens(each.request, asking.options))
        for each in heard
        if each.reply is not None or (each.fault is not None and each.fault.maybe_paid)
    ]
    cost = sum(each.cost for each in booked)
    most = "" if all(each.is_read for each in booked) else "at most "
    said = f"{price.source}: {most}{cost:.6f} USD for {len(booked)} calls" if cost else price.source
    return cost, Step("price", "ok", said)


def _fit(fit: Sequence[Use]) -> Step:
    if not fit:
        return Step("fit", "failed", "neither for drafting nor for judging", "choose another model")
    told = "drafting and judging" if "judging" in fit else "drafting; it judges no pictures"
    return Step("fit", "ok", told)


def shapes() -> Image:
    """Return a red square left of a blue circle."""
    from PIL import Image as Pictures
    from PIL import ImageDraw

    picture = Pictures.new("RGB", (320, 192), "white")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((30, 46, 130, 146), fill=(220, 30, 30))
    draw.ellipse((190, 46, 290, 146), fill=(30, 60, 220))
    return _encoded(picture)


def boats() -> Image:
    """Return three boats with sails on the sea."""
    from PIL import Image as Pictures
    from PIL import ImageDraw

    picture = Pictures.new("RGB", (384, 192), (190, 220, 245))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 130, 384, 192), fill=(40, 110, 170))
    for left in (30, 150, 270):
        draw.polygon([(left, 118), (left + 84, 118), (left + 66, 146), (left + 18, 146)], fill=(110, 60, 30))
        draw.line([(left + 42, 118), (left + 42, 44)], fill=(60, 40, 20), width=4)
        draw.polygon([(left + 46, 46), (left + 46, 110), (left + 82, 110)], fill=(250, 250, 250))
    return _encoded(picture)


def _encoded(picture: Any) -> Image:  # noqa: ANN401 - a picture of PIL
    data = io.BytesIO()
    picture.save(data, "PNG")
    return Image(data.getvalue(), "image/png")


# --

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
    from ..models.registry import check_adapter
    from ..prompts.loader import load_prompt

    spec = parse_spec(text)
    options = options_for(spec, sections)
    check_adapter(spec, options)
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
            "without it costs are unknown and --max-cost is refused; give it in fabula.toml:"
            f"{price_setting(spec.text)}"
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
