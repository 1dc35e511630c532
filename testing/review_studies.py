"""Small studies for tests: a task of every type of question, drawn pictures, people who answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..people.review.design import Plan
from ..people.review.folder import Study, StudyPlan, make_study
from ..people.review.items import Drawn, Part, Value
from ..people.review.plan import Rules
from ..people.review.standing import Event, VoteJournal
from ..people.review.task import Task, load_task
from ..schemas.canonical import Json

NOW = "2026-01-01T00:00:00Z"
TASK = (files(__package__) / "toy_task.j2").read_text("utf-8")


def toy_task(folder: Path) -> Path:
    """Write the file of a task with every type of question; return it."""
    path = folder / "toy.j2"
    path.write_text(TASK, "utf-8")
    return path


def toy_items(folder: Path, stories: int = 4) -> list[Drawn]:
    """Return items with drawn pictures: per story one, with one question; two sides show two methods."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    items = []
    for number in range(1, stories + 1):
        story = f"kb25k_{number:04d}"
        files = []
        for side, method in enumerate("ab"):
            path = folder / f"{story}-{method}.png"
            Image.new("RGB", (64, 48), (40 * number % 256, 90 * side, 120)).save(path)
            files.append((path,))
        part = Part(
            id=f"{story}_q1", text="Why did it happen?", detail=("because",),
            values=(Value(path="$.questions[0].gold_answer", label="Answer", value="because"),),
        )  # fmt: skip
        items.append(
            Drawn(about=story, story=story, sides=tuple(files), parts={"questions": (part,)},
                  methods=("a", "b"), condition="text_image")
        )  # fmt: skip
    return items


@dataclass(frozen=True)
class Marked:
    """What a toy study has besides its items."""

    training: int = 0  # how many training items, whose right answer is quality 3
    checks: int = 0  # how many check items, whose right answer is quality 3
    items: tuple[Drawn, ...] | None = None  # the items, in place of drawn ones


def toy_study(
    folder: Path, *, stories: int = 4, plan: Plan | None = None, rules: Rules | None = None, **about: Any,  # noqa: ANN401 - see below
) -> Study:  # fmt: skip
    """Make a small study of the toy task beside a folder of its pictures."""
    own = {name: about.pop(name) for name in ("training", "checks", "items") if name in about}
    marked = Marked(**own)
    beside = folder.parent / f"{folder.name}-pictures"
    beside.mkdir(parents=True, exist_ok=True)
    drawn = toy_items(beside, stories + marked.training + marked.checks)
    known: Mapping[str, tuple[Json, ...]] = {"quality": (3,)}
    taught = [
        replace(each, expected=known, explained={"en": "It is good.", "zh": "很好。"})
        for each in drawn[stories:]
    ]
    study_plan = StudyPlan(
        name="toy", title="", task=str(toy_task(beside)), plan=plan or Plan(raters=3, block=2),
        rules=rules or Rules(), created_at=NOW, settings={"simulated": True, **about},
    )  # fmt: skip
    chosen = drawn[:stories] if marked.items is None else list(marked.items)
    return make_study(folder, study_plan, chosen, taught[: marked.training], taught[marked.training :])


def toy_answers(study: Study, item: str, quality: int = 2, said: str = "because") -> dict[str, Json]:
    """Return answers to an item that leave nothing out that must be answered."""
    part = study.items[item].parts["questions"][0].id
    return {"quality": quality, f"said/{part}": said, f"valid/{part}": "valid"}


@dataclass(frozen=True)
class Sitting:
    """How somebody voted."""

    at: str = NOW  # when
    begin: bool = True  # whether invitation, consent and seat are written first
    closed: Sequence[str] = ()  # blocks that are closed afterwards
    timeline: Sequence[tuple[float, str]] = ()  # raw events of every page


def add_votes(
    study: Study,
    reviewer: str,
    votes: Mapping[str, Mapping[str, Json]],
    *,
    seat: int,
    **about: Any,  # noqa: ANN401
) -> None:
    """Write votes of one person into the journal of a study, as the server does.

    ``votes``: item, with ``#n`` for a repetition -> answers.
    """
    sitting = Sitting(**about)
    at = sitting.at
    flips = {f"{place.item}#{place.repeat}" if place.repeat else place.item: place
             for place in study.seats[seat].places}  # fmt: skip

    def event(kind: str, number: object, item: str | None = None, **body: Json) -> Event:
        return Event(
            f"{reviewer}/{kind}-{seat}-{number}-{at}", at, study.protocol.sha256, reviewer, kind, item, body
        )

    events = []
    if sitting.begin:
        events += [
            event("invited", 0, role="reviewer", group=None),
            event("agreed", 0, publish=True, expertise=None),
            event("seated", 0, seat=seat),
        ]
    for number, (key, answers) in enumerate(votes.items()):
        place = flips[key]
        events.append(
            event("voted", number, key, answers=dict(answers), flip=place.flip, seat=seat,
                  block=str(place.block), timeline=[list(entry) for entry in sitting.timeline], language="en",
                  **study.seen(place.item))
        )  # fmt: skip
    events += [event("closed", block, block=block, seat=seat) for block in sitting.closed]
    with VoteJournal(study.folder) as journal:
        journal.add_now(*events)


def task_of(folder: Path) -> Task:
    """Return the toy task."""
    return load_task(str(toy_task(folder)))
