"""Headings of a book: which blocks are headings, on which level, and what belongs to no tale."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from ...schemas.text import normalize_answer
from ...validators.retellings import title_key
from .blocks import NUMBER, TRANSCRIBER, Block, flat

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
    """A heading of a book."""

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
    title, _, _, by = _read(flat(block.text), frozenset())
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
    title, figure, level, by = _read(words, listed)
    return None if by is None else Heading(number, number + 1, title, figure, level, by)


def _read(words: str, listed: frozenset[str]) -> tuple[str, str, int, Numbering | None]:
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
