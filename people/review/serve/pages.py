"""The pages: templates, the words of the interface in the reader's language, and what an item shows."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ....schemas.canonical import Json
from ..corrections import values_of
from ..design import Place
from ..flow import Step, is_answered, seat_of, work_of
from ..folder import Study
from ..items import Item, Value, shuffled_parts
from ..standing import TRAINING, Reviewer, Standing, placed
from ..task import LONGEST_TEXT, Option, Question, TaskCard, place_of, text_in

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FIRST = "en"


@cache
def strings(language: str) -> dict[str, str]:
    """Return the words of the interface in a language; English where one has no such form."""
    own = json.loads((files(__package__) / "strings" / f"{FIRST}.json").read_text("utf-8"))
    if language != FIRST and language in languages():
        own |= json.loads((files(__package__) / "strings" / f"{language}.json").read_text("utf-8"))
    return dict(own)


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that the interface is written in, English first."""
    names = sorted(entry.name for entry in (files(__package__) / "strings").iterdir())
    there = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return (FIRST, *(name for name in there if name != FIRST))


@cache
def _environment(*, ours: bool) -> "Environment":
    """Return what renders templates; a task's may come from anybody, and runs in a sandbox."""
    import jinja2
    from jinja2.sandbox import SandboxedEnvironment

    environment = (jinja2.Environment if ours else SandboxedEnvironment)(
        loader=jinja2.FunctionLoader(_template), undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"inwords": text_in, "blocks": blocks}
    return environment


def _template(name: str) -> str | None:
    there = {entry.name for entry in (files(__package__) / "templates").iterdir()}
    return (files(__package__) / "templates" / name).read_text("utf-8") if name in there else None


def blocks(content: str) -> list[tuple[str, list[str]]]:
    """Return a text as blocks of lines: ``text``, or ``list`` where lines begin with a dash and a space."""
    parted: list[tuple[str, list[str]]] = []
    before = ""
    for line in content.splitlines():
        kind = "list" if line.startswith("- ") else "text"
        if line.strip():
            if not parted or not before.strip() or parted[-1][0] != kind:
                parted.append((kind, []))
            parted[-1][1].append(line[2:] if kind == "list" else line)
        before = line
    return parted


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a page."""

    language: str = FIRST  # of the interface
    token: str = ""  # what the page sends with each request; empty where nobody has entered
    # tells the browser whose answers wait in it, and nothing else; empty where nobody has entered
    mark: str = ""

    def say(self, name: str, **values: object) -> str:
        """Return words of the interface, with values in their places."""
        text = strings(self.language).get(name, name)
        for key, value in values.items():
            text = text.replace("{" + key + "}", str(value))
        return text


@dataclass
class Pages:
    """Makes the pages of a study."""

    study: Study
    _evidence: "Template | None" = field(default=None, repr=False)

    def show(self, name: str, reader: Reader, **values: Any) -> str:  # noqa: ANN401 - whatever the page shows
        """Return a page as HTML."""
        card, protocol = self.study.task.card, self.study.protocol
        known = [name for name in protocol.languages if name in languages()] or [FIRST]
        return str(
            _environment(ours=True).get_template(f"{name}.j2").render(
                page=name, say=reader.say, words=strings(reader.language), language=reader.language,
                languages=[(known_name, strings(known_name)["language"]) for known_name in known],
                token=reader.token, mark=reader.mark, title=protocol.title,
                text=lambda texts: text_in(texts, reader.language),
                instructions=card.instructions, protocol=protocol, **values,
            )
        )  # fmt: skip

    def item(self, reader: Reader, person: Reviewer, step: Step, given: "Given") -> str:
        """Return the page of an item."""
        from markupsafe import Markup

        if step.place is None:
            raise ValueError("the step is about no item")
        place, study = step.place, self.study
        item = study.items[place.item]
        draw = f"{study.protocol.seed}/{person.seat}/{step.number}"
        parts = shuffled_parts(item, draw)
        shown = Shown(item, place, parts, study.task.card, draw)
        evidence = self.evidence(reader, shown)
        number, total = self._progress(step)
        return self.show(
            "item", reader, item=shown, evidence=Markup(evidence), key=placed(place.item, place.repeat),
            number=number + 1, total=total, practice=step.block == TRAINING,
            sections=shown.sections(), headings=study.task.card.sections,
            given=given, watched=study.task.card.watched, place_of=place_of,
            longest_text=LONGEST_TEXT, back=self._earlier(person, step),
        )  # fmt: skip

    def evidence(self, reader: Reader, shown: "Shown") -> str:
        """Return what is shown of an item as HTML, by the task's template."""
        if self._evidence is None:
            self._evidence = _environment(ours=False).from_string(self.study.task.template)
        return self._evidence.render(
            item=shown, texts=shown.item.texts, sides=shown.sides, say=reader.say,
            text=lambda texts: text_in(texts, reader.language), words=shown.card.texts,
        )  # fmt: skip

    def _progress(self, step: Step) -> tuple[int, int]:
        """Return how many items lie before a step and how many there are: of the training, or of the rest."""
        taught = len(self.study.training)
        if step.block == TRAINING:
            return step.number, taught
        return step.number - taught, step.total - taught

    def overview(self, reader: Reader, standing: Standing, person: Reviewer, step: Step) -> str:
        """Return the page on which a block is looked over and closed."""
        places = work_of(self.study, standing, person)[step.block]
        first = self._progress(step)[0] - len(places) + 1
        entries = [
            {
                "key": placed(place.item, place.repeat),
                "number": number,
                "broken": placed(place.item, place.repeat) in person.broken,
            }
            for number, place in enumerate(places, first)
        ]
        return self.show("overview", reader, step=step, entries=entries)

    def rest(self, reader: Reader, step: Step) -> str:
        """Return the page of a break."""
        number, total = self._progress(step)
        return self.show("break", reader, step=step, number=number, total=total)

    def _earlier(self, person: Reviewer, step: Step) -> str | None:
        """Return the item before this one in its open block; None where it is the first."""
        before = None
        for place in self.study.blocks(seat_of(person, step.block)).get(step.block, ()):
            if place == step.place:
                return before
            if is_answered(person, place, step.block):
                before = placed(place.item, place.repeat)
        return None


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody answered to an item before its page is opened."""

    begun: Mapping[str, Json] | None = None  # answers that were begun and not sent; None where there are none
    saved: Mapping[str, Json] | None = None  # answers that count so far; None where there are none
    feedback: Mapping[str, Json] | None = None  # what training says of them

    @property
    def answers(self) -> Mapping[str, Json]:
        """The answers that the page begins with."""
        return next((answers for answers in (self.begun, self.saved) if answers is not None), {})

    @property
    def is_changed(self) -> bool:
        """Whether what was begun would change answers that count."""
        return None not in (self.begun, self.saved) and self.begun != self.saved


@dataclass(frozen=True)
class Shown:
    """An item as one seat sees it.

    In a task that is shuffled, sections stand in an order of the place's own, and so do the parts of a
    section and the questions about the whole item. What is asked of one part keeps its order. Options are
    drawn alike; those that go from less to more are kept or turned round, for the whole seat, so that nobody
    has to read each scale anew.
    """

    item: Item  # the item
    place: Place  # where it is in the seat
    parts: Mapping[str, tuple[Any, ...]]  # list name -> its parts, in the seat's order
    card: TaskCard  # the task
    draw: str  # name of the draws of this place: seed, seat and number, parted by slashes

    @property
    def sides(self) -> tuple[tuple[Any, ...], ...]:
        """The sides in the order in which they are shown."""
        return tuple(reversed(self.item.sides)) if self.place.flip else self.item.sides

    def sections(self) -> list[tuple[str, list[tuple[Any, list[Question]]]]]:
        """Return sections in order, each with its parts (None for the whole item) and what is asked of it."""
        sections: dict[str, dict[str, tuple[Any, list[Question]]]] = {}
        for question in self.card.questions:
            groups = sections.setdefault(question.section or "", {})
            for part in (None,) if question.each is None else self.parts.get(question.each, ()):
                own = groups.setdefault("" if part is None else part.id, (part, []))
                own[1].append(question)
        listed = [(name, list(groups.values())) for name, groups in sections.items() if groups]
        if self.card.shuffled:
            draw = random.Random(f"{self.draw}/questions")
            draw.shuffle(listed)
            for _, own_groups in listed:
                draw.shuffle(own_groups)
                for part, asked in own_groups:
                    if part is None:
                        draw.shuffle(asked)
        return listed

    def options(self, question: Question) -> list[Option]:
        """Return what can be chosen, in order: labels are drawn always, others in shuffled tasks."""
        listed = list(question.choices)
        if question.type == "scale" or question.ordered:
            seat = self.draw.rpartition("/")[0]
            turned = self.card.shuffled and random.Random(f"{seat}/scales").random() < 0.5
            return listed[::-1] if turned else listed
        if question.type == "labels" or self.card.shuffled:
            random.Random(f"{self.draw}/{question.name}").shuffle(listed)
        return listed

    def values(self, question: Question, part: str) -> tuple[Value, ...]:
        """Return the values that a question lets people correct, of a part or of the whole item."""
        return values_of(self.item, question, part)
