"""Step: where the tales of a book begin and end. A model is asked only about what the rules cannot tell."""

import asyncio
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from pydantic import Field

from ...engine.stage import UNUSABLE, BadReply, Item, NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ...validators.retellings import title_key
from ..replies import Drafted, ask
from ..step import RULES, PlannerSettings, Step
from .blocks import Block, flat
from .headings import MATTER, Heading, headings, left_out

# -- The tales of a book by rules: sections under headings, frames and what is told in them, what is unsure

_TOLD_IN = re.compile(
    r"^[\[(]?\s*(?:told|related|a tale) (?:with)?in(?: the (?:story|tale) of)?:?\s+(.+?)\s*[\])]?\.?$", re.I
)
_BARE = ("number", "given")
_AGAIN = re.compile(r"\b(?:continued|resumed|concluded|frame)\b|\bagain\)?$", re.IGNORECASE)


@dataclass(slots=True)
class Tale:
    """A tale, as blocks of its book."""

    title: str  # its title
    number: str  # its number in the book, as it stands there
    at: int  # number of the block where it begins
    blocks: list[int] = field(default_factory=list)  # numbers of the blocks that are its text, in order
    chapter: list[str] = field(default_factory=list)  # the headings above it, outermost first
    frame: int | None = None  # where the tale begins that it is told in; None for none
    unsure: str | None = None  # why the rules cannot say that this is one tale; None where they can

    def as_json(self) -> Json:
        """Return the tale as plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Limits:
    """When the rules take something for a tale."""

    least: int  # fewest words of a tale
    most: int  # a longer one is unsure
    times: float  # one so many times as long as half the tales of its book, and with breaks in it, is unsure


@dataclass(slots=True)
class Outline:
    """What a book holds."""

    tales: list[Tale] = field(default_factory=list)  # its tales, in order
    out: dict[int, str] = field(default_factory=dict)  # number of a block that is in no tale -> why


@dataclass(slots=True)
class _Section:
    heading: Heading
    blocks: list[int]
    words: int
    above: list["_Section"]
    matter: bool = False
    below: list["_Section"] = field(default_factory=list)
    tale: Tale | None = None


def outline(blocks: Sequence[Block], limits: Limits, title: str) -> Outline:
    """Return the outline of a book by rules."""
    result = Outline(out=left_out(blocks))
    marks = headings(blocks, result.out)
    kept = [n for n in range(len(blocks)) if n not in result.out and blocks[n].role != "break"]
    first = marks[0].at if marks else len(blocks)
    before = [number for number in kept if number < first]
    if not marks:
        words = sum(blocks[number].words for number in before)
        if words >= limits.least:
            whole = Tale(
                title, "", before[0], before, unsure="it has no headings: it may be one tale or many"
            )
            result.tales.append(whole)
        else:
            result.out.update(dict.fromkeys(before, "too_short"))
        return result
    result.out.update(dict.fromkeys(before, "front_matter"))
    for section in _sections(blocks, marks, kept):
        _settle(section, result, blocks, limits, title)
    _tell_unsure(result.tales, blocks, limits)
    return result


def _sections(blocks: Sequence[Block], marks: Sequence[Heading], kept: Sequence[int]) -> list[_Section]:
    """Return the sections under headings, each with those above and below it."""
    sections: list[_Section] = []
    above: list[_Section] = []
    ends = [heading.at for heading in marks[1:]] + [len(blocks)]
    position = 0
    for heading, end in zip(marks, ends, strict=True):
        own = []
        while position < len(kept) and kept[position] < end:
            if kept[position] >= heading.end:
                own.append(kept[position])
            position += 1
        while above and above[-1].heading.level >= heading.level:
            above.pop()
        section = _Section(heading, own, sum(blocks[number].words for number in own), list(above))
        named = MATTER.match(heading.title or heading.number) is not None
        section.matter = named or any(section.matter for section in above)
        if above:
            above[-1].below.append(section)
        above.append(section)
        sections.append(section)
    return sections


def _settle(section: _Section, result: Outline, blocks: Sequence[Block], limits: Limits, title: str) -> None:
    """Make a section a tale, or a part of one, or leave it out."""
    heading, above = section.heading, section.above
    outer = [section for section in reversed(above) if section.tale is not None]
    marks = list(range(heading.at, heading.end))
    if section.matter:
        result.out.update(dict.fromkeys([*marks, *section.blocks], "front_or_back_matter"))
        return
    _leave_title(section, heading, blocks, result)
    parent = next(
        (frame for frame in outer if _goes_on(heading, frame.heading, nearest=frame is outer[0])), None
    )
    if parent is not None and parent.tale is not None:
        if not parent.tale.blocks:
            _leave_title(section, parent.heading, blocks, result)
        parent.tale.blocks += section.blocks
        result.out.update(dict.fromkeys(marks, "heading"))
        return
    result.out.update(dict.fromkeys(marks, "heading"))
    parts = [below for below in section.below if not below.heading.title and below.heading.by in _BARE]
    if section.words + sum(part.words for part in parts if heading.title) < limits.least:
        result.out.update(dict.fromkeys(section.blocks, "heading_text" if section.below else "too_short"))
        return
    tale = Tale(
        heading.title or " ".join(filter(None, (title, heading.number))), heading.number, heading.at,
        list(section.blocks), [_line(outer.heading) for outer in above],
    )  # fmt: skip
    tale.frame = outer[0].tale.at if outer and outer[0].tale is not None else None
    cue = _TOLD_IN.match(flat(blocks[tale.blocks[0]].text)) if tale.blocks else None
    if cue:
        result.out[tale.blocks.pop(0)] = "cue"
        tale.frame = next((told_in.at for told_in in result.tales if _named(cue[1], told_in)), tale.frame)
    section.tale = tale
    result.tales.append(tale)


def _leave_title(section: _Section, heading: Heading, blocks: Sequence[Block], result: Outline) -> None:
    """Leave out of a section the lines at its beginning that say the heading again."""
    again = _title_again(heading, [flat(blocks[number].text) for number in section.blocks[:4]])
    result.out.update(dict.fromkeys(section.blocks[:again], "heading"))
    del section.blocks[:again]


def _title_again(heading: Heading, texts: Sequence[str]) -> int:
    """Return how many of the texts under a heading say it again, in one line or several."""
    titles = [normalize_answer(text) for text in (heading.title, f"{heading.number} {heading.title}")]
    said, again = "", 0
    for count, text in enumerate(texts, 1):
        said = f"{said} {normalize_answer(text)}".strip()
        if said and said in titles:
            again = count
        elif not any(title.startswith(f"{said} ") for title in titles):
            break
    return again


def _line(heading: Heading) -> str:
    return " ".join(filter(None, (heading.number, heading.title)))


def _named(words: str, tale: Tale) -> bool:
    wanted = normalize_answer(words)
    return bool(wanted) and (
        title_key(words) == title_key(tale.title) or wanted == normalize_answer(tale.number)
    )


def _goes_on(heading: Heading, above: Heading, *, nearest: bool) -> bool:
    """Whether a section goes on with a tale that it is in: a bare number, or the same title again."""
    if not heading.title:
        return nearest and bool(above.title) and heading.by in _BARE
    again = _AGAIN.sub("", heading.title)
    if again != heading.title and title_key(again) is None:
        return nearest
    return title_key(again) == title_key(above.title) is not None


def _tell_unsure(tales: Sequence[Tale], blocks: Sequence[Block], limits: Limits) -> None:
    """Mark tales that may be several: far longer than the others and with breaks, or beyond all measure."""
    sizes = {tale.at: sum(blocks[number].words for number in tale.blocks) for tale in tales}
    usual = statistics.median(sizes.values()) if sizes else 0
    for tale in tales:
        inside = range(tale.blocks[0], tale.blocks[-1]) if tale.blocks else range(0)
        broken = any(blocks[number].role == "break" for number in inside)
        size = sizes[tale.at]
        if size > limits.most or (broken and len(tales) > 2 and size > limits.times * usual):
            tale.unsure = f"{size} words, where half the tales of the book have fewer than {usual:.0f}"


# -- Where the tales of a book begin and end. A model is asked only about what the rules cannot tell

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
