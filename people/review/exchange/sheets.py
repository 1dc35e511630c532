"""What a seat is asked, item by item, with its sides and parts as its pages show them; plain HTML of each.

Other tools get HTML without our style, and files under opaque names.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from ....errors import ConfigError
from ....schemas.canonical import canonical_text
from ..design import Place
from ..flow import open_places
from ..folder import Study
from ..items import MEDIA, TYPES, Item, Marked, Media, Part, Value, shuffled_parts, values_of
from ..serve.server import Pages, Reader, Shown
from ..standing import Standing, placed
from ..task import Question, place_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is asked about an item."""

    name: str  # what its answer is called in a vote; see :func:`..task.place_of`
    question: Question  # the question
    part: Part | None  # the part that it is about; None for the whole item
    turn: int  # which of the parts that is in the order shown, from 1; 0 for the whole item
    values: tuple[Value, ...]  # what may be corrected by the answer, of an ``edits`` question


@dataclass(frozen=True, slots=True)
class Sheet:
    """An item as a seat is asked it."""

    key: str  # the item, with ``#n`` for a repetition, as votes are kept under
    seat: int  # number of the seat
    number: int  # which item of the seat it is, from 1
    dealt: Place  # block, flip and repetition
    shown: Shown  # sides and parts in the order in which they are shown
    asked: tuple[Asked, ...]  # the questions, in the order of the pages

    @property
    def item(self) -> Item:
        """The item."""
        return self.shown.item


@dataclass(frozen=True)
class Load:
    """What is given to another tool: the items of a seat that are still to be answered."""

    study: Study  # the study
    seat: int  # number of the seat
    sheets: tuple[Sheet, ...]  # its items, in order
    language: str = "en"  # of the texts
    embed: bool = False  # whether pictures are written into the items, for a tool that can hold them so


def sheets_of(study: Study, seat: int, standing: Standing | None = None) -> tuple[Sheet, ...]:
    """Return what a seat is asked; with a standing, only what nobody has answered in it."""
    if seat not in study.seats:
        expected = f"a seat from {min(study.seats)} to {max(study.seats)}"
        raise ConfigError("--seat", expected=expected, found=str(seat), fix="choose one of them")
    wanted = study.seats[seat].places if standing is None else open_places(study, standing, seat)
    still_open = {placed(dealt.item, dealt.repeat) for dealt in wanted}
    return tuple(
        sheet
        for number, dealt in enumerate(study.seats[seat].places, 1)
        if (sheet := _sheet(study, seat, number, dealt)).key in still_open
    )


def _sheet(study: Study, seat: int, number: int, dealt: Place) -> Sheet:
    item = study.items[dealt.item]
    draw = f"{study.protocol.seed}/{seat}/{len(study.training) + number - 1}"
    shown = Shown(item, dealt, shuffled_parts(item, draw), study.task.card, draw)
    asked = tuple(_asked(shown))
    return Sheet(placed(dealt.item, dealt.repeat), seat, number, dealt, shown, asked)


def _asked(shown: Shown) -> Iterator[Asked]:
    for _, groups in shown.sections():
        for part, questions in groups:
            yield from (_of_part(shown.item, shown.parts, question, part) for question in questions)


def _of_part(item: Item, parts: Mapping[str, Sequence[Part]], question: Question, part: Part | None) -> Asked:
    of_part = "" if part is None else part.id
    turn = 0 if part is None else list(parts[question.each or ""]).index(part) + 1
    values = values_of(item, question, of_part) if question.type == "edits" else ()
    return Asked(place_of(question.name, of_part), question, part, turn, values)


def asked_of(study: Study, key: str) -> dict[str, Asked] | None:
    """Return what an answer is called -> its question, about an item; None where there is no such item."""
    item = study.items.get(key.partition("#")[0])
    if item is None:
        return None
    known = {part.id: part for parts in item.parts.values() for part in parts}
    listed = (
        _of_part(item, item.parts, question, known.get(part))
        for question, part in study.task.asked(item.part_ids)
    )
    return {asked.name: asked for asked in listed}


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
    """Copy the pictures and videos of all items into a folder, under opaque names."""
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

    ``source``: gives the address of a picture or video; None where they are shown elsewhere.
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
