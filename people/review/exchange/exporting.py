"""Exporting the items of a seat for another tool."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....errors import ConfigError
from ....schemas.canonical import Json, new_folder, pretty_bytes, write_atomic
from ..folder import Study
from ..standing import Standing
from ..task import text_in
from .csv_form import read_csv, write_csv
from .given import Reading
from .label_studio.annotations import read_label_studio
from .label_studio.tasks import write_label_studio
from .sheets import Load, sheets_of

ABOUT, GUIDE = "export.json", "instructions.txt"
LIMITS = (
    "practice items, what is said after them, and whether somebody passed",
    "breaks, and that the answers of a part are final once it is closed",
    "the order: reviewers can look at items before their turn",
    "consent: nobody is asked whether the answers may be published, so they are not",
)
"""What no other tool holds."""


@dataclass(frozen=True)
class Form:
    """A form in which items leave a study and answers come back.

    Attributes:
        tool: name of the tool.
        write: writes what is given to it into a folder; returns what it cannot hold.
        read: reads its answers.
        returned: what a reviewer, or the tool, gives back.
    """

    tool: str
    write: Callable[[Load, Path], tuple[str, ...]]
    read: Callable[[Path, Study], Reading]
    returned: str


FORMS: Mapping[str, Form] = {
    "label-studio": Form(
        "label-studio", write_label_studio, read_label_studio, "the project exported as JSON"
    ),
    "csv": Form("csv", write_csv, read_csv, "answers.csv, with the column answer filled in"),
}
"""Name -> form."""


@dataclass(frozen=True)
class Exported:
    """What was exported.

    Attributes:
        folder: where.
        tool: for which tool.
        seats: seat -> how many items.
        limits: what the form cannot hold.
        returned: what comes back.
    """

    folder: Path
    tool: str
    seats: Mapping[int, int]
    limits: tuple[str, ...]
    returned: str

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "folder": str(self.folder), "tool": self.tool, "not_held": list(self.limits),
            "returned": self.returned, "seats": {str(seat): items for seat, items in self.seats.items()},
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        for seat, items in self.seats.items():
            yield f"seat {seat}: {items} items for {self.tool}"
        yield f"written to {self.folder}"
        yield f"take back with fabula review import: {self.returned}"
        yield "not held there:"
        yield from (f"  {limit}" for limit in self.limits)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How items are written for another tool.

    Attributes:
        language: of the texts.
        answers: whether items that are answered are written, too, with their answers.
        embed: whether Label Studio gets pictures within the tasks and not as files beside them.
    """

    language: str = "en"
    answers: bool = False
    embed: bool = False


def export_seat(
    study: Study, folder: Path, tool: str, seat: int | None = None, options: ExportOptions | None = None
) -> Exported:
    """Write what is still to be answered of a seat for another tool, in the seat's order and with its sides.

    Args:
        study: the study.
        folder: a new or empty folder.
        tool: one of :data:`FORMS`.
        seat: number of the seat; None for every seat that nobody holds, each in a folder of its own.
        options: how; None for the usual.

    Raises:
        ConfigError: there is no such tool or seat, or nothing is to be answered.
        TargetError: the folder cannot be written.
    """
    form = form_of(tool)
    standing = study.standing()
    seats = [number for number in study.seats if number not in standing.holders] if seat is None else [seat]
    loads = [_load(study, standing, number, options or ExportOptions()) for number in seats]
    loads = [load for load in loads if load.sheets]
    if not loads:
        asked = "no seat is free" if seat is None else f"nothing is to be answered in seat {seat}"
        raise ConfigError("--seat", what=asked, fix="see the seats with fabula review status STUDY")
    with new_folder(folder):
        limits: dict[str, None] = {}
        for load in loads:
            own = folder / f"seat-{load.seat}" if seat is None else folder
            own.mkdir(exist_ok=True)
            limits |= dict.fromkeys(_write(form, load, own))
        return Exported(
            folder, tool, {load.seat: len(load.sheets) for load in loads}, tuple(limits), form.returned
        )


def form_of(tool: str) -> Form:
    """Return a form by its name.

    Raises:
        ConfigError: there is none.
    """
    if tool not in FORMS:
        listed = ", ".join(FORMS)
        raise ConfigError("--to", expected=f"one of {listed}", found=repr(tool), fix="choose one of them")
    return FORMS[tool]


def _load(study: Study, standing: Standing, seat: int, options: ExportOptions) -> Load:
    sheets = sheets_of(study, seat, None if options.answers else standing)
    given: dict[str, Mapping[str, Json]] = {}
    for person in standing.reviewers.values() if options.answers else ():
        for key, votes in person.votes.items():
            own = [vote for vote in votes if vote.seat == seat]
            if own and not person.dropped:
                given[key] = own[-1].answers
    return Load(study, seat, sheets, options.language, given, options.embed)


def _write(form: Form, load: Load, folder: Path) -> tuple[str, ...]:
    card = load.study.task.card
    watched = ("that videos are watched to their end",) if card.watched else ()
    limits = (*LIMITS, *watched, *form.write(load, folder))
    write_atomic(folder / GUIDE, [f"{text_in(card.instructions, load.language).strip()}\n".encode()])
    about = {
        "study": load.study.protocol.name, "protocol": load.study.protocol.sha256,
        "task": load.study.protocol.task, "tool": form.tool, "seat": load.seat, "items": len(load.sheets),
        "not_held": list(limits), "returned": form.returned,
    }  # fmt: skip
    write_atomic(folder / ABOUT, [pretty_bytes(about)])
    return limits
