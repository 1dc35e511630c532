"""What a seat is asked, item by item in its own order, with its sides and parts as its pages show them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....errors import ConfigError
from ....schemas.canonical import Json
from ..corrections import values_of
from ..design import Place
from ..flow import open_places
from ..folder import Study
from ..items import Item, Part, Value, shuffled_parts
from ..serve.pages import Shown
from ..standing import Standing, placed
from ..task import Question, place_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is asked about an item.

    Attributes:
        name: what its answer is called in a vote; see :func:`..task.place_of`.
        question: the question.
        part: the part that it is about; None for the whole item.
        turn: which of the parts that is in the order shown, from 1; 0 for the whole item.
        values: what may be corrected by the answer, of an ``edits`` question.
    """

    name: str
    question: Question
    part: Part | None
    turn: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """An item as a seat is asked it.

    Attributes:
        key: the item, with ``#n`` for a repetition, as votes are kept under.
        seat: number of the seat.
        number: which item of the seat it is, from 1.
        dealt: block, flip and repetition.
        shown: sides and parts in the order in which they are shown.
        asked: the questions, in the order of the pages.
    """

    key: str
    seat: int
    number: int
    dealt: Place
    shown: Shown
    asked: tuple[Asked, ...]

    @property
    def item(self) -> Item:
        """The item."""
        return self.shown.item


@dataclass(frozen=True)
class Load:
    """What is given to another tool: the items of a seat that are still to be answered.

    Attributes:
        study: the study.
        seat: number of the seat.
        sheets: its items, in order.
        language: of the texts.
        answers: item -> answers that are there already and are written along; usually none.
        embed: whether pictures are written into the items, for a tool that can hold them so.
    """

    study: Study
    seat: int
    sheets: tuple[Sheet, ...]
    language: str = "en"
    answers: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    embed: bool = False


def sheets_of(study: Study, seat: int, standing: Standing | None = None) -> tuple[Sheet, ...]:
    """Return what a seat is asked; with a standing, only what nobody has answered in it.

    Raises:
        ConfigError: there is no such seat.
    """
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
