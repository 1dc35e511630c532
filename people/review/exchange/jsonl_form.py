"""Answers as JSON Lines, one object for each item: what programs read and write most easily."""

from collections.abc import Mapping
from pathlib import Path

from ....schemas.canonical import Json, canonical_bytes, write_atomic
from ....validators.lines import read_objects
from ....validators.report import as_user_error
from ..folder import Study
from ..task import text_in
from .evidence import copy_media, stored_name
from .given import Given, Reading, moment_of, seconds_of
from .sheets import Asked, Load, Sheet

FILE = "items.jsonl"
FIX = "correct the line; export the seat again to see what an item looks like"


def write_jsonl(load: Load, folder: Path) -> tuple[str, ...]:
    """Write the items of a seat, one object a line, with a place for the answers; return what it cannot hold.

    Raises:
        OSError: the folder cannot be written.
    """
    copy_media(load, folder / "media")
    lines = (canonical_bytes(_object(load, sheet)) + b"\n" for sheet in load.sheets)
    write_atomic(folder / FILE, lines)
    return ()


def _object(load: Load, sheet: Sheet) -> dict[str, Json]:
    shown = sheet.shown
    sides = [
        [
            {"file": f"media/{stored_name(load, medium)}", **medium.model_dump(exclude={"name"})}
            for medium in side
        ]
        for side in shown.sides
    ]
    return {
        "seat": load.seat,
        "number": sheet.number,
        "item": sheet.key,
        "texts": dict(sheet.item.texts),
        "sides": sides,
        "parts": {name: [part.as_json() for part in parts] for name, parts in shown.parts.items()},
        "asked": [_asked(load, asked) for asked in sheet.asked],
        "answers": dict(load.answers.get(sheet.key, {})),
        "reviewer": None,
        "at": None,
        "seconds": None,
    }


def _asked(load: Load, asked: Asked) -> dict[str, Json]:
    question, chosen = asked.question, asked.question.type in ("choice", "scale", "labels")
    options = [
        {"value": option.value, "text": text_in(option.text, load.language)} for option in question.choices
    ]
    return {
        "place": asked.name,
        "type": question.type,
        "title": text_in(question.title, load.language),
        "part": None if asked.part is None else asked.part.id,
        "options": options if chosen else [],
        "most": question.most if question.type == "labels" else None,
        "unclear": question.unclear,
        "optional": question.optional,
        "when": {name: list(wanted) for name, wanted in question.when.items()},
        "values": [value.as_json() for value in asked.values],
    }


def read_jsonl(path: Path, _study: Study) -> Reading:
    """Return the answers of a file of items; items without answers are passed over.

    Raises:
        InputError: it cannot be read.
    """
    reading = Reading()
    lines = read_objects(path, str(path), lambda issue: reading.problems.append(as_user_error(issue)))
    for line in lines:
        where = f"{path}:{line.number}"
        given = _given(where, line.data, reading)
        if given is None:
            continue
        if given.answers:
            reading.given.append(given)
        else:
            reading.pass_over("items without answers")
    return reading


def _given(where: str, data: Mapping[str, Json], reading: Reading) -> Given | None:
    answers, seat, user = data.get("answers"), data.get("seat"), data.get("reviewer")
    seconds, at = data.get("seconds"), data.get("at")
    wrong = {
        "item, the id of an item": isinstance(data.get("item"), str),
        "answers, an object": isinstance(answers, dict),
        "seat, a number or null": seat is None or (isinstance(seat, int) and not isinstance(seat, bool)),
        "reviewer, a text or null": user is None or isinstance(user, str),
        "seconds, a number from 0 or null": seconds is None or seconds_of(seconds) is not None,
        "at, a time such as 2026-01-31T12:00:00Z, or null": at is None or moment_of(at) is not None,
    }
    if missing := [what for what, is_right in wrong.items() if not is_right]:
        reading.wrong(where, f"there is no {'; no '.join(missing)}", FIX)
        return None
    return Given(where, user or "", data["item"], answers or {}, seat, moment_of(at), seconds_of(seconds))
