"""What an item shows, for other tools: plain HTML without our style, and files under opaque names."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from ....schemas.canonical import canonical_text
from ..items import Media, Part, Value
from ..media import MEDIA, TYPES, Marked
from ..serve.pages import Pages, Reader
from ..task import text_in
from .sheets import Load, Sheet

KEPT = frozenset((
    "h2", "h3", "h4", "p", "ol", "ul", "li", "dl", "dt", "dd", "div", "section", "details", "summary", "br",
    "blockquote", "figure", "figcaption", "img", "video", "b", "em", "strong", "table", "thead", "tbody",
    "tr", "th", "td",
))  # fmt: skip
"""Elements that other tools may get; of others they get what stands in them."""
EMPTY = frozenset(("img", "br"))
ATTRIBUTES = frozenset(("alt", "width", "height", "aria-label", "lang"))
HIDDEN = "sr"
"""Class of what only screen readers say on our pages, such as names of buttons."""
STYLES = {"sides": "display:flex;gap:1em;align-items:flex-start", "passage": "white-space:pre-line"}
"""Class of ours -> what is kept of its style."""
PICTURE = "max-width:100%;height:auto"
Source = Callable[[Media], str]
"""Gives the address of a picture or video."""
PICTURES = frozenset(("sides", "strip", "frame"))
"""Classes of what holds pictures and videos in our pages."""


def stored_name(load: Load, medium: Media) -> str:
    """Return the name under which another tool gets a picture or video: opaque, with its ending."""
    return f"{medium.name}.{_kept(load, medium).rpartition('.')[2]}"


def _kept(load: Load, medium: Media) -> str:
    return load.study.stands[load.study.owner_of_media[medium.name]].files[medium.name]


def _marked(load: Load, medium: Media) -> Marked:
    return Marked.of(load.study.folder / MEDIA / _kept(load, medium), medium.name, load.study.secret)


def copy_media(load: Load, folder: Path) -> None:
    """Copy the pictures and videos of all items into a folder, under opaque names.

    Raises:
        OSError: it cannot be written.
    """
    for medium in _media(load):
        folder.mkdir(exist_ok=True)
        (folder / stored_name(load, medium)).write_bytes(_marked(load, medium).content())


def _media(load: Load) -> Iterator[Media]:
    shown = {medium.name: medium for sheet in load.sheets for medium in sheet.item.media}
    yield from shown.values()


def embedded(load: Load, medium: Media) -> str:
    """Return a picture or video as a data URL."""
    marked = _marked(load, medium)
    content = base64.b64encode(marked.content()).decode("ascii")
    return f"data:{TYPES[marked.path.suffix.lstrip('.')]};base64,{content}"


def plain_evidence(load: Load, sheet: Sheet, source: Source | None) -> str:
    """Return what an item shows as plain HTML, and below it the values that may be corrected.

    Args:
        load: what is given to the other tool.
        sheet: the item.
        source: gives the address of a picture or video; None where they are shown elsewhere.
    """
    reader = Reader(load.language)
    media = {f"/media/{medium.name}": source(medium) for medium in sheet.item.media} if source else None
    plain = _Plain(media)
    plain.feed(Pages(load.study).evidence(reader, sheet.shown))
    plain.close()
    return re.sub(r"\s*\n\s*\n\s*", "\n", "".join(plain.written)).strip() + _values(sheet)


def _values(sheet: Sheet) -> str:
    rows = [row for asked in sheet.asked if asked.question.type == "edits"
            for row in _rows(asked.part, asked.values)]  # fmt: skip
    unique = list(dict.fromkeys(rows))
    return f"<table><tbody>{''.join(unique)}</tbody></table>" if unique else ""


def _rows(part: Part | None, values: tuple[Value, ...]) -> Iterator[str]:
    for value in values:
        shown = value.value if isinstance(value.value, str) else canonical_text(value.value)
        cells = ("" if part is None else part.text, value.label, value.path, shown)
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


class _Plain(HTMLParser):
    """Writes HTML again with known elements only, and with other addresses of media, or without media."""

    def __init__(self, media: Mapping[str, str] | None) -> None:
        super().__init__(convert_charrefs=True)
        self.media, self.written = media, list[str]()
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if self._hidden or HIDDEN in classes or (self.media is None and PICTURES.intersection(classes)):
            self._hidden += tag not in EMPTY
            return
        if tag not in KEPT:
            return
        kept = {name: value or "" for name, value in given.items() if name in ATTRIBUTES}
        if tag in ("img", "video") and self.media is not None:
            kept |= {"src": self.media[given["src"] or ""], "style": PICTURE}
        if tag == "video":
            kept["controls"] = "controls"
        styles = [style for name, style in STYLES.items() if name in classes]
        kept |= {"style": styles[0]} if styles else {}
        listed = "".join(f' {name}="{escape(value)}"' for name, value in kept.items())
        self.written.append(f"<{tag}{listed}>")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden -= tag not in EMPTY
        elif tag in KEPT and tag not in EMPTY:
            self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.written.append(escape(data))


def evidence_page(load: Load, sheet: Sheet, source: Source) -> str:
    """Return a page of its own that shows an item, for who answers in a file."""
    number = f"{load.study.protocol.title} {load.seat}.{sheet.number}"
    parts = {asked.part.id: asked.part for asked in sheet.asked if asked.part is not None}
    asked_of = "".join(
        f"<h3>{escape(part.text)}</h3>{''.join(f'<p>{escape(line)}</p>' for line in part.detail)}"
        for part in parts.values()
    )
    return (
        f'<!doctype html>\n<html lang="{escape(load.language)}">\n<meta charset="utf-8">\n'
        f"<title>{escape(number)}</title>\n<h2>{escape(number)}</h2>\n"
        f"{plain_evidence(load, sheet, source)}\n{asked_of}\n</html>\n"
    )


def instructions(load: Load) -> str:
    """Return what reviewers read before they begin."""
    return text_in(load.study.task.card.instructions, load.language)
