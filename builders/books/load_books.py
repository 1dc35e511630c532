"""Stage: one item per book of the sources: files as they are named, and all books in folders.

Text, Markdown, HTML and EPUB. What a book says of itself is read: front matter (YAML), the head of a
Gutenberg-like file, or the metadata of HTML and EPUB. A file that cannot be read is a book that failed.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import Field

from ...engine.stage import Child, Failed, Item, Made, Outcome, StageSpec, Tools
from ...errors import InputError, UserError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.file_names import composed
from ...schemas.plain_files import read_plain
from ...schemas.text import is_language_tag, slug
from ...schemas.values import Own
from .blocks import BadBook, Book, markdown_blocks, plain_blocks
from .encodings import MARKUP, text_of
from .epub import epub_book
from .markup import html_book

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
    """Settings of the stage."""

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
        raise InputError(
            [UserError(", ".join(map(str, tools.paths)) or "the sources", what="no book is there", fix=fix)]
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
