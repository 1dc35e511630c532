"""EPUB into blocks: its documents in reading order, with limits on what is unpacked."""

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from io import BytesIO
from urllib.parse import unquote

from ...schemas.file_names import by_name, composed
from ...schemas.packed_files import Limits, NotPacked, PackedFiles, open_zip
from ...schemas.text import counted, normalize_answer
from .blocks import BadBook, Block, Book, flat
from .encodings import text_of
from .markup import Page, parsed

LIMITS = Limits(files=5000, bytes=2**28)
"""What an EPUB may hold."""


def epub_book(data: bytes, given: str | None = None, *, incomplete: bool = False) -> Book:
    """Return an EPUB as a book: documents in reading order, with the headings of its table of contents."""
    try:
        with open_zip(BytesIO(data), LIMITS) as archive:
            return _Epub(archive, given, incomplete, _Names(archive.sizes)).book()
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
    given: str | None
    incomplete: bool
    names: "_Names"

    def book(self) -> Book:
        container = self.names.find("META-INF/container.xml")
        if container is None:
            raise BadBook("damaged", "it has no META-INF/container.xml, so it is no EPUB")
        roots = [element for element in self._xml(container).elements if element.tag == "rootfile"]
        package = self.names.find(roots[0].attrs.get("full-path", "")) if roots else None
        if package is None:
            raise BadBook("damaged", "its container.xml names no package file that is there")
        elements = self._xml(package).elements
        items = {element.attrs.get("id", ""): element.attrs for element in elements if element.tag == "item"}
        spine = dict.fromkeys(
            element.attrs.get("idref", "") for element in elements if element.tag == "itemref"
        )
        entries = self._contents(package, items.values())
        book = Book(facts=_facts(elements))
        for idref in spine:
            self._add(book, package, items, idref, entries)
        self._tell_missing(book)
        if not any(block.role != "missing" for block in book.blocks):
            raise BadBook("no_text", "no document of its reading order holds text")
        return book

    def _add(
        self,
        book: Book,
        package: str,
        items: Mapping[str, Mapping[str, str]],
        idref: str,
        entries: "Sequence[_Entry]",
    ) -> None:
        """Add the blocks of a part of the reading order, or one that says that it is missing or a picture."""
        item = _document(items, idref)
        if item is None:
            book.blocks.append(Block(f"{idref}: it is not in the manifest", "missing"))
            return
        file = self.names.place(package, item.get("href", ""))[0]
        if file not in self.names.there:
            twice = composed(file) in self.names.twice
            why = "two files have this name" if twice else "it is not in the archive"
            book.blocks.append(Block(f"{file}: {why}", "missing"))
        elif _is_picture(item):
            book.blocks.append(Block(f"[{file}]", "caption"))
        elif not (text := self._text(file)).strip():
            book.blocks.append(Block(f"{file}: it is empty", "missing"))
        else:
            page = parsed(text)
            book.readings += page.readings
            book.blocks += _headed(page, [entry for entry in entries if entry.file == file])

    def _tell_missing(self, book: Book) -> None:
        missing = [block.text for block in book.blocks if block.role == "missing"]
        if missing and not self.incomplete:
            listed = "; ".join(missing[:10]) + "; ..." * (len(missing) > 10)
            raise BadBook(
                "incomplete",
                f"{counted(len(missing), 'document')} of its reading order cannot be read: {listed}. "
                "Get the whole book, or take the rest of it with --set load_books.incomplete=true",
            )

    def _text(self, name: str) -> str:
        try:
            return text_of(self.archive.read(name), self.given, markup=True)
        except BadBook as error:
            raise BadBook(error.code, f"{name}: {error}") from error

    def _xml(self, name: str) -> _Elements:
        reader = _Elements()
        reader.feed(self._text(name))
        reader.close()
        return reader

    def _contents(self, package: str, items: Iterable[Mapping[str, str]]) -> list[_Entry]:
        listed = list(items)
        nav = next((item for item in listed if "nav" in item.get("properties", "").split()), None)
        ncx = next((item for item in listed if "ncx" in item.get("media-type", "")), None)
        for item in (nav, ncx):
            file = "" if item is None else self.names.place(package, item.get("href", ""))[0]
            if file in self.names.there and (entries := list(_entries(file, self._xml(file), self.names))):
                return entries
        return []


class _Names:
    """The files of an archive, found as other files of it name them.

    Names are compared in normal form C, then without regard to case; a name that is UTF-8, and does not say
    so, is that, too.
    """

    def __init__(self, there: Collection[str]) -> None:
        self.there = frozenset(there)
        spelled = {spelling: name for name in there for spelling in _spellings(name)}
        names, pairs = by_name(spelled)
        self.twice = {composed(first) for first, second in pairs if spelled[first] != spelled[second]}
        self._found = {key: spelled[name] for key, name in names.items() if key not in self.twice}
        folded = Counter(map(str.casefold, self._found))
        self._folded = {
            key.casefold(): name for key, name in self._found.items() if folded[key.casefold()] == 1
        }

    def find(self, name: str) -> str | None:
        """Return the name of a file as the archive has it."""
        key = composed(name.lstrip("/"))
        return name if name in self.there else self._found.get(key, self._folded.get(key.casefold()))

    def place(self, base: str, href: str) -> tuple[str, str]:
        """Return file and anchor of a link in a file of the archive; as it stands if nothing is there."""
        link, _, anchor = href.strip().partition("#")
        if not link:
            return base, unquote(anchor)
        folder = posixpath.dirname(base)
        paths = [posixpath.normpath(posixpath.join(folder, path)) for path in (unquote(link), link)]
        file = next((name for path in paths if (name := self.find(path)) is not None), paths[0])
        return file, unquote(anchor)


def _spellings(name: str) -> Iterator[str]:
    yield name.replace("\\", "/")
    if not name.isascii():
        with suppress(UnicodeError):
            yield name.encode("cp437").decode("utf-8")


def _document(items: Mapping[str, Mapping[str, str]], idref: str) -> Mapping[str, str] | None:
    """Return the item of the reading order, or the document that stands in for it where it is a picture."""
    item = first = items.get(idref)
    for _ in range(len(items)):
        if item is None or not _is_picture(item) or "fallback" not in item:
            break
        item = items.get(item["fallback"])
    return item or first


def _is_picture(item: Mapping[str, str]) -> bool:
    kind = item.get("media-type", "")
    return kind.startswith(("image/", "video/", "audio/")) and "svg" not in kind


def _entries(file: str, read: _Elements, names: _Names) -> list[_Entry]:
    entries, label = [], ""
    in_toc = not any(element.tag == "nav" for element in read.elements)
    for element, depth in zip(read.elements, read.depths, strict=True):
        if element.tag == "nav":
            in_toc = element.attrs.get("type", "toc") == "toc"
        elif element.tag == "navlabel":
            label = flat(element.text)
        link = element.attrs.get("src", "") if element.tag == "content" else element.attrs.get("href", "")
        words = label if element.tag == "content" else flat(element.text)
        if in_toc and words and (element.tag == "content" or (element.tag == "a" and link)):
            entries.append(_Entry(max(1, depth), words, *names.place(file, link)))
    return entries


def _facts(elements: list[_Element]) -> dict[str, str]:
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


def _headed(page: Page, entries: Sequence[_Entry]) -> list[Block]:
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
