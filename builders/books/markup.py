"""HTML into blocks, with the parser of the standard library."""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal

from ...schemas.canonical import Plain
from ...schemas.text import is_unspaced, normalize_text

# -- What a book is read into: blocks of text with what its format says of them; plain text and Markdown

Role = Literal["text", "heading", "caption", "note", "contents", "break", "missing"]

NUMBER = r"(?:\d{1,4}(?:\.\d{1,3})*|[IVXLC]{1,8}|[ivxlc]{1,8})"
_PAGE_NUMBER = re.compile(r"\[(?:pg|page|p\.)\s*(\d{1,5}|[ivxlc]{1,8})\]|\{(\d{1,5})\}", re.IGNORECASE)
_CAPTION_LINE = re.compile(
    r"^\[(?:illustration|frontispiece|picture|plate|image)\b.*\]$", re.IGNORECASE | re.DOTALL
)
_NOTE_LINE = re.compile(r"^(?:\[(?:footnote\s*)?(?:\d{1,4}|\*)[:.]?\]?:?|\[\^[^\]]+\]:)\s+\S", re.IGNORECASE)
TRANSCRIBER = re.compile(
    r"^[\[({*_]*\s*(?:e-?(?:text|book) )?transcribers?[’']?s?[’']?\s+(?:end[- ]?)?notes?\b([\s\])}:.*_]*)",
    re.IGNORECASE,
)
"""How a note of a transcriber begins, or the heading of one, which has no other words."""
_BREAK = re.compile(r"^(?:[*\-_=~#.•·\s]{3,}|⁂|❦)$")


@dataclass(frozen=True, slots=True)
class Block(Plain):
    """A paragraph or heading of a book."""

    text: str  # what it says; the lines of a heading in plain text stay apart
    role: Role = "text"  # what it is, as far as the format says
    level: int = 0  # of a heading, from 1; 0 where the format does not say
    page: str | None = None  # the page on which it begins, where that is known
    gap: int = 1  # empty lines before it, in plain text

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
        for match in _PAGE_NUMBER.finditer(line):
            page = match[1] or match[2]
        shown = _PAGE_NUMBER.sub("", line).rstrip()
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
        (_CAPTION_LINE, "caption"),
        (_NOTE_LINE, "note"),
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
_NOTE_MARKER = re.compile(r"\[\^[^\]]+\](?!:)")
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
    without = _NOTE_MARKER.sub("", _LINK.sub(r"\1", _IMAGE.sub("", text)))
    return _STRESS.sub(r"\2", without).strip()


_JOINED = re.compile(r"(?<=[^\s-])(?:(-{1,4}|[‐‑–—―]+)|\u00ad)[ \t]*\n[ \t]*")


def flat(text: str) -> str:
    """Return a text on one line; one that ends in a hyphen or dash behind a word joins without a space."""
    return normalize_text(_JOINED.sub(r"\1", text))


# --

_BLOCKS = frozenset(
    ("p", "div", "li", "blockquote", "td", "th", "pre", "dd", "dt", "section", "article", "figure", "body",
     "tr", "figcaption", "caption", "aside", "header", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "nav",
     "table")
)  # fmt: skip
_RUBY = ("rt", "rp", "rtc")
_SILENT = frozenset(("script", "style", "head", "svg", "math", "template", *_RUBY))
_VOID = frozenset(("br", "hr", "img", "meta", "link", "input", "col", "wbr", "area", "base", "source"))
_NOTE = re.compile(r"foot-?notes?\b|end-?notes?\b|\brearnote|\btrans(?:criber)?'?s?[-_]?notes?\b|\btnotes?\b")
_CAPTION = re.compile(r"\bcaption|\billus|figcaption")
_PAGE = re.compile(r"pagenum|page-?num|pageno|pagebreak")
_MARKER = re.compile(r"fnanchor|noteref|footnote-?ref|fnref")
_CONTENTS = re.compile(r"\btoc\b|\bcontents\b|doc-toc")
_LETTER = re.compile(r"[\"'“‘«„]?[^\W\d_]{1,2}")
_CAPITAL = re.compile(r"\0([^\0]+)\0(\s*)")


@dataclass(slots=True)
class _Open:
    """An element that is open: its tag, and what its words are, if that is other than around it."""

    tag: str
    role: Role | None = None
    silent: bool = False
    page: bool = False


class Page(HTMLParser):
    """Gathers the blocks of one document, and at which block each id stands."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.ids: dict[str, int] = {}
        self.title, self.language = "", ""
        self.meta: dict[str, str] = {}
        self._open: list[_Open] = []
        self._words: list[str] = []
        self._page: str | None = None
        self._in_title = False
        self._capital = ""
        self.readings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag; one of a block ends the block before it."""
        given = {name: value or "" for name, value in attrs}
        marks = " ".join(given.get(name, "") for name in ("class", "epub:type", "role")).casefold()
        self._take_fact(tag, given)
        if tag in (*_RUBY, "rb"):
            self._begin_ruby(tag)
        if tag in _BLOCKS or tag == "hr":
            self._flush()
            while any(element.role == "heading" for element in self._open):
                self._open.pop()  # a heading holds no block: its end was forgotten
        if name := given.get("id") or (given.get("name") if tag == "a" else ""):
            self.ids.setdefault(name, len(self.blocks))
        if _PAGE.search(marks) and (number := re.search(r"\d+|\b[ivxlc]+\b", given.get("title", ""))):
            self._page = number[0]
        if tag == "hr":
            self.blocks.append(Block("* * *", "break"))
        elif tag == "br":
            self._words.append(" ")
        elif tag == "img" and _LETTER.fullmatch(letter := given.get("alt", "").strip()):
            self.handle_data(f"\0{letter}\0")
        if tag not in _VOID:
            self._open.append(self._opened(tag, marks))

    def _take_fact(self, tag: str, given: Mapping[str, str]) -> None:
        """Take what a tag says of the document."""
        self._in_title = tag == "title"
        if tag == "html":
            self.language = given.get("lang") or given.get("xml:lang") or ""
        elif tag == "meta" and given.get("name"):
            self.meta[given["name"].casefold()] = given.get("content", "")

    def _begin_ruby(self, tag: str) -> None:
        """Close what a part of a ruby ends: HTML lets authors leave out the end tags."""
        self.readings += tag == "rt"
        ends = ("rt", "rp", "rb") if tag in ("rt", "rp") else ("rt", "rp", "rb", "rtc")
        while self._open and self._open[-1].tag in ends:
            self._open.pop()

    def _opened(self, tag: str, marks: str) -> _Open:
        role: Role | None = None
        if tag in ("figcaption", "caption", "figure") or (_CAPTION.search(marks) and tag in _BLOCKS):
            role = "caption"
        elif _NOTE.search(marks) and not _MARKER.search(marks) and tag in _BLOCKS:
            role = "note"
        elif _CONTENTS.search(marks) and tag in _BLOCKS:
            role = "contents"
        elif re.fullmatch("h[1-6]", tag):
            role = "heading"
        silent = tag in _SILENT or bool(_MARKER.search(marks) and tag in ("a", "sup", "span"))
        return _Open(tag, role, silent, bool(_PAGE.search(marks)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an empty element."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the nearest element of the tag, and those in it that were left open."""
        self._in_title = False
        if not any(element.tag == tag for element in self._open):
            return
        if tag in _BLOCKS:
            self._flush()
        while self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            return
        if any(element.silent for element in self._open):
            return
        if any(element.page for element in self._open):
            if number := re.search(r"\d+|\b[ivxlc]+\b", data):
                self._page = number[0]
            return
        self._words.append(data)

    def close(self) -> None:
        """Take what is left."""
        super().close()
        self._flush()

    def _flush(self) -> None:
        text, self._words = "".join(self._words), []
        if _CAPITAL.fullmatch(text.strip()):
            self._capital = text.strip()  # it stands before the block that it begins
            return
        role: Role = next((element.role for element in self._open if element.role), "text")
        if text.strip():
            text, self._capital = self._capital * (role == "text") + text, ""
        text = flat(_CAPITAL.sub(_with_capital, text))
        if not text:
            return
        tag = next((element.tag for element in reversed(self._open) if element.role == "heading"), "h0")
        self.blocks.append(told_apart(Block(text, role, int(tag[1]) if role == "heading" else 0, self._page)))


def _with_capital(match: re.Match[str]) -> str:
    """Return what a picture of a letter stands for: the letter if a word goes on from it, else nothing."""
    letters, space = match.groups()
    rest = match.string[match.end() : match.end() + 3]
    begins = not match.string[: match.start()].strip()
    if not rest[:1].isalpha() or (space and not (begins and len(letters) == 1)):
        return space
    if rest.startswith(letters) and not rest[len(letters) :][:1].isupper():
        return space  # the text has its letter, too
    if space and letters in ("A", "I", "O"):
        return f"{letters} "
    if begins and rest[:1].isupper() and rest[1:2].islower():
        return space  # the word is whole
    return letters


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    return page


def html_book(text: str) -> Book:
    page = parsed(text)
    facts = {"title": flat(page.title), "language": page.language, "author": page.meta.get("author", "")}
    return Book(page.blocks, {name: value for name, value in facts.items() if value}, page.readings)


# -- In which encoding a book is: by its mark, by what the user says, by what the file states; else UTF-8

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"),
)  # fmt: skip
_AS_BROWSERS = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "tis-620": "cp874", "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030",
    "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
"""What files mean that state the older encoding: a larger one, as the WHATWG's table of labels has it."""
_TEXTUAL = re.compile(r"utf-(?:8|16|32)|cp\d|iso|koi8|mac|shift|euc|gb|big5|hz|johab|tis")
_XML = re.compile(rb"\A\s*<\?xml\b[^>]*?\sencoding\s*=\s*[\"']\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_GUTENBERG = re.compile(rb"^character set encoding:[ \t]*(\S[^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_HEAD, _LATE = 6000, 2**18
MARKUP = re.compile(rb"\s*<(?:!doctype\s+html|html|\?xml)", re.IGNORECASE)


def text_of(data: bytes, given: str | None = None, *, markup: bool) -> str:
    """Return the text of a file with line ends of one character.

    ``data``: its bytes.
    """
    name = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if name is None:
        name = _chosen(data, given, markup=markup)
    try:
        text = data.decode(name)
    except (UnicodeError, LookupError) as error:
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise BadBook("wrong_encoding", f"it is not {name}{at}{_fix(data)}") from error
    if "\0" in text:
        raise BadBook("wrong_encoding", f"it holds NUL characters, so it is no text in {name}{_fix(data)}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _chosen(data: bytes, given: str | None, *, markup: bool) -> str:
    stated = None if given else _stated(data) if markup else _stated_by_gutenberg(data)
    label = given or stated
    if label is None:
        return "utf-8"
    name = _known(label)
    if name is None:
        raise BadBook("wrong_encoding", f"its encoding {label[:40]!r} is not known{_fix(data)}")
    if stated and name.startswith(("utf-16", "utf-32")):
        return "utf-8"  # what states it could not be read otherwise
    return name


def _known(label: str) -> str | None:
    try:
        name = codecs.lookup(label.casefold().removeprefix("x-")).name
    except LookupError:
        return None
    name = _AS_BROWSERS.get(name, name)
    return name if _TEXTUAL.match(name) else None


def _stated(data: bytes) -> str | None:
    """Return the encoding that HTML or XML states, however late in its head."""
    head = _COMMENT.sub(b"", data[:_LATE])
    body = _BODY.search(head)
    match = _XML.match(head) or _META.search(head, 0, body.start() if body else len(head))
    return match[1].decode("ascii", "replace") if match else None


def _stated_by_gutenberg(data: bytes) -> str | None:
    """Return what the head of a plain text states, if the text is no UTF-8: many were converted since."""
    match = _GUTENBERG.search(data[:_HEAD])
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        label = match[1].strip().decode("ascii", "replace") if match else ""
        return label if label and _known(label) else None
    return None


def _fix(data: bytes) -> str:
    likely = "windows-1252"
    if b"\0" in data:
        likely = "utf-16-le" if data[1::2].count(0) >= data[::2].count(0) else "utf-16-be"
    return f"; convert it to UTF-8, or name its encoding, such as --set load_books.encoding={likely}"
