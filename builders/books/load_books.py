"""Stage: one item per book of the sources: files as they are named, and all books in folders.

Text, Markdown, HTML and EPUB. What a book says of itself is read: front matter (YAML), the head of a
Gutenberg-like file, or the metadata of HTML and EPUB. A file that cannot be read is a book that failed.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

from pydantic import Field

from ...engine.stage import Child, Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.packed_files import Limits, NotPacked, PackedFiles, open_zip
from ...schemas.plain_files import by_name, composed, read_plain
from ...schemas.text import counted, is_language_tag, normalize_answer, slug
from ...schemas.values import Own
from .markup import (
    MARKUP,
    BadBook,
    Block,
    Book,
    Page,
    flat,
    html_book,
    markdown_blocks,
    parsed,
    plain_blocks,
    text_of,
)

# -- EPUB into blocks: its documents in reading order, with limits on what is unpacked

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
        element = _Element(
            tag.rpartition(":")[2], {name.rpartition(":")[2]: value or "" for name, value in attrs}
        )
        self.elements.append(element)
        self.depths.append(sum(element.tag in ("navpoint", "ol") for element in self._open))
        self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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


# -- One item per book of the sources

ROLE = "books"
"""Role of the sources."""
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "hindi": "hi", "sanskrit": "sa", "chinese": "zh", "japanese": "ja", "russian": "ru",
}  # fmt: skip
_FACTS = {"release date": "", "original publication": "edition", "credits": ""}
_HEAD = re.compile(
    r"^(title|author|translator|language|original publication|year|edition|url):\s+(.+)$", re.I | re.M
)
_EBOOK = re.compile(r"\[e-?(?:book|text) #(\d+)\]", re.IGNORECASE)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


class Settings(Own):
    encoding: str | None = Field(
        default=None, description="Encoding of files without a byte order mark [as they state, else UTF-8]."
    )
    incomplete: bool = Field(default=False, description="Take EPUBs that lack parts of their reading order.")
    max_file_bytes: int = Field(default=2**26, ge=1, description="Larger files are refused.")


SPEC = StageSpec(
    name="load_books", version=4, shape="expand", reads=("sources",), writes=("book",), libraries=("pyyaml",),
    settings=Settings,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per file, in the order of the sources and of paths in them."""
    settings = tools.own(Settings)
    files = [file for path in tools.paths for file in _files(path)]
    if not files:
        fix = f"name files or folders of books: {', '.join(READERS)}"
        raise InputError.one(
            ", ".join(map(str, tools.paths)) or "the sources", what="no book is there", fix=fix
        )
    taken: set[str] = set()
    for file in dict.fromkeys(files):
        stem = slug(file.stem)[:40].strip("-_") or "book"
        name = next(
            name for n in range(1, len(files) + 2) if (name := stem if n == 1 else f"{stem}-{n}") not in taken
        )
        taken.add(name)
        yield Child(name, _read(file, settings))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        if file.is_file() and file.suffix.lower() in READERS and not hidden:
            yield file


def _read(file: Path, settings: Settings) -> Outcome:
    try:
        if file.stat().st_size > settings.max_file_bytes:
            raise BadBook("too_large", f"it has more than {settings.max_file_bytes} bytes; split it")
        data = read_plain(file, settings.max_file_bytes, follow=True)
        book = _book(data, file.suffix.lower(), settings)
        if not any(block.role == "text" for block in book.blocks):
            raise BadBook("no_text", "it holds no text")
    except OSError as error:
        return Failed("unreadable", f"{file.name} cannot be read: {error.strerror or error}")
    except BadBook as error:
        return Failed(error.code, f"{file.name}: {error}")
    facts = {name: value for name, value in book.facts.items() if value.strip()}
    facts["language"] = _LANGUAGES.get(facts.get("language", "").casefold(), facts.get("language", ""))
    if not is_language_tag(facts["language"]):
        del facts["language"]
    return Made({"book": {
        "file": composed(file.name), "sha256": sha256_bytes(data), "facts": facts,
        "blocks": [block.as_json() for block in book.blocks], "readings": book.readings,
    }})  # fmt: skip


def _book(data: bytes, suffix: str, settings: Settings) -> Book:
    if data[:4] == b"PK\x03\x04" or suffix == ".epub":
        return epub_book(data, settings.encoding, incomplete=settings.incomplete)
    read = READERS.get(suffix, _plain)
    head = data[:200].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    markup = read is html_book or MARKUP.match(head) is not None
    return (html_book if markup or read is None else read)(text_of(data, settings.encoding, markup=markup))


def _plain(text: str) -> Book:
    facts, rest = _front_matter(text)
    return Book(list(plain_blocks(rest)), {**_head(rest), **facts})


def _markdown(text: str) -> Book:
    facts, rest = _front_matter(text)
    return Book(list(markdown_blocks(rest)), {**_head(rest), **facts})


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    import yaml

    try:
        value = yaml.load(match[1], Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadBook(
            "front_matter", f"its front matter is no YAML: {' '.join(str(error).split())[:200]}"
        ) from error
    facts = value if isinstance(value, dict) else {}
    return {str(name): str(entry) for name, entry in facts.items()}, text[match.end() :]


def _head(text: str) -> dict[str, str]:
    """Return what the first lines of a text say of the book."""
    head = text[:6000]
    facts: dict[str, str] = {}
    for match in _HEAD.finditer(head):
        name = match[1].casefold()
        facts.setdefault(_FACTS.get(name, name), match[2].strip())
    if number := _EBOOK.search(head):
        facts.setdefault("url", f"https://www.gutenberg.org/ebooks/{number[1]}")
    return facts


READERS: dict[str, Callable[[str], Book] | None] = {
    ".txt": _plain, ".md": _markdown, ".markdown": _markdown, ".html": html_book, ".htm": html_book,
    ".xhtml": html_book, ".epub": None,
}  # fmt: skip
"""Endings of books -> what reads their text; an EPUB is no text."""


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes a book the same book."""
    return fields["book"]["sha256"]
