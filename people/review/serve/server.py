"""A study while it is served: what requests change, what a reviewer may see. One process serves a study."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from ....engine.journal_file import on_disk
from ....schemas.canonical import Json
from ..design import Place
from ..flow import Step, expired, find_place, free_seat, is_answered, next_step, seat_of, work_of
from ..folder import Study
from ..items import Item, Value, shuffled_parts, values_of, wrong_corrections
from ..points import ADJUDICATOR, has_reviewed
from ..standing import DROP_DRAFT, TRAINING, Event, Reviewer, Standing, VoteJournal, placed
from ..task import LONGEST_TEXT, Option, Question, TaskCard, place_of, text_in

if TYPE_CHECKING:
    from jinja2 import Environment, Template


# -- The pages: templates, the words of the interface in the reader's language, and what an item shows

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


# -- A study while it is served

MOST_TIMELINE = 5_000
"""Raw events of one page that are kept."""
Clock = Callable[[], str]
"""Gives the time, RFC 3339, UTC."""


class Refused(Exception):
    """A request that changes nothing: the status of the answer, and what is wrong."""

    def __init__(self, status: int, why: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.fields = status, why, dict(fields or {})


@dataclass
class Server:
    """A study while it is served."""

    study: Study  # the study
    journal: VoteJournal  # its events
    clock: Clock  # the time
    secure: bool = False  # whether people reach it over TLS, so that cookies are sent over nothing else
    standing: Standing = field(default_factory=Standing)  # where it stands; it follows from the events
    pages: Pages = field(init=False)  # makes the pages
    _seating: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def __post_init__(self) -> None:
        self.pages = Pages(self.study)
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what came into the file since, from this process or another, such as an invitation."""
        for event in self.journal.new_events():
            self.standing.apply(event)

    # -- what changes

    async def put(self, event: Event, *more: Any) -> None:  # noqa: ANN401 - statements
        """Put an event on disk, then take it in; returns when both are done."""
        await on_disk(lambda done: self.journal.add(event, *more, done=done))
        self.catch_up()

    def event(self, person: str, kind: str, item: str | None = None, sent: str = "", **body: Json) -> Event:
        """Return a new event; ``sent`` is the id that the page gave it."""
        own = f"{person}/{sent or token_hex(12)}"
        return Event(own, self.clock(), self.study.protocol.sha256, person, kind, item, body)

    async def agree(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Note what somebody agreed to; a second time changes nothing."""
        if person.agreed is not None:
            return
        known = self.study.protocol.expertise
        expertise = body.get("expertise")
        if known and expertise not in known:
            raise Refused(422, "expertise")
        chosen = expertise if known else None
        await self.put(self.event(person.id, "agreed", publish=body.get("publish") is True, expertise=chosen))
        await self.seat(person)

    async def seat(self, person: Reviewer) -> None:
        """Give somebody a seat who is ready for one and has none, if one fits."""
        async with self._seating:
            step = self.step(person)
            if (step.kind, step.why) != ("done", "no_seat") or person.role != "reviewer":
                return
            for late in list(expired(self.study, self.standing, self.clock())):
                await self.put(self.event(late.id, "left", why="timed_out"))
                await self.put(self.event(late.id, "ended", why="timed_out"))
            await self._take_seat(person)

    async def _take_seat(self, person: Reviewer) -> None:
        number = free_seat(self.study, self.standing, person)
        if number is not None:
            await self.put(self.event(person.id, "seated", seat=number))

    async def vote(self, person: Reviewer, body: Mapping[str, Json]) -> dict[str, Json]:
        """Take a vote; one that was sent before counts once."""
        sent, key = sent_id(body), str(body.get("place"))
        if self.standing.knows(f"{person.id}/{sent}"):
            return self.told(person, key)
        there = find_place(self.study, self.standing, person, key)
        if there is None or person.ended is not None:
            raise Refused(409, "closed")
        block, place = there
        answers, item = body.get("answers"), self.study.items[place.item]
        if not isinstance(answers, dict):
            raise Refused(422, "answers")
        task = self.study.task
        if wrong := task.problems(answers, item.part_ids) or wrong_corrections(task, item, answers):
            raise Refused(422, "answers", wrong)
        if item.media and body.get("loaded") is not True:
            raise Refused(422, "media")
        event = self.event(
            person.id, "voted", key, sent, answers=answers, flip=place.flip, seat=seat_of(person, block),
            block=block, timeline=_timeline(body.get("timeline")), language=str(body.get("language"))[:16],
            **self.study.seen(place.item),
        )  # fmt: skip
        await self.put(event, (DROP_DRAFT, (person.id, key)))
        return self.told(person, key)

    def told(self, person: Reviewer, key: str) -> dict[str, Json]:
        """Return what a reviewer is told of a vote: in training, whether it is right and why."""
        votes = person.votes.get(key)
        if not votes or votes[-1].seat is not None or key not in self.study.training:
            return {"saved": True}
        stands = self.study.stands[key]
        right = {place: votes[-1].answers.get(place) in allowed for place, allowed in stands.expected.items()}
        return {"saved": True, "right": right, "explained": dict(stands.explained)}

    async def report(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Note that something of an item did not load."""
        key = str(body.get("place"))
        if find_place(self.study, self.standing, person, key) is None or person.ended is not None:
            raise Refused(409, "closed")
        await self.put(self.event(person.id, "broken", key, sent_id(body), what=str(body.get("what"))[:200]))

    async def draft(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Keep what somebody has begun; a page that is opened afterwards has it."""
        key, answers = str(body.get("place")), body.get("answers")
        if find_place(self.study, self.standing, person, key) is None or not isinstance(answers, dict):
            raise Refused(409, "closed")
        begun, now = {"answers": answers}, self.clock()
        await on_disk(lambda done: self.journal.draft(person.id, key, now, begun, done))

    async def close(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Close a block that is answered; its answers are final."""
        block, work = str(body.get("block")), work_of(self.study, self.standing, person)
        seat = seat_of(person, block)
        if person.has_closed(seat, block):
            return
        step = self.step(person)
        if step.kind != "overview" or step.block != block or block not in work:
            raise Refused(409, "unfinished")
        await self.put(self.event(person.id, "closed", None, sent_id(body), block=block, seat=seat))
        if block == TRAINING:
            await self._judge_training(person)
        step = self.step(person)
        if step.kind == "done" and step.why == "finished":
            await self.put(self.event(person.id, "ended", why="finished"))
        await self.seat(person)

    async def _judge_training(self, person: Reviewer) -> None:
        share = training_share(self.study, person)
        await self.put(self.event(person.id, "trained", share=share))
        if share < self.study.protocol.training_pass:
            await self.put(self.event(person.id, "ended", why="screened_out"))

    async def more(self, person: Reviewer) -> None:
        """Give another seat to somebody who has finished one."""
        if person.ended != "finished":
            raise Refused(409, "closed")
        async with self._seating:
            await self._take_seat(person)

    async def leave(self, person: Reviewer) -> None:
        """Let somebody go for good; what they have not answered goes to others."""
        if person.ended is None:
            await self.put(self.event(person.id, "left", why="returned"))
            await self.put(self.event(person.id, "ended", why="returned"))

    # -- what is asked

    def may_see(self, person: Reviewer, name: str) -> str | None:
        """Return the kept file of a picture or video that a reviewer may see now; None where there is none.

        That is what belongs to an answered item of an open block, or to the next one; for an adjudicator, to
        any item that they have not reviewed.
        """
        item = self.study.owner_of_media.get(name)
        if item is not None and person.role == ADJUDICATOR:
            return None if has_reviewed(person, item) else self.study.stands[item].files[name]
        if item is None or person.ended is not None or person.agreed is None:
            return None
        for block, places in work_of(self.study, self.standing, person).items():
            if person.has_closed(seat_of(person, block), block):
                continue
            for place in places:
                if place.item == item:
                    return self.study.stands[item].files[name]
                if not is_answered(person, place, block):
                    return None
            return None
        return None

    def step(self, person: Reviewer) -> Step:
        return next_step(self.study, self.standing, person, self.clock())

    def step_at(self, person: Reviewer, block: str, place: Place) -> Step:
        """Return an item of a reviewer's open block as a step."""
        work = [(name, each) for name, places in work_of(self.study, self.standing, person).items()
                for each in places]  # fmt: skip
        return Step("item", block, place, work.index((block, place)), len(work))

    def has_more(self, person: Reviewer) -> bool:
        """Return whether somebody who has finished may take another seat."""
        return person.ended == "finished" and free_seat(self.study, self.standing, person) is not None


def training_share(study: Study, person: Reviewer) -> float:
    """Return the share of expected training answers that somebody gave, in [0, 1]; 1 if none is expected."""
    right = total = 0
    for item in study.training:
        votes = [vote for vote in person.votes.get(item, ()) if vote.seat is None]
        for place, allowed in study.stands[item].expected.items():
            total += 1
            right += bool(votes) and votes[0].answers.get(place) in allowed
    return right / total if total else 1.0


def sent_id(body: Mapping[str, Json]) -> str:
    """Return the id that the page gave a request."""
    sent = body.get("id")
    if not isinstance(sent, str) or not 8 <= len(sent) <= 64 or not sent.isascii() or not sent.isprintable():
        raise Refused(422, "id")
    return sent


def _timeline(given: Json) -> list[Json]:
    """Return the raw events of a page as far as they have the right form; the first are kept."""
    if not isinstance(given, list):
        return []
    kept = [
        [float(entry[0]), str(entry[1])[:40]]
        for entry in given[:MOST_TIMELINE]
        if isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], int | float)
        and 0 <= entry[0] < 1e9
    ]
    return list(kept)
