"""HTML and EPUB into blocks, with the parser of the standard library and limits on what is unpacked."""

import posixpath
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from io import BytesIO
from urllib.parse import unquote

from ...schemas.packed_files import Limits, NotPacked, PackedFiles, open_zip
from ...schemas.text import normalize_answer
from .blocks import Block, Book, Role, flat, told_apart

LIMITS = Limits(files=5000, bytes=2**28)
"""What an EPUB may hold."""

_BLOCKS = frozenset(
    ("p", "div", "li", "blockquote", "td", "th", "pre", "dd", "dt", "section", "article", "figure", "body",
     "tr", "figcaption", "caption", "aside", "header", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "nav",
     "table")
)  # fmt: skip
_SILENT = frozenset(("script", "style", "head", "svg", "math", "template"))
_VOID = frozenset(("br", "hr", "img", "meta", "link", "input", "col", "wbr", "area", "base", "source"))
_NOTE = re.compile(r"foot-?notes?\b|end-?notes?\b|\brearnote")
_CAPTION = re.compile(r"\bcaption|\billus|figcaption")
_PAGE = re.compile(r"pagenum|page-?num|pageno|pagebreak")
_MARKER = re.compile(r"fnanchor|noteref|footnote-?ref|fnref")
_CONTENTS = re.compile(r"\btoc\b|\bcontents\b|doc-toc")


class BadBook(Exception):
    """A book cannot be read.

    Attributes:
        code: what is wrong, as the stage names it.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(slots=True)
class _Open:
    """An element that is open: its tag, and what its words are, if that is other than around it."""

    tag: str
    role: Role | None = None
    silent: bool = False
    page: bool = False


class _Page(HTMLParser):
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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag; one of a block ends the block before it."""
        given = {name: value or "" for name, value in attrs}
        marks = " ".join(given.get(name, "") for name in ("class", "epub:type", "role")).casefold()
        if tag == "html":
            self.language = given.get("lang") or given.get("xml:lang") or ""
        self._in_title = tag == "title"
        if tag == "meta" and given.get("name"):
            self.meta[given["name"].casefold()] = given.get("content", "")
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
        if tag not in _VOID:
            self._open.append(self._opened(tag, marks))

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
        text, self._words = flat("".join(self._words)), []
        if not text:
            return
        role: Role = next((element.role for element in self._open if element.role), "text")
        tag = next((element.tag for element in reversed(self._open) if element.role == "heading"), "h0")
        self.blocks.append(told_apart(Block(text, role, int(tag[1]) if role == "heading" else 0, self._page)))


def _parsed(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    return page


def html_book(text: str) -> Book:
    """Return an HTML document as a book."""
    page = _parsed(text)
    facts = {"title": flat(page.title), "language": page.language, "author": page.meta.get("author", "")}
    return Book(page.blocks, {name: value for name, value in facts.items() if value})


def epub_book(data: bytes) -> Book:
    """Return an EPUB as a book: its documents in reading order, with the headings of its table of contents.

    Raises:
        BadBook: it is no EPUB, damaged, encrypted, or unpacks to too much.
    """
    try:
        with open_zip(BytesIO(data), LIMITS) as archive:
            return _Epub(archive).book()
    except NotPacked as error:
        code = "damaged" if error.code == "unsafe" else error.code
        where = f"{error.where}: " if error.where else ""
        raise BadBook(code, f"it is no EPUB that can be unpacked: {where}{error}") from error


@dataclass(slots=True)
class _Element:
    """An element of an XML document: its tag without prefix, attributes and words."""

    tag: str
    attrs: dict[str, str]
    text: str = ""


class _Elements(HTMLParser):
    """Reads the small XML files of an EPUB; entities that they define are never expanded."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[_Element] = []
        self.depths: list[int] = []
        self._open: list[_Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element."""
        element = _Element(
            tag.rpartition(":")[2], {name.rpartition(":")[2]: value or "" for name, value in attrs}
        )
        self.elements.append(element)
        self.depths.append(sum(element.tag in ("navpoint", "ol") for element in self._open))
        self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an empty element."""
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Close the nearest element of the tag."""
        name = tag.rpartition(":")[2]
        if any(element.tag == name for element in self._open):
            while self._open.pop().tag != name:
                pass

    def handle_data(self, data: str) -> None:
        """Take words for all elements that are open."""
        for element in self._open[-3:]:
            element.text += data


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the table of contents: its depth from 1, its words, and where it leads."""

    depth: int
    label: str
    file: str
    anchor: str


@dataclass(slots=True)
class _Epub:
    archive: PackedFiles
    names: set[str] = field(init=False)

    def book(self) -> Book:
        self.names = set(self.archive.sizes)
        if "META-INF/container.xml" not in self.names:
            raise BadBook("damaged", "it has no META-INF/container.xml, so it is no EPUB")
        roots = [
            element for element in self._xml("META-INF/container.xml").elements if element.tag == "rootfile"
        ]
        if not roots or roots[0].attrs.get("full-path") not in self.names:
            raise BadBook("damaged", "its container.xml names no package file that is there")
        package = roots[0].attrs["full-path"]
        elements = self._xml(package).elements
        items = {element.attrs.get("id", ""): element.attrs for element in elements if element.tag == "item"}
        spine = [
            items[element.attrs["idref"]]
            for element in elements
            if element.tag == "itemref" and element.attrs.get("idref") in items
        ]
        entries = self._contents(package, items.values())
        files = [_place(package, item.get("href", ""))[0] for item in spine]
        book = Book(facts=_facts(elements))
        for file in files:
            if file in self.names:
                page = _parsed(self._text(file))
                book.blocks += _headed(page, [entry for entry in entries if entry.file == file])
        if not book.blocks:
            raise BadBook("no_text", "no document of its reading order holds text")
        return book

    def _text(self, name: str) -> str:
        data = self.archive.read(name)
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            raise BadBook("wrong_encoding", f"{name} is not {encoding} at byte {error.start}") from error

    def _xml(self, name: str) -> _Elements:
        reader = _Elements()
        reader.feed(self._text(name))
        reader.close()
        return reader

    def _contents(self, package: str, items: "object") -> list[_Entry]:
        listed = [item for item in items]  # type: ignore[attr-defined]
        nav = next((item for item in listed if "nav" in item.get("properties", "").split()), None)
        ncx = next((item for item in listed if "ncx" in item.get("media-type", "")), None)
        for item in (nav, ncx):
            file = "" if item is None else _place(package, item.get("href", ""))[0]
            if file in self.names and (entries := list(_entries(file, self._xml(file)))):
                return entries
        return []


def _place(base: str, href: str) -> tuple[str, str]:
    """Return file and anchor of a link in a file of an archive."""
    path, _, anchor = unquote(href).partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)) if path else base, anchor


def _entries(file: str, read: _Elements) -> "list[_Entry]":
    entries, label = [], ""
    in_toc = not any(element.tag == "nav" for element in read.elements)
    for element, depth in zip(read.elements, read.depths, strict=True):
        if element.tag == "nav":
            in_toc = element.attrs.get("type", "toc") == "toc"
        elif element.tag == "navlabel":
            label = flat(element.text)
        elif in_toc and element.tag == "content" and label:
            entries.append(_Entry(max(1, depth), label, *_place(file, element.attrs.get("src", ""))))
        elif in_toc and element.tag == "a" and element.attrs.get("href"):
            entries.append(_Entry(max(1, depth), flat(element.text), *_place(file, element.attrs["href"])))
    return entries


def _facts(elements: "list[_Element]") -> dict[str, str]:
    metas = [element for element in elements if element.tag == "meta"]
    refined = [meta for meta in metas if meta.attrs.get("property") == "role"]
    roles = {meta.attrs.get("refines", "").lstrip("#"): flat(meta.text) for meta in refined}
    facts: dict[str, str] = {}
    for element in elements:
        text = flat(element.text)
        if element.tag in ("creator", "contributor"):
            role = element.attrs.get("role") or roles.get(element.attrs.get("id", ""), "")
            facts.setdefault(
                "translator" if role == "trl" else "author" if element.tag == "creator" else "", text
            )
        elif element.tag == "date":
            facts.setdefault("year", text[:4])
        elif element.tag in ("identifier", "source") and text.startswith(("http://", "https://")):
            facts.setdefault("url", text)
        elif element.tag in ("title", "language", "rights"):
            facts.setdefault(element.tag, text)
        elif element.tag == "publisher":
            facts.setdefault("edition", text)
    return {name: value for name, value in facts.items() if name and value}


def _headed(page: _Page, entries: "list[_Entry]") -> list[Block]:
    """Return the blocks of a document, with a heading wherever the table of contents leads.

    Its own headings that the table does not name lie below those that it names.
    """
    at: dict[int, _Entry] = {}
    for entry in entries:
        at.setdefault(page.ids.get(entry.anchor, 0) if entry.anchor else 0, entry)
    deepest = max((entry.depth for entry in entries), default=0)
    blocks: list[Block] = []
    for number, block in enumerate(page.blocks):
        level = deepest + block.level
        if (led := at.get(number)) is not None:
            if block.role == "heading" and _alike(block.text, led.label):
                level = led.depth
            else:
                blocks.append(Block(led.label, "heading", led.depth, block.page))
        blocks.append(replace(block, level=level) if block.role == "heading" else block)
    return blocks


def _alike(first: str, second: str) -> bool:
    own, other = normalize_answer(first), normalize_answer(second)
    return bool(own and other) and (own in other or other in own)
