"""Seats given to other tools, and answers taken back: all of a file, or none if anything is wrong."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....engine.lock import hold
from ....errors import ConfigError, InputError, RunBusy
from ....schemas.canonical import Json, new_folder, pretty_bytes, sha256_file, write_atomic
from ..folder import Study
from ..protocol import SIMULATED
from ..standing import Standing, VoteJournal
from ..task import text_in
from .cells import Load, Reading, Taking, read_csv, sheets_of, write_csv
from .label_studio import read_label_studio, write_label_studio

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
    """A form in which items leave a study and answers come back."""

    tool: str  # name of the tool
    # writes what is given to it into a folder; returns what it cannot hold
    write: Callable[[Load, Path], tuple[str, ...]]
    read: Callable[[Path, Study], Reading]  # reads its answers
    returned: str  # what a reviewer, or the tool, gives back


FORMS: Mapping[str, Form] = {
    "label-studio": Form(
        "label-studio", write_label_studio, read_label_studio, "the project exported as JSON"
    ),
    "csv": Form("csv", write_csv, read_csv, "answers.csv, with the column answer filled in"),
}
"""Name -> form."""


@dataclass(frozen=True)
class Exported:
    """What was exported."""

    folder: Path  # where
    tool: str  # for which tool
    seats: Mapping[int, int]  # seat -> how many items
    limits: tuple[str, ...]  # what the form cannot hold
    returned: str  # what comes back

    def as_json(self) -> dict[str, Json]:
        return {
            "folder": str(self.folder), "tool": self.tool, "not_held": list(self.limits),
            "returned": self.returned, "seats": {str(seat): items for seat, items in self.seats.items()},
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        for seat, items in self.seats.items():
            yield f"seat {seat}: {items} items for {self.tool}"
        yield f"written to {self.folder}"
        yield f"take back with fabula review import: {self.returned}"
        yield "not held there:"
        yield from (f"  {limit}" for limit in self.limits)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How items are written for another tool."""

    language: str = "en"  # of the texts
    embed: bool = False  # whether Label Studio gets pictures within the tasks and not as files beside them


def export_seat(
    study: Study, folder: Path, tool: str, seat: int | None = None, options: ExportOptions | None = None
) -> Exported:
    """Write what is still to be answered of a seat for another tool, in the seat's order and with its sides.

    ``folder``: a new or empty folder. ``seat``: number of the seat; None for every seat that nobody holds,
    each in a folder of its own. ``options``: how; None for the usual.
    """
    form = form_of(tool)
    standing = study.standing()
    seats = [number for number in study.seats if number not in standing.holders] if seat is None else [seat]
    how = options or ExportOptions()
    loads = [
        Load(study, number, sheets_of(study, number, standing), how.language, how.embed) for number in seats
    ]
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
    if tool not in FORMS:
        listed = ", ".join(FORMS)
        raise ConfigError("--to", expected=f"one of {listed}", found=repr(tool), fix="choose one of them")
    return FORMS[tool]


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


PSEUDONYM = re.compile(r"r-[0-9a-z]{4,32}|simulated-[0-9a-z-]{1,32}")


@dataclass(frozen=True)
class Imported:
    """What an import took."""

    votes: int  # how many votes were new
    known: int  # how many were there already
    people: Mapping[str, int]  # reviewer -> seat
    passed: Mapping[str, int]  # what was passed over on purpose -> how often
    written: bool  # whether anything was written; not with a dry run

    def as_json(self) -> dict[str, Json]:
        return {
            "votes": self.votes, "known": self.known, "people": dict(self.people),
            "passed_over": dict(self.passed), "written": self.written,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        yield f"votes taken: {self.votes}{'' if self.written else ' (dry run: nothing is written)'}"
        if self.known:
            yield f"votes that were there already: {self.known}"
        yield from (f"  {reviewer}: seat {seat}" for reviewer, seat in self.people.items())
        yield from (f"passed over: {count} {what}" for what, count in self.passed.items() if count)


def import_answers(
    study: Study, path: Path, tool: str, people: Mapping[str, str], now: str, *, dry_run: bool = False
) -> Imported:
    """Take the answers of a file into a study as votes of the seats that they were exported for.

    The same answers again add nothing; other answers of the same person to an item are a changed vote.

    ``people``: who somebody is in the other tool -> their pseudonym in the study. Only pseudonyms are kept.
    """
    form = form_of(tool)
    _check_names(study, people)
    reading = form.read(path, study)
    try:
        with hold(study.folder), VoteJournal(study.folder) as journal:
            standing = Standing.of(journal.events())
            taking = Taking(
                study, standing, dict(people), {"tool": tool, "file": sha256_file(path)}, now, reading
            )
            events = taking.events()
            if reading.problems:
                raise InputError(reading.problems)
            if not dry_run:
                journal.add_now(*events)
    except RunBusy as error:
        fix = "stop the server (Ctrl-C), import, and start it again"
        raise RunBusy(
            str(study.folder), what="the study is served, so nothing can be imported", fix=fix
        ) from error
    votes = sum(event.kind == "voted" for event in events)
    return Imported(votes, taking.known, taking.seats, reading.passed, written=not dry_run)


def _check_names(study: Study, people: Mapping[str, str]) -> None:
    twice = [name for name, count in Counter(people.values()).items() if count > 1]
    if twice:
        raise ConfigError("--person", what=f"{twice[0]} stands for two people", fix="give each a pseudonym")
    for name in people.values():
        simulated = name.startswith(SIMULATED)
        if not PSEUDONYM.fullmatch(name) or simulated != study.protocol.simulated:
            begin = SIMULATED if study.protocol.simulated else "r-"
            raise ConfigError(
                "--person", expected=f"a pseudonym that begins with {begin}", found=repr(name),
                fix="use what fabula review invite gave, or a new one such as r-5f2c91aa; no names of people",
            )  # fmt: skip
