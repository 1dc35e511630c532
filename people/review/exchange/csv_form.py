"""Answers in a table, one row for each thing that is asked; any spreadsheet opens it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ....errors import InputError
from ....schemas.canonical import Json, csv_text, without_guard, write_atomic
from ....schemas.plain_files import BadCsv, CsvTable, read_plain, reason_of
from ....validators.katha.votes import SEEN
from ..folder import Study
from ..task import text_in
from .cells import answer_of, hint
from .sheets import Asked, Load, Sheet, asked_of, copy_media, evidence_page, stored_name
from .taking import LARGEST, Given, Reading

FILE, SHOWN = "answers.csv", "evidence"
COLUMNS = ("seat", "number", "item", "place", "see", "question", "part", "options", "answer")
NEEDED = ("item", "place", "answer")
LIMITS = (
    "when something was answered, and how long it took: votes have the time of the import and no seconds",
)
FIX = "correct the line; export the seat again to see how answers are written"


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
        reading.wrong(f"{where} {row['place']}", str(error), FIX)
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
