"""Books for tests: made-up tales with all that stands around them in real ones, and where each tale is."""

import html
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .made_stories import make_story

LICENCE = (
    "The Project Gutenberg eBook of Made Tales\n\nTitle: Made Tales\n\nTranslator: A. Hand\n\n"
    "Language: English\n\n*** START OF THE PROJECT GUTENBERG EBOOK MADE TALES ***",
    "*** END OF THE PROJECT GUTENBERG EBOOK MADE TALES ***\n\nYou may copy it as its licence says.",
)
PREFACE = (
    "The tales of this book were made by a program, for tests alone. None of them is literature of any land."
)


@dataclass(frozen=True, slots=True)
class MadeTale:
    """A tale of a made book."""

    title: str  # its title
    paragraphs: tuple[str, ...]  # its text
    inner: tuple["MadeTale", ...] = ()  # tales that are told in it
    rest: tuple[str, ...] = ()  # its text behind these

    @property
    def text(self) -> str:
        """The text that is its own."""
        return "\n\n".join((*self.paragraphs, *self.rest))


def made_tale(number: int) -> MadeTale:
    """Return a tale by number, in four paragraphs."""
    story = make_story(number)
    sentences = story["text"].replace('" ', '".|').replace(". ", ".|").replace('".|', '" ').split("|")
    size = -(-len(sentences) // 4)
    paragraphs = tuple(" ".join(sentences[at : at + size]) for at in range(0, len(sentences), size))
    return MadeTale(story["title"].rpartition(" ")[0] + f" of the {_ordinal(number)} Hill", paragraphs)


def _ordinal(number: int) -> str:
    ones = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")
    return f"{ones[number // 100 % 10]} {ones[number // 10 % 10]} {ones[number % 10]}"


def made_book(tales: int, frames: int = 1) -> list[MadeTale]:
    """Return a book: frame tales with three tales in each first, then tales that stand alone."""
    framed = [
        replace(
            made_tale(4 * n),
            inner=tuple(made_tale(4 * n + m) for m in (1, 2, 3)),
            rest=made_tale(2000 + n).paragraphs,
        )
        for n in range(frames)
    ]
    return [*framed, *(made_tale(n) for n in range(4 * frames, tales))]


def all_tales(book: Sequence[MadeTale]) -> Iterator[tuple[MadeTale, str | None]]:
    """Yield each tale of a book in order, with the title of the one that it is told in."""
    for tale in book:
        yield tale, None
        yield from ((inner, tale.title) for inner in tale.inner)


def as_text(book: Sequence[MadeTale]) -> str:
    """Return a book as plain text, with licence, preface, contents, captions and notes."""
    titles = [tale.title for tale, _ in all_tales(book)]
    contents = "CONTENTS\n\n" + "\n".join(
        f"  {title.upper()} .... {page}" for page, title in enumerate(titles, 1)
    )
    parts = [LICENCE[0], "MADE TALES", f"PREFACE\n\n{PREFACE}", contents]
    for number, tale in enumerate(book, 1):
        if tale.inner:
            parts += [f"BOOK {number}", tale.title.upper(), *tale.paragraphs]
            for place, inner in enumerate(tale.inner, 1):
                parts += [f"STORY {place}. {inner.title.upper()}", *inner.paragraphs]
            parts += [f"{tale.title.upper()} CONTINUED", *tale.rest]
        else:
            first, *others = tale.paragraphs
            if number > 1 and book[number - 2].inner:
                parts += [f"BOOK {number}", "OTHER TALES"]
            parts += [tale.title.upper(), f"{first} [1]"]
            parts += ["[Illustration: the two of them]", *others, "[1] So it is told in the hills."]
    return "\n\n\n".join([*parts, LICENCE[1]])


def as_markdown(book: Sequence[MadeTale]) -> str:
    """Return a book as Markdown: tales told in others have headings one level deeper."""
    parts = [
        "---\ntitle: Made Tales\ntranslator: A. Hand\nlanguage: en\nyear: 1900\n---",
        f"# Preface\n\n{PREFACE}",
    ]
    for tale in book:
        parts += [f"# {tale.title}", *tale.paragraphs, "![the two](a.png)"]
        for inner in tale.inner:
            parts += [f"## {inner.title}", *inner.paragraphs]
        parts += [f"## {tale.title} (continued)", *tale.rest] if tale.rest else []
    return "\n\n".join(parts)


def _body(tales: Sequence[MadeTale]) -> str:
    parts = []
    for tale in tales:
        parts.append(f'<h2 id="t{hash_of(tale.title)}">{html.escape(tale.title)}</h2>')
        parts += [f"<p><span class='pagenum'>[7]</span>{html.escape(text)}</p>" for text in tale.paragraphs]
        parts.append("<figure><img src='a.png' alt=''/><figcaption>The two of them</figcaption></figure>")
        for inner in tale.inner:
            parts.append(f'<h3 id="t{hash_of(inner.title)}">{html.escape(inner.title)}</h3>')
            parts += [
                f"<p>{html.escape(text)}<a class='fnanchor' href='#n'>[1]</a></p>"
                for text in inner.paragraphs
            ]
        if tale.rest:
            parts.append(f"<h3>{html.escape(tale.title)}, continued</h3>")
            parts += [f"<p>{html.escape(text)}</p>" for text in tale.rest]
        parts.append("<div class='footnote'><p>A note of the editor.</p></div>")
    return "\n".join(parts)


def hash_of(text: str) -> int:
    """Return a number for a text, the same everywhere."""
    return sum(place * ord(char) for place, char in enumerate(text, 1))


def as_html(book: Sequence[MadeTale]) -> str:
    """Return a book as an HTML document."""
    head = "<title>Made Tales</title><meta name='author' content='A. Hand'>"
    body = f"<body><h1>Made Tales</h1>{_body(book)}</body>"
    return f"<!DOCTYPE html><html lang='en'><head>{head}</head>{body}</html>"


def as_epub(book: Sequence[MadeTale]) -> bytes:
    """Return a book as an EPUB: one document a tale, whose titles stand in its table of contents alone."""
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container><rootfile full-path='O/p.opf'/></container>",
    }
    items, spine, nav = [], [], []
    for number, tale in enumerate(book):
        body = _body([tale]).replace("<h2", "<p").replace("</h2>", "</p>")
        plain = body.replace(f">{html.escape(tale.title)}</p>", "></p>", 1)
        files[f"O/t{number}.xhtml"] = f"<html xmlns:epub='x'><body>{plain}</body></html>"
        items.append(f"<item id='i{number}' href='t{number}.xhtml' media-type='application/xhtml+xml'/>")
        spine.append(f"<itemref idref='i{number}'/>")
        inner = "".join(
            f"<li><a href='t{number}.xhtml#t{hash_of(one.title)}'>{html.escape(one.title)}</a></li>"
            for one in tale.inner
        )
        below = f"<ol>{inner}</ol>" if inner else ""
        nav.append(f"<li><a href='t{number}.xhtml'>{html.escape(tale.title)}</a>{below}</li>")
    files["O/nav.xhtml"] = f"<html><body><nav epub:type='toc'><ol>{''.join(nav)}</ol></nav></body></html>"
    files["O/p.opf"] = (
        "<package><metadata><dc:title>Made Tales</dc:title><dc:language>en</dc:language>"
        "<dc:date>1900-01-01</dc:date><dc:contributor opf:role='trl'>A. Hand</dc:contributor></metadata>"
        f"<manifest><item id='nav' href='nav.xhtml' properties='nav'/>{''.join(items)}</manifest>"
        f"<spine>{''.join(spine)}</spine></package>"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()
