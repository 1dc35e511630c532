"""Step: where the tales of a book begin and end. A model is asked only about what the rules cannot tell."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import Field

from ...engine.stage import UNUSABLE, BadReply, Item, NoAnswer, Tools
from ...schemas.canonical import Json
from ..replies import Drafted, ask
from ..step import RULES, PlannerSettings, Step
from .blocks import Block, flat
from .outline import Limits, Outline, Tale, outline

PROMPT = "books/split_book"
MOST_SHOWN = 400
"""Paragraphs that one question shows."""
_OPENING = 160


class Settings(PlannerSettings):
    """Settings of the step."""

    least_words: int = Field(default=40, ge=1, description="Fewest words of a story.")
    most_words: int = Field(default=10_000, ge=1, description="A longer story is not plain.")
    times: float = Field(
        default=8.0, gt=1, description="So many times longer than half the stories, with breaks: not plain."
    )


def _sketch(item: Item) -> Json:
    return item["book"]


def _blocks(book: Json) -> list[Block]:
    return [Block(**block) for block in book["blocks"]]


def _outline(book: Json, settings: Settings) -> Outline:
    title = str(book["facts"].get("title") or book["file"])
    return outline(_blocks(book), Limits(settings.least_words, settings.most_words, settings.times), title)


def _as_json(made: Outline) -> Json:
    return {
        "tales": [tale.as_json() for tale in made.tales],
        "out": {str(number): why for number, why in sorted(made.out.items())},
    }


async def _ask(tools: Tools, book: Json) -> Drafted[Json]:
    """Return the outline; of each unsure tale the model says where others begin in it."""
    settings = tools.own(Settings)
    made, blocks = _outline(book, settings), _blocks(book)
    unsure = [tale for tale in made.tales if tale.unsure is not None]
    asked = [(tale, part) for tale in unsure for part in _parts(tale.blocks)]
    answers = await asyncio.gather(*(_boundaries(tools, book, blocks, tale, part) for tale, part in asked))
    known = [answer for answer in answers if answer is not None]
    if len(known) < len(answers) or not answers:
        return Drafted(_as_json(made), RULES)
    starts: dict[int, list[tuple[int, str]]] = {}
    for (tale, _), answer in zip(asked, known, strict=True):
        starts.setdefault(tale.at, []).extend(answer.value)
    tales: list[Tale] = []
    for tale in made.tales:
        own = starts.get(tale.at)
        tales += [tale] if own is None else divided(tale, own, blocks, made.out)
    made.tales = [tale for tale in tales if tale.blocks]
    return Drafted(_as_json(made), known[0].maker)


def _parts(blocks: Sequence[int]) -> list[Sequence[int]]:
    return [blocks[start : start + MOST_SHOWN] for start in range(0, len(blocks), MOST_SHOWN)]


async def _boundaries(
    tools: Tools, book: Json, blocks: Sequence[Block], tale: Tale, part: Sequence[int]
) -> Drafted[list[tuple[int, str]]] | None:
    shown = {
        "title": tale.title,
        "language": str(book["facts"].get("language", "und")),
        "paragraphs": [flat(blocks[number].text)[:_OPENING] for number in part],
    }
    try:
        return await ask(tools, PROMPT, partial(_read, part=part), **shown)
    except NoAnswer as missed:
        if missed.code not in UNUSABLE:
            raise
        return None


def _read(reply: Json, part: Sequence[int]) -> list[tuple[int, str]]:
    """Return at which blocks something begins, and what; numbers only choose among those shown."""
    numbers = [entry["paragraph"] for entry in reply["boundaries"]]
    wrong = sorted({number for number in numbers if not 1 <= number <= len(part)})
    if wrong:
        raise BadReply(f"the paragraphs are numbered 1 to {len(part)}; there is no {wrong[0]}")
    if numbers != sorted(set(numbers)):
        raise BadReply("name each paragraph once, in rising order")
    return [(part[entry["paragraph"] - 1], entry["starts"]) for entry in reply["boundaries"]]


def divided(
    tale: Tale, starts: Sequence[tuple[int, str]], blocks: Sequence[Block], out: dict[int, str]
) -> list[Tale]:
    """Return what a tale is divided into."""
    at = dict(starts)
    tales: list[Tale] = [replace(tale, blocks=[], unsure=None)]
    outer, current = tales[0], tales[0]
    for number in tale.blocks:
        what = at.get(number)
        if what in ("story", "inner_story"):
            short = len(blocks[number].text) <= 80 and blocks[number].text.count("\n") == 0
            title = flat(blocks[number].text) if short else f"{tale.title}, {len(tales) + 1}"
            frame = outer.at if what == "inner_story" else tale.frame
            current = Tale(title, "", number, [], list(tale.chapter), frame)
            tales.append(current)
            outer = current if what == "story" else outer
            if short:
                out[number] = "heading"
                continue
        elif what == "frame_again":
            current = outer
        if what == "matter":
            current = Tale("", "", number)
        if current.title:
            current.blocks.append(number)
        else:
            out[number] = "front_or_back_matter"
    return tales


def _rules(book: Json, settings: Settings) -> Json:
    return _as_json(_outline(book, settings))


STEP: Step[Json, Settings] = Step(
    id=PROMPT,
    version=2,
    writes=("outline",),
    reads=("book",),
    sketch=_sketch,
    rules=_rules,
    ask=_ask,
    settings=Settings,
)
