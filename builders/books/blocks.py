"""What a book is read into: blocks of text with what its format says of them; plain text and Markdown."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Literal

from ...schemas.canonical import Json
from ...schemas.text import is_unspaced, normalize_text

Role = Literal["text", "heading", "caption", "note", "contents", "break", "missing"]

NUMBER = r"(?:\d{1,4}(?:\.\d{1,3})*|[IVXLC]{1,8}|[ivxlc]{1,8})"
_PAGE = re.compile(r"\[(?:pg|page|p\.)\s*(\d{1,5}|[ivxlc]{1,8})\]|\{(\d{1,5})\}", re.IGNORECASE)
_CAPTION = re.compile(
    r"^\[(?:illustration|frontispiece|picture|plate|image)\b.*\]$", re.IGNORECASE | re.DOTALL
)
_NOTE = re.compile(r"^(?:\[(?:footnote\s*)?(?:\d{1,4}|\*)[:.]?\]?:?|\[\^[^\]]+\]:)\s+\S", re.IGNORECASE)
TRANSCRIBER = re.compile(
    r"^[\[({*_]*\s*(?:e-?(?:text|book) )?transcribers?[’']?s?[’']?\s+(?:end[- ]?)?notes?\b([\s\])}:.*_]*)",
    re.IGNORECASE,
)
"""How a note of a transcriber begins, or the heading of one, which has no other words."""
_BREAK = re.compile(r"^(?:[*\-_=~#.•·\s]{3,}|⁂|❦)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph or heading of a book."""

    text: str  # what it says; the lines of a heading in plain text stay apart
    role: Role = "text"  # what it is, as far as the format says
    level: int = 0  # of a heading, from 1; 0 where the format does not say
    page: str | None = None  # the page on which it begins, where that is known
    gap: int = 1  # empty lines before it, in plain text

    def as_json(self) -> Json:
        """Return the block as plain JSON."""
        return asdict(self)

    @property
    def words(self) -> int:
        """How many words it has; letters where words are not told apart."""
        return 0 if self.role == "missing" else words_of(self.text)


def words_of(text: str) -> int:
    """Return how many words a text has; letters where words are not told apart."""
    return len(text) if is_unspaced(text) else len(text.split())


@dataclass(slots=True)
class Book:
    """A book, read."""

    blocks: list[Block] = field(default_factory=list)  # what stands in it, in order
    # what it says of itself: title, author, translator, language, year, edition, url, rights; and what its
    # front matter says beyond that
    facts: dict[str, str] = field(default_factory=dict)
    readings: int = 0


class BadBook(Exception):
    """A book cannot be read.

    Attributes:
        code: what is wrong, as the stage names it.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def plain_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of plain text: paragraphs with empty lines between them."""
    lines: list[str] = []
    gap, page = 2, None
    for line in [*text.replace("\f", "\n\n").splitlines(), ""]:
        for match in _PAGE.finditer(line):
            page = match[1] or match[2]
        shown = _PAGE.sub("", line).rstrip()
        if shown.strip():
            lines.append(shown.strip())
        elif lines:
            yield told_apart(Block("\n".join(lines), page=page, gap=gap))
            lines, gap = [], 1
        else:
            gap += 1


def told_apart(block: Block) -> Block:
    """Return a block of text with the role that its words show: caption, note or break."""
    flat = " ".join(block.text.split())
    roles: tuple[tuple[re.Pattern[str], Role], ...] = (
        (_CAPTION, "caption"),
        (_NOTE, "note"),
        (_BREAK, "break"),
    )
    role = next((role for pattern, role in roles if pattern.match(flat)), block.role)
    if (note := TRANSCRIBER.match(flat)) and note.end() < len(flat):
        role = "note"
    return Block(block.text, role, block.level, block.page, block.gap)


_HASHES = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_UNDERLINE = re.compile(r"^(=+|-+)$")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_MARKER = re.compile(r"\[\^[^\]]+\](?!:)")
_STRESS = re.compile(r"(?<!\w)(\*\*|__|\*|_)(?=\S)(.+?)(?<=\S)\1(?!\w)", re.DOTALL)


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of Markdown: headings with their level, paragraphs without marks."""
    for block in plain_blocks(re.sub(r"^(#{1,6}\s.*)$", r"\n\1\n", text, flags=re.MULTILINE)):
        heading = _HASHES.match(block.text)
        first, _, under = block.text.partition("\n")
        if heading:
            yield Block(_unmarked(heading[2]), "heading", len(heading[1]), block.page, block.gap)
        elif _UNDERLINE.match(under):
            yield Block(_unmarked(first), "heading", 1 if under[0] == "=" else 2, block.page, block.gap)
        elif _IMAGE.fullmatch(block.text):
            yield Block(block.text, "caption", 0, block.page, block.gap)
        else:
            yield Block(_unmarked(block.text), block.role, 0, block.page, block.gap)


def _unmarked(text: str) -> str:
    without = _MARKER.sub("", _LINK.sub(r"\1", _IMAGE.sub("", text)))
    return _STRESS.sub(r"\2", without).strip()


_JOINED = re.compile(r"(?<=[^\s-])(?:(-{1,4}|[‐‑–—―]+)|\u00ad)[ \t]*\n[ \t]*")


def flat(text: str) -> str:
    """Return a text on one line; one that ends in a hyphen or dash behind a word joins without a space."""
    return normalize_text(_JOINED.sub(r"\1", text))
