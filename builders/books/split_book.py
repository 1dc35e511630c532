"""Step: where the tales of a book begin and end. A model is asked only about what the rules cannot tell."""

import asyncio
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Literal

from pydantic import Field

from ...engine.stage import UNUSABLE, BadReply, Item, NoAnswer, Tools
from ...schemas.canonical import Json, Plain
from ...schemas.text import normalize_answer
from ...validators.retellings import title_key
from ..step import RULES, Drafted, PlannerSettings, Step, ask
from .markup import NUMBER, TRANSCRIBER, Block, flat

# -- Headings of a book: which blocks are headings, on which level, and what belongs to no tale

Numbering = Literal["division", "chapter", "story", "number", "caps", "listed", "given"]

_START = re.compile(r"\*\*\* ?start of (?:the|this) .*e-?(?:book|text)", re.IGNORECASE)
_END = re.compile(
    r"\*\*\* ?end of (?:the|this) .*e-?(?:book|text)|^\W*(?:the )?end of (?:the |this )?project gutenberg",
    re.IGNORECASE,
)
_SMALL_PRINT = re.compile(r"\*\s*(start|end)\b[\s*]*(?:the\s+)?small print", re.IGNORECASE)
_LICENCE = re.compile(r"project gutenberg|gutenberg-tm|this e-?book is for the use of anyone", re.IGNORECASE)
_CONTENTS = re.compile(
    r"^(?:table of )?contents\b|^(?:list of )?(?:illustrations|plates|fables|stories|tales)$|^inhalt"
    r"|^table des mati|^[íi]ndice$|^sommaire$|^目[录次錄]$",
    re.IGNORECASE,
)
MATTER = re.compile(
    r"^(?:preface|foreword|introduction|introductory|dedication|acknowledge?ments?|notes?|footnotes"
    r"|endnotes|glossary|bibliography|index|appendix|copyright|colophon|advertisement|errata|transcriber"
    r"|translator.s (?:note|preface)|editor.s note|about (?:the|this)|vorwort|einleitung|anmerkungen"
    r"|avant-propos|pr[ée]face|introducci[óo]n)\b",
    re.IGNORECASE,
)
"""How the titles of parts begin that hold no tale."""

_WHICH = rf"\s+(?:the\s+\w+|{NUMBER}|\w+)\b"
_KINDS: tuple[tuple[re.Pattern[str], "Numbering", int], ...] = (
    (re.compile(rf"^(?:book|part|volume|tantra|lambaka|buch|teil|livre|libro){_WHICH}"), "division", 1),
    (re.compile(rf"^(?:chapter|canto|taranga|kapitel|chapitre|cap[íi]tulo){_WHICH}"), "chapter", 2),
    (re.compile(rf"^(?:story|tale|fable|no\.?|number|fabel|m[äa]rchen|conte|jataka){_WHICH}"), "story", 3),
)
_NUMBERED = re.compile(rf"^[\[(]?({NUMBER})[\])]?(?:[.:)—–-]+\s*|\s*$|\s+(?=[A-Z]))(.*)$", re.DOTALL)
_LEADER = re.compile(r"(?:[.\s·…]{3,}|\s)(?:\d{1,4}|[ivxlc]{1,8})$")
_BRACKET = re.compile(
    r"^\[\s*(?:(illustration|frontispiece|picture|plate|image)|footnote|(?:e-?text )?transcriber)",
    re.IGNORECASE,
)
_LINE, _LINES, _LONGEST = 80, 3, 30


@dataclass(frozen=True, slots=True)
class Heading:
    at: int  # number of its block; ``end`` that of the first block after it
    end: int  # where what it heads begins
    title: str  # its words without number; empty where it has none
    number: str  # its number as it stands there, or empty
    level: int  # its level, from 1
    by: Numbering  # what shows that it is one


def left_out(blocks: Sequence[Block]) -> dict[int, str]:
    """Return number of a block -> why it is no part of a tale: licence, contents, notes, captions, breaks."""
    out: dict[int, str] = dict.fromkeys(_licence(blocks), "licence")
    for number, block in enumerate(blocks):
        if number in out:
            continue
        apart = block.role in ("note", "caption", "contents", "missing")
        if bracket := _BRACKET.match(block.text):
            stop = max(_end_of_bracket(blocks, number), number + apart)
            out.update(dict.fromkeys(range(number, stop), "caption" if bracket[1] else "note"))
        elif apart:
            out[number] = block.role
    number = 0
    while number < len(blocks):
        if number not in out and _CONTENTS.match(flat(blocks[number].text)):
            stop = _end_of_contents(blocks, number)
            out.update(dict.fromkeys(range(number, stop), "contents"))
            number = stop
        else:
            number += 1
    return out


def _licence(blocks: Sequence[Block]) -> Iterator[int]:
    """Yield the blocks outside the marks of Gutenberg-like files, and those between small-print marks."""
    start = next((n for n, block in enumerate(blocks) if _START.search(block.text)), -1)
    end = next((n for n, block in enumerate(blocks) if n > start and _END.search(block.text)), len(blocks))
    yield from (*range(start + 1), *range(end, len(blocks)))
    yield from (number for number, block in enumerate(blocks) if _LICENCE.search(block.text))
    marks = [
        (n, mark[1].casefold())
        for n, block in enumerate(blocks)
        for mark in _SMALL_PRINT.finditer(block.text)
    ]
    opened: int | None = None
    for number, mark in marks:
        if mark == "start":
            opened = number if opened is None else opened
        else:
            first = number if opened is None else opened
            yield from range(0 if _is_head(blocks, first, number) else first, number + 1)
            opened = None
    if opened is not None:
        yield from range(opened, opened + 1 if _is_head(blocks, opened, opened) else len(blocks))


def _is_head(blocks: Sequence[Block], first: int, last: int) -> bool:
    """Whether the book comes after these blocks: what stands above them is no part of it, then."""
    return sum(block.words for block in blocks[:first]) < sum(block.words for block in blocks[last + 1 :])


def _end_of_bracket(blocks: Sequence[Block], start: int) -> int:
    """Return where a note or caption of several paragraphs in brackets ends; its start where it does not."""
    depth = 0
    for number, block in enumerate(blocks[start : start + _LONGEST], start + 1):
        depth += block.text.count("[") - block.text.count("]")
        if depth <= 0:
            return number
    return start


def _end_of_contents(blocks: Sequence[Block], start: int) -> int:
    """Return where a table of contents ends: at a paragraph, or where its first title comes again."""
    first = None
    for number in range(start, len(blocks)):
        lines = [line for line in blocks[number].text.splitlines() if line.strip()]
        if number == start:
            lines = lines[1:]
        if any(len(line) > _LINE or (re.search(r"[.!?][\"”']?$", line) and not _LEADER.search(line) and
                                     len(line.split()) > 8) for line in lines):  # fmt: skip
            return max(number, start + 1)
        keys = [listed_key(line) for line in lines if listed_key(line)]
        if first is not None and keys and keys[0] == first:
            return number - (number > start + 1 and _is_number(blocks[number - 1]))
        if first is None and keys:
            first = keys[0]
    return start + 1


def _is_number(block: Block) -> bool:
    """Whether a block is a heading without a title."""
    title, _, _, by = _read_heading(flat(block.text), frozenset())
    return by is not None and not title


def listed_key(line: str) -> str:
    """Return what a line of a table of contents has in common with the heading that it leads to."""
    return normalize_answer(_NUMBERED.sub(r"\2", _LEADER.sub("", flat(line))) or line)


def listed_titles(blocks: Sequence[Block], out: dict[int, str]) -> frozenset[str]:
    """Return the keys of the titles in the tables of contents."""
    lines = (
        line for number, why in out.items() if why == "contents" for line in blocks[number].text.splitlines()
    )
    return frozenset(key for line in lines if len(key := listed_key(line)) > 2)


def headings(blocks: Sequence[Block], out: dict[int, str]) -> list[Heading]:
    """Return the headings of a book, in order; a number and the title under it are one."""
    listed = listed_titles(blocks, out)
    single = [
        heading
        for number, block in enumerate(blocks)
        if number not in out and (heading := _heading(number, block, listed)) is not None
    ]
    return list(_joined(_levelled(single)))


def _heading(number: int, block: Block, listed: frozenset[str]) -> Heading | None:
    words = flat(block.text)
    if block.role == "heading":
        figure, title = _numbered(words)
        return Heading(number, number + 1, title, figure, block.level or 1, "given")
    long = len(block.text.splitlines()) > _LINES or len(words) > _LINE
    if block.role != "text" or long or not re.search(r"\w", words):
        return None
    title, figure, level, by = _read_heading(words, listed)
    return None if by is None else Heading(number, number + 1, title, figure, level, by)


def _read_heading(words: str, listed: frozenset[str]) -> tuple[str, str, int, Numbering | None]:
    """Return title, number, level and kind of a heading in plain text; no kind where it is none."""
    if (note := TRANSCRIBER.match(words)) and note.end() == len(words):
        return words.strip("[](){}*_:. "), "", 3, "caps"
    sentence = re.search(r"[a-z][.!?;,]$", words) is not None
    for pattern, by, level in _KINDS:
        match = pattern.match(words.casefold())
        if match and not sentence:
            return words[match.end() :].strip(" .:—–-"), words[: match.end()], level, by
    figure, title = _numbered(words)
    letters = [char for char in words if char.isalpha()]
    shouted = (
        len(letters) > 2
        and letters[0] != letters[0].lower()
        and all(char == char.upper() for char in letters)
    )
    if figure and (not title or not sentence):
        return title, figure, 3 + figure.count("."), "number"
    if listed_key(words) in listed:
        return words, "", 3, "listed"
    return words, "", 3, "caps" if shouted else None


def _numbered(words: str) -> tuple[str, str]:
    """Return number and title of a heading; no number where it has none."""
    match = _NUMBERED.match(words)
    if match is None or (not match[2] and len(words.split()) > 1):
        return "", words
    if match[1].isalpha() and match[2] and not re.match(rf"[\[(]?{match[1]}[\])]?[.:)—–-]", words):
        return "", words  # "I saw a fox" begins with no number
    return match[1], match[2].strip(" .:—–-") if match[2] else ""


def _levelled(marks: Sequence[Heading]) -> list[Heading]:
    """Return headings of plain text with bare numbers under titles one level deeper: parts of one tale."""
    titled = [heading for heading in marks if heading.title and heading.by in ("caps", "listed", "story")]
    bare = [heading for heading in marks if not heading.title and heading.by == "number"]
    followed = {heading.at for heading, after in pairwise(marks) if after.at == heading.end}
    loose = [heading for heading in bare if heading.at not in followed]
    restarts = sum(heading.number.strip(".").upper() in ("1", "I") for heading in loose)
    if not titled or restarts < 1 or len(loose) == len(marks):
        return list(marks)
    return [replace(heading, level=5) if heading in loose else heading for heading in marks]


def _joined(marks: Sequence[Heading]) -> Iterator[Heading]:
    """Yield headings; one that has a number alone takes the title right under it."""
    position = 0
    while position < len(marks):
        heading = marks[position]
        after = marks[position + 1] if position + 1 < len(marks) else None
        third = marks[position + 2] if position + 2 < len(marks) else None
        position += 1
        if after is None or after.at != heading.end:
            yield heading
        elif heading.title and title_key(heading.title) == title_key(after.title) and not after.number:
            yield replace(heading, end=after.end)
            position += 1
        elif (
            heading.title
            or after.number
            or not after.title
            or (heading.by in ("division", "chapter") and not _is_its_title(after, third))
        ):
            yield heading
        else:
            yield replace(heading, end=after.end, title=after.title)
            position += 1


def _is_its_title(after: Heading, third: Heading | None) -> bool:
    """Whether the line under "Book I" is its title, and not that of its first tale."""
    return third is not None and (third.at == after.end or bool(third.number))


# -- The tales of a book by rules: sections under headings, frames and what is told in them, what is unsure

_TOLD_IN = re.compile(
    r"^[\[(]?\s*(?:told|related|a tale) (?:with)?in(?: the (?:story|tale) of)?:?\s+(.+?)\s*[\])]?\.?$", re.I
)
_BARE = ("number", "given")
_AGAIN = re.compile(r"\b(?:continued|resumed|concluded|frame)\b|\bagain\)?$", re.IGNORECASE)


@dataclass(slots=True)
class Tale(Plain):
    """A tale, as blocks of its book."""

    title: str  # its title
    number: str  # its number in the book, as it stands there
    at: int  # number of the block where it begins
    blocks: list[int] = field(default_factory=list)  # numbers of the blocks that are its text, in order
    chapter: list[str] = field(default_factory=list)  # the headings above it, outermost first
    frame: int | None = None  # where the tale begins that it is told in; None for none
    unsure: str | None = None  # why the rules cannot say that this is one tale; None where they can


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
