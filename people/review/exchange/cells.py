"""Answers read from texts that people write into a cell or field.

What a text cannot say, such as white space around it, is written as JSON after ``json:``.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from math import isfinite
from pathlib import Path

from ....errors import ConfigError, InputError, UserError
from ....schemas.canonical import Json, canonical_text, csv_text, digest, without_guard, write_atomic
from ....schemas.plain_files import BadCsv, CsvTable, read_plain, reason_of
from ....validators.katha.review_tables import SEEN
from ..design import Place
from ..flow import answered, open_places
from ..folder import Study
from ..items import (
    MEDIA,
    TYPES,
    Item,
    Marked,
    Media,
    Part,
    Value,
    shuffled_parts,
    values_of,
    wrong_corrections,
)
from ..serve.server import Pages, Reader, Shown
from ..standing import Event, Reviewer, Standing, placed
from ..task import UNCLEAR, Question, place_of, text_in

# -- What a seat is asked, item by item, with its sides and parts as its pages show them; plain HTML of each
#
# Other tools get HTML without our style, and files under opaque names.


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
            for row in _sheet_rows(asked.part, asked.values)]  # fmt: skip
    unique = list(dict.fromkeys(rows))
    return f"<table><tbody>{''.join(unique)}</tbody></table>" if unique else ""


def _sheet_rows(part: Part | None, values: tuple[Value, ...]) -> Iterator[str]:
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


# -- What the answers of another tool become in a study: votes, and what comes before and after them

LARGEST = 256 * 1024 * 1024
"""Bytes of a file that is read."""


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody answered about an item in another tool."""

    where: str  # file and line, for messages
    user: str  # who that is there; empty where the file does not say
    key: str  # the item, with ``#n`` for a repetition
    answers: Mapping[str, Json]  # what an answer is called in a vote -> answer
    seat: int | None = None  # number of the seat; None where the file does not say
    at: str | None = None  # when, RFC 3339, UTC; None where the tool does not say
    seconds: float | None = None  # how long it took; None where the tool does not say
    seen: str | None = None  # hash of the record that was shown there; None where the file does not say


@dataclass
class Reading:
    """What a file of another tool holds."""

    given: list[Given] = field(default_factory=list)  # the answers
    problems: list[UserError] = field(default_factory=list)  # what is wrong in it
    # what was passed over on purpose -> how often, such as drafts
    passed: dict[str, int] = field(default_factory=dict)

    def wrong(self, where: str, what: str, fix: str) -> None:
        self.problems.append(UserError(where, what=what, fix=fix))

    def pass_over(self, what: str, count: int = 1) -> None:
        """Note what is passed over on purpose."""
        self.passed[what] = self.passed.get(what, 0) + count


def moment_of(value: Json) -> str | None:
    """Return a time as RFC 3339 in UTC, to the millisecond; None where it is no time of a known zone."""
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, TypeError, OverflowError):
        return None


def seconds_of(value: Json) -> float | None:
    """Return a time in seconds; None where it is no number from 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 and isfinite(value) else None


FIX = "correct it there, and export the answers again"


@dataclass
class Taking:
    """An import while it is checked."""

    study: Study  # the study
    standing: Standing  # where it stands; what is taken is told to it
    people: dict[str, str]  # who somebody is there -> pseudonym
    source: Mapping[str, Json]  # tool, and hash of the file
    now: str  # the time
    reading: Reading  # the answers and problems
    seats: dict[str, int] = field(default_factory=dict)  # reviewer -> seat
    known: int = 0  # how many votes were there already

    def events(self) -> list[Event]:
        """Return what the answers become; what is wrong is noted."""
        events: list[Event] = []
        first: dict[tuple[str, str], str] = {}
        for given in self.reading.given:
            reviewer = self._reviewer(given)
            before = first.setdefault((reviewer or given.user, given.key), given.where)
            if before != given.where:
                self.reading.wrong(given.where, f"this was answered at {before}, too", "keep one of them")
                continue
            seat = None if reviewer is None else self._seat(given, reviewer)
            if reviewer is None or seat is None:
                continue
            dealt = self._dealt(given, reviewer, seat)
            wrong = {} if dealt is None else self._wrong(given, dealt)
            for name, what in wrong.items():
                self.reading.wrong(f"{given.where} {name}", what, FIX)
            if dealt is not None and not wrong:
                events += self._taken(given, reviewer, seat, dealt)
        if not self.reading.given and not self.reading.problems:
            self.reading.wrong(
                str(self.source["tool"]), "there are no answers in the file", "give the filled file"
            )
        return events + [
            event for reviewer, seat in self.seats.items() for event in self._ending(reviewer, seat)
        ]

    def _reviewer(self, given: Given) -> str | None:
        if given.user in self.people:
            return self.people[given.user]
        if not given.user and len(self.people) == 1:
            return next(iter(self.people.values()))
        who = (
            f"{given.user!r} is no reviewer of this study yet"
            if given.user
            else "nobody is named who answered"
        )
        fix = "say who that is with --person, as --person 12=r-5f2c91aa"
        self.reading.wrong(given.where, who, fix)
        return None

    def _seat(self, given: Given, reviewer: str) -> int | None:
        """Return the seat of somebody's answers: the same for all of them, and free or theirs."""
        known = self.standing.reviewers.get(reviewer, Reviewer(reviewer))
        holder = self.standing.holders.get(given.seat or 0, reviewer)
        if given.seat is None or given.seat not in self.study.seats:
            what = "the seat is not named"
        elif self.seats.setdefault(reviewer, given.seat) != given.seat:
            what = f"it is of seat {given.seat}, and {reviewer} has seat {self.seats[reviewer]}"
        elif known.role != "reviewer" or known.revoked or known.dropped:
            what = f"{reviewer} does not review any more, or never did"
        elif holder != reviewer:
            what = f"seat {given.seat} is held by {holder}"
        elif known.seat not in (None, given.seat) and known.ended is None:
            what = f"{reviewer} has begun seat {known.seat} and has not finished it"
        else:
            return given.seat
        self.reading.wrong(given.where, what, "import what was exported for a seat of this person")
        return None

    def _dealt(self, given: Given, reviewer: str, seat: int) -> Place | None:
        dealt = next(
            (each for each in self.study.seats[seat].places if placed(each.item, each.repeat) == given.key),
            None,
        )
        if dealt is None:
            what = f"item {given.key[:40]!r} is not in seat {seat}"
        elif given.key in answered(self.standing, seat, but=reviewer):
            what = f"item {given.key} of seat {seat} was answered by somebody else"
        elif self._is_closed(given, reviewer, seat, dealt):
            what = f"the part of item {given.key} is closed, and its answers are final"
        else:
            return dealt
        self.reading.wrong(given.where, what, "leave it out")
        return None

    def _is_closed(self, given: Given, reviewer: str, seat: int, dealt: Place) -> bool:
        known = self.standing.reviewers.get(reviewer)
        closed = known is not None and known.has_closed(seat, str(dealt.block))
        return closed and not self._is_known(given, reviewer)

    def _is_known(self, given: Given, reviewer: str) -> bool:
        votes = self._votes(given, reviewer)
        return bool(votes) and votes[-1] == dict(given.answers)

    def _votes(self, given: Given, reviewer: str) -> list[dict[str, Json]]:
        known = self.standing.reviewers.get(reviewer)
        votes = [] if known is None else known.votes.get(given.key, [])
        return [dict(vote.answers) for vote in votes if vote.seat is not None]

    def _wrong(self, given: Given, dealt: Place) -> dict[str, str]:
        if given.seen not in (None, self.study.seen(dealt.item).get(SEEN)):
            return {SEEN: "another content was shown there than the study has"}
        task, item = self.study.task, self.study.items[dealt.item]
        return task.problems(given.answers, item.part_ids) or wrong_corrections(task, item, given.answers)

    def _taken(self, given: Given, reviewer: str, seat: int, dealt: Place) -> list[Event]:
        if self._is_known(given, reviewer):
            self.known += 1
            return []
        events = self._beginning(reviewer, seat)
        content = [given.key, seat, dict(given.answers), len(self._votes(given, reviewer))]
        source = {**self.source, "seconds": given.seconds, "at": given.at}
        body = {
            "answers": dict(given.answers), "flip": dealt.flip, "seat": seat, "block": str(dealt.block),
            "timeline": [], "imported": source, **({} if given.seen is None else {SEEN: given.seen}),
        }  # fmt: skip
        events.append(self._event(reviewer, "voted", content, given.key, given.at, **body))
        self._tell(events[-1:])
        return events

    def _beginning(self, reviewer: str, seat: int) -> list[Event]:
        """Return what comes before somebody's first vote in a seat."""
        known = self.standing.reviewers.get(reviewer)
        events = []
        if known is None:
            events.append(self._event(reviewer, "invited", ["invited"], role="reviewer", group=None))
        if known is None or known.seat != seat:
            taken = 0 if known is None else len(known.seats)
            events.append(self._event(reviewer, "seated", ["seated", seat, taken], seat=seat))
        self._tell(events)
        return events

    def _ending(self, reviewer: str, seat: int) -> list[Event]:
        """Return what follows where all of a seat is answered: its parts are closed, and somebody is done."""
        known = self.standing.reviewers.get(reviewer)
        places = self.study.seats[seat].places
        done = answered(self.standing, seat)
        if (
            known is None
            or known.ended is not None
            or {placed(each.item, each.repeat) for each in places} - done
        ):
            return []
        blocks = dict.fromkeys(str(each.block) for each in places)
        content = ["ending", seat, len(known.seats)]
        return [
            *(self._event(reviewer, "closed", [*content, block], block=block, seat=seat) for block in blocks
              if not known.has_closed(seat, block)),
            self._event(reviewer, "ended", content, why="finished"),
        ]  # fmt: skip

    def _event(
        self, reviewer: str, kind: str, content: Sequence[Json], item: str | None = None,
        at: str | None = None, **body: Json,
    ) -> Event:  # fmt: skip
        name = f"{reviewer}/import-{digest([kind, *content])[:24]}"
        return Event(name, at or self.now, self.study.protocol.sha256, reviewer, kind, item, body)

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            self.standing.apply(event)


# --

JSON = "json:"
BETWEEN = "|"
"""Stands between the labels of an answer."""
EQUALS = "="
"""Stands between the path of a correction and the new value."""
NONE = "none"
"""A list of corrections with nothing in it."""
LONGEST_TOKEN = 80


def tokens(question: Question) -> dict[str, str | int]:
    """Return what each option of a question is called in other tools -> its value, in order; with Unclear.

    That is the value itself, where it can stand in a list, a cell and an attribute of XML, and no other reads
    so; else ``option-`` and its number.
    """
    values = [option.value for option in question.choices]
    texts = [str(value) for value in values]
    reserved = {text for text, value in zip(texts, values, strict=True) if _can_stand(text, value)}
    named: dict[str, str | int] = {}
    for number, (text, value) in enumerate(zip(texts, values, strict=True), 1):
        name = text
        if text not in reserved or texts.count(text) > 1:
            name = f"option-{number}"
            while name in reserved or name in named:
                name += "-"
        named[name] = value
    return named | ({UNCLEAR: UNCLEAR} if question.unclear else {})


def _can_stand(text: str, value: str | int) -> bool:
    if text == UNCLEAR and value != UNCLEAR:
        return False
    plain = text.isprintable() and text == text.strip() and len(text) <= LONGEST_TOKEN
    return bool(text) and plain and text[0] not in "'=+@" and not set(text) & set(",|$\\")


def token_of(question: Question, value: Json) -> str:
    """Return what an option is called in other tools."""
    named = {(type(known), known): name for name, known in tokens(question).items()}
    return named[type(value), value]


def answer_of(asked: Asked, cell: str) -> Json:
    question, text = asked.question, cell.strip()
    if question.unclear and text.lower() == UNCLEAR:
        return UNCLEAR
    if question.type in ("choice", "scale"):
        return _option(question, text)
    if question.type == "labels":
        return [_option(question, label.strip()) for label in text.split(BETWEEN) if label.strip()]
    return _text(text) if question.type == "text" else _edits(asked.values, text)


def _option(question: Question, text: str) -> Json:
    named = tokens(question)
    if text in named:
        return named[text]
    lowered = text.casefold()
    chosen = {name: value for name, value in named.items() if name.casefold() == lowered}
    for option in question.choices:
        if lowered in (words.casefold() for words in option.text.values()):
            chosen[str(option.value)] = option.value
    if len(chosen) != 1:
        raise ValueError(f"one of {', '.join(named)} is expected, and there is {text[:60]!r}")
    return next(iter(chosen.values()))


def _text(text: str) -> Json:
    return _parsed(text.removeprefix(JSON)) if text.startswith(JSON) else text


def _edits(values: Sequence[Value], text: str) -> Json:
    if text.lower() == NONE:
        return []
    if text.startswith(JSON):
        return _parsed(text.removeprefix(JSON))
    paths = sorted((value.path for value in values), key=len, reverse=True)
    shown = {value.path: value.value for value in values}
    edits = []
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        path = next((path for path in paths if line.removeprefix(path).lstrip().startswith(EQUALS)
                     and line.startswith(path)), None)  # fmt: skip
        if path is None:
            listed = ", ".join(shown) or "there are none"
            raise ValueError(f"each line is a path, {EQUALS} and the new value; the paths are {listed}")
        edits.append({"path": path, "new": _new(shown[path], line[len(path) :].lstrip()[1:].strip())})
    return edits


def _new(shown: Json, text: str) -> Json:
    if text.startswith(JSON):
        return _parsed(text.removeprefix(JSON))
    if isinstance(shown, str):
        return text
    try:
        return _parsed(text)
    except ValueError:
        if shown is None:
            return text
        raise


def _parsed(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a character has no form in a file
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON is expected, and there is {text[:60]!r}") from error
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number of JSON")


def hint(asked: Asked, language: str) -> str:
    """Return how a question is answered in a cell: its options, or what to write, and when it is asked."""
    question = asked.question
    texts = {option.value: text_in(option.text, language) for option in question.choices}
    options = [name if (words := texts.get(value, name)) == name else f"{name} = {words}"
               for name, value in tokens(question).items()]  # fmt: skip
    how = f" {BETWEEN} ".join(options)
    if question.type == "labels":
        how = f"1 to {question.most}, the likeliest first, with {BETWEEN} between them: {how}"
    elif question.type == "text":
        how = f"a text{f', or {UNCLEAR}' if question.unclear else ''}"
    elif question.type == "edits":
        paths = ", ".join(value.path for value in asked.values)
        how = f"one correction a line, as PATH {EQUALS} NEW VALUE; {NONE} if there is none; paths: {paths}"
    notes = ["may be left empty"] if question.optional else []
    notes += [f"only if {name} is {' or '.join(map(str, wanted))}" for name, wanted in question.when.items()]
    return "; ".join((how, *notes))


# -- Answers in a table, one row for each thing that is asked; any spreadsheet opens it

FILE, SHOWN = "answers.csv", "evidence"
COLUMNS = ("seat", "number", "item", "place", "see", "question", "part", "options", "answer")
NEEDED = ("item", "place", "answer")
LIMITS = (
    "when something was answered, and how long it took: votes have the time of the import and no seconds",
)
_FIX_LINE = "correct the line; export the seat again to see how answers are written"


def write_csv(load: Load, folder: Path) -> tuple[str, ...]:
    """Write a seat's items as a table to be filled in, a page for each; return what it cannot hold."""
    copy_media(load, folder / "media")
    (folder / SHOWN).mkdir()
    rows: list[tuple[Json, ...]] = []
    for sheet in load.sheets:
        see = f"{SHOWN}/{sheet.number:03d}.html"
        page = evidence_page(load, sheet, lambda medium: f"../media/{stored_name(load, medium)}")
        write_atomic(folder / see, [page.encode("utf-8")])
        rows += (_row(load, sheet, asked, see) for asked in sheet.asked)
    columns = (*COLUMNS, SEEN) if any(load.study.seen(sheet.item.item) for sheet in load.sheets) else COLUMNS
    write_atomic(folder / FILE, [csv_text(columns, rows).encode("utf-8")])
    return LIMITS


def _row(load: Load, sheet: Sheet, asked: Asked, see: str) -> tuple[Json, ...]:
    part = "" if asked.part is None else asked.part.text
    title = text_in(asked.question.title, load.language)
    about = (load.seat, sheet.number, sheet.key, asked.name, see)
    seen = load.study.seen(sheet.item.item).values()
    return (*about, title, part, hint(asked, load.language), None, *seen)


def read_csv(path: Path, study: Study) -> Reading:
    """Return the answers of a filled table; rows without an answer are passed over."""
    reading = Reading()
    answers: dict[tuple[str, str], dict[str, Json]] = {}
    first: dict[tuple[str, str], tuple[str, str]] = {}
    seen: dict[tuple[str, str], set[str | None]] = {}
    for where, row in _rows(path, reading):
        if not row["answer"]:
            continue
        about = (row.get("reviewer", ""), row["item"])
        first.setdefault(about, (where, row.get("seat", "")))
        given = answers.setdefault(about, {})
        if row["place"] in given:
            reading.wrong(where, "this was answered in a row before", "keep one of them")
        given[row["place"]] = _answer(study, row, where, reading)
        seen.setdefault(about, set()).add(row.get(SEEN) or None)
    for (user, key), given in answers.items():
        where, seat = first[user, key]
        shown = seen[user, key]
        if None not in shown and len(shown) > 1:
            reading.wrong(where, f"its rows name different contents ({SEEN})", "export the seat again")
        reading.given.append(
            Given(
                where, user, key, given, int(seat) if seat.isdecimal() else None,
                seen=None if None in shown else next(iter(shown)),
            )
        )  # fmt: skip
    return reading


def _answer(study: Study, row: Mapping[str, str], where: str, reading: Reading) -> Json:
    asked = (asked_of(study, row["item"]) or {}).get(row["place"])
    if asked is None:
        return row["answer"]  # the checks of the item say that it is not asked
    try:
        return answer_of(asked, row["answer"])
    except ValueError as error:
        reading.wrong(f"{where} {row['place']}", str(error), _FIX_LINE)
        return row["answer"]


def _rows(path: Path, reading: Reading) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows with their lines; cells have neither guards nor white space around them."""
    try:
        text = read_plain(path, LARGEST, follow=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.one(str(path), what=reason_of(error), fix="give the table as UTF-8") from error
    try:
        table = CsvTable(text, ",;")
        if missing := [name for name in NEEDED if name not in table.columns]:
            what = f"the first line names no column {', '.join(missing)}"
            raise InputError.one(f"{path}:1", what=what, fix="give the table that review export wrote")
        for line, cells in table.rows():
            where = f"{path}:{line}"
            if len(cells) != len(table.columns) and any(cells):
                what = f"{len(cells)} cells in place of {len(table.columns)}"
                reading.wrong(where, what, "put quotes around a cell with commas")
            elif any(cells):
                yield where, table.by_name([*map(_clean, cells)])
    except BadCsv as error:
        reading.wrong(f"{path}:{error.line}", str(error), "save the table as CSV, as review export wrote it")


def _clean(cell: str) -> str:
    return without_guard(cell.replace("\r\n", "\n").replace("\r", "\n").strip())
