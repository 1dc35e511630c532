"""The full check of a chat model: questions with known answers, and what the model is fit for."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..models.chat import ChatRequest, Image, Message, Structured
from ..models.options import ModelOptions
from ..models.prices import MostTokens, book, highest_cost, most_tokens, price_of
from ..models.spec import ModelSettings, ModelSpec
from ..prompts.loader import load_prompt
from .questioning import SEED, Heard, ModelCheck, Questioning, Step, Use

if TYPE_CHECKING:
    from ..models.prices import Price

STORY = (
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
    return load_prompt("models/check_text").request(ModelSettings(model=first.model), SEED, story=STORY)


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
    first, setting = _problem(heard[0]), f'[models."{spec}"] structured = "{way}"'
    asked = [each for each in heard if each.reply is not None and each.request.structured == way]
    good = sum(not _problem(each) for each in asked)
    kept = f'{good} of {len(asked)} replies keep to their schema (structured = "{way}")'
    if not works:
        said = f"keeps to no schema, whoever enforces it: {first}"
        return Step("form", "failed", said, "choose another model, or a server that enforces schemas")
    if way != options.structured:
        lost = f'{kept}; with "{options.structured}" none did: {first}'
        fix = (
            f"write into fabula.toml: {setting}. Some servers, such as `transformers serve`, enforce nothing"
        )
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
