"""Reading people's answers, ratings and preferences: JSONL or CSV, every problem gathered with its line."""

import csv
import errno
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import InputError, UserError
from ..schemas.csv_text import without_guard
from ..schemas.human import NEEDED, HumanRow
from ..schemas.paths import format_path
from ..schemas.plain_files import read_plain, reason_of
from .known import Known

LARGEST = 256 * 1024 * 1024
"""Most bytes of a file; a study of 400 stories has less than one per cent of that."""
LISTED = 1000
LISTS = ("labels", "completion")
NUMBERS = ("seed", "value", "seconds", "repeat", "completion")
FIX = "correct the line; docs/human.md has the columns"

Key = Mapping[str, tuple[str, str]]
"""Task id -> video and method that it stands for."""


def read_human(path: str | Path, known: Known, key: Key | None = None) -> tuple[HumanRow, ...]:
    """Return the lines of a file of people's answers, in file order.

    A line that is there twice counts once.

    Args:
        path: a file that ends in ``.jsonl`` or ``.csv``.
        known: what the people can have been asked about.
        key: the key of anonymised tasks, by :func:`fabula.people.sampling.read_key`; lines of kind
            completion then name the task as ``item`` and no method.

    Raises:
        InputError: the file cannot be read, lines have no rater, name what is not there, lack a column or
            hold a value out of range, or one person answered the same thing twice and differently. All
            problems are listed, up to a thousand.
    """
    place = Path(path)
    text = _text(place)
    problems: list[UserError] = []
    first: dict[tuple[Any, ...], tuple[str, HumanRow]] = {}
    strays = Counter[str]()
    for where, fields in (_csv if place.suffix == ".csv" else _jsonl)(place, text, problems):
        if len(problems) >= LISTED:
            problems.append(_problem(where, f"at most {LISTED} problems", "more; the rest is not read"))
            break
        kind = str(fields.get("kind"))
        if known.kinds and kind in NEEDED.keys() - known.kinds:
            strays[kind] += 1
            continue
        row = _row(where, _unblinded(where, fields, key, problems), problems)
        if row is None:
            continue
        if strange := known.unknown(row):
            problems.append(_problem(f"{where} {strange[0]}", *strange[1:]))
        else:
            _keep(where, row, first, problems)
    if strays:
        problems.insert(0, _other_kind(place, known, strays))
    if problems:
        raise InputError(problems)
    if not first:
        raise InputError([_problem(str(place), "at least one line", "none")])
    return tuple(row for _, row in first.values())


def _other_kind(path: Path, known: Known, strays: Counter[str]) -> UserError:
    """Return the one problem of lines that are about another kind of evaluation."""
    what = "videos" if "completion" in known.kinds else "storyboards"
    return _problem(
        str(path),
        f"lines of kind {', '.join(sorted(known.kinds))}: the evaluation is of {what}",
        ", ".join(f"{count} of kind {kind}" for kind, count in sorted(strays.items())),
        "give what people said about this evaluation, or the evaluation that they were asked about",
    )


def _text(path: Path) -> str:
    wanted = "a .jsonl or .csv file in UTF-8"
    if path.suffix not in (".jsonl", ".csv"):
        raise InputError([_problem(str(path), wanted, f"the ending {path.suffix!r}", "rename or convert it")])
    try:
        return read_plain(path, LARGEST, follow=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise InputError(
                [_problem(str(path), f"at most {LARGEST} bytes", "more", "split the file")]
            ) from error
        found = reason_of(error)
        raise InputError([_problem(str(path), wanted, found, "give the file of answers")]) from error


def _jsonl(path: Path, text: str, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(_problem(where, "a JSON object", reason_of(error)))
            continue
        if isinstance(fields, dict):
            yield where, fields
        else:
            problems.append(_problem(where, "a JSON object", type(fields).__name__))


def _csv(path: Path, text: str, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        known = set(HumanRow.model_fields)
        if strange := [name for name in header if name not in known] or len(set(header)) < len(header):
            found = "one name twice" if strange is True else ", ".join(map(repr, strange))
            problems.append(_problem(f"{path}:1", f"columns among {', '.join(sorted(known))}", found))
            return
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if not any(cells):
                continue
            if len(cells) != len(header):
                problems.append(_problem(where, f"{len(header)} cells, as in line 1", str(len(cells))))
                continue
            yield where, {name: _cell(name, cell) for name, cell in zip(header, cells, strict=True) if cell}
    except csv.Error as error:
        problems.append(_problem(f"{path}:{reader.line_num}", "CSV, with commas and quotes", str(error)))


def _cell(name: str, cell: str) -> Any:  # noqa: ANN401 - a JSON value
    cell = without_guard(cell.strip())
    parts = [part.strip() for part in cell.split("|")] if name in LISTS else [cell]
    values = [_number(part) if name in NUMBERS else part for part in parts]
    return values if name in LISTS else values[0]


def _number(text: str) -> int | float | str:
    """Return the number that a cell holds, else its text, which the type then refuses by name."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _unblinded(
    where: str, fields: dict[str, Any], key: Key | None, problems: list[UserError]
) -> dict[str, Any] | None:
    """Return a line with video and method instead of the task that stood for them."""
    if key is None or fields.get("kind") != "completion" or not fields.get("rater"):
        return fields
    task = fields.get("item")
    if not isinstance(task, str) or task not in key:
        problems.append(_problem(f"{where} item", "the id of a task in the key", repr(task)))
        return None
    if fields.get("method") is not None:
        problems.append(
            _problem(
                f"{where} method", "no method, because the task says which it is", repr(fields["method"])
            )
        )
        return None
    item, method = key[task]
    return {**fields, "item": item, "method": method}


def _row(where: str, fields: dict[str, Any] | None, problems: list[UserError]) -> HumanRow | None:
    if fields is None:
        return None
    if fields.get("rater") in (None, ""):
        problems.append(_problem(f"{where} rater", "the anonymised id of the person", "none"))
        return None
    try:
        return HumanRow.model_validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            place = f"{where} {format_path(detail['loc']).removeprefix('$.')}" if detail["loc"] else where
            problems.append(
                _problem(place, "a value that the column allows", detail["msg"].removeprefix("Value error, "))
            )
    except (ValueError, RecursionError) as error:
        problems.append(_problem(where, "values that JSON has", str(error)))
    return None


def _keep(
    where: str, row: HumanRow, first: dict[tuple[Any, ...], tuple[str, HumanRow]], problems: list[UserError]
) -> None:
    earlier, said = first.setdefault(row.place(), (where, row))
    if said != row:
        problems.append(
            _problem(
                where, f"one line of {row.rater} for this {row.kind} of {row.item}, as in {earlier}",
                "a different one", "keep the line that counts, or number a repeated control with repeat",
            )
        )  # fmt: skip


def _problem(where: str, expected: str, found: str, fix: str = FIX) -> UserError:
    return UserError(where, expected=expected, found=found, fix=fix)
