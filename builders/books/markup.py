"""HTML into blocks, with the parser of the standard library."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser

from .blocks import Block, Book, Role, flat, told_apart

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
        """Take words."""
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
    """Return the blocks of a document."""
    page = Page()
    page.feed(text)
    page.close()
    return page


def html_book(text: str) -> Book:
    """Return an HTML document as a book."""
    page = parsed(text)
    facts = {"title": flat(page.title), "language": page.language, "author": page.meta.get("author", "")}
    return Book(page.blocks, {name: value for name, value in facts.items() if value}, page.readings)
