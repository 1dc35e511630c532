"""Seats that were given to other tools, filled in as people do there, for tests.

An answer that could be taken for something else, or that a spreadsheet would change, is written as JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..people.review.exchange.cells import BETWEEN, EQUALS, JSON, NONE, Asked, Load, Sheet, token_of
from ..people.review.exchange.label_studio import EVIDENCE, Control, asked_by, controls_of
from ..people.review.items import Value
from ..people.review.task import UNCLEAR
from ..schemas.canonical import Json, csv_text
from ..schemas.plain_files import CsvTable

Answers = Mapping[str, Mapping[str, Json]]
"""Item, with ``#n`` for a repetition -> what an answer is called -> answer."""


def fill_csv(path: Path, load: Load, answers: Answers) -> Path:
    """Fill in the column ``answer`` of a table; return it."""
    asked = {(sheet.key, each.name): each for sheet in load.sheets for each in sheet.asked}
    table = CsvTable(path.read_bytes().decode("utf-8-sig"))
    rows = [cells for _, cells in table.rows()]
    item, place, answer = map(table.columns.index, ("item", "place", "answer"))
    for row in rows:
        if row[place] in answers[row[item]]:
            row[answer] = cell_of(asked[row[item], row[place]], answers[row[item]][row[place]])
    path.write_text(csv_text(table.columns, rows), "utf-8", newline="")
    return path


def cell_of(asked: Asked, answer: Json) -> str:
    """Return an answer as text."""
    question = asked.question
    if question.unclear and answer == UNCLEAR:
        return UNCLEAR
    if question.type in ("choice", "scale"):
        return token_of(question, answer)
    if question.type == "labels":
        return f" {BETWEEN} ".join(token_of(question, label) for label in answer)
    return _text_cell(answer) if question.type == "text" else _edits_cell(asked.values, answer)


def _text_cell(text: str) -> str:
    return text if _reads_as_itself(text) else JSON + json.dumps(text)


def _reads_as_itself(text: str) -> bool:
    marked = text.startswith(("'", JSON)) or text != text.strip()
    return not marked and all(letter.isprintable() or letter == "\n" for letter in text)


def _edits_cell(values: Sequence[Value], edits: Sequence[Mapping[str, Json]]) -> str:
    shown = {value.path: value.value for value in values}
    if not edits:
        return NONE
    if any(edit["path"] not in shown or not _one_line(edit["path"]) for edit in edits):
        return JSON + json.dumps(list(edits))
    lines = ((edit["path"], _new_text(shown[edit["path"]], edit["new"])) for edit in edits)
    return "\n".join(f"{path} {EQUALS} {text}" for path, text in lines)


def _one_line(text: str) -> bool:
    return text.isprintable() and not text.startswith(("'", JSON)) and text == text.strip()


def _new_text(shown: Json, new: Json) -> str:
    if isinstance(shown, str):
        plain = isinstance(new, str) and bool(new) and _one_line(new)
        return new if plain else JSON + json.dumps(new)
    return json.dumps(new)


def results_of(load: Load, sheet: Sheet, answers: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield answers to an item as results of an annotation in Label Studio."""
    for control in controls_of(load).values():
        asked = asked_by(sheet, control)
        if asked is None or asked.name not in answers:
            continue
        kind, value = _value(control, asked, answers[asked.name])
        if value is not None:
            yield {
                "id": f"{sheet.number}-{control.name}", "from_name": control.name, "to_name": EVIDENCE,
                "type": kind, "value": {"text" if kind == "textarea" else kind: [value]},
            }  # fmt: skip


def _value(control: Control, asked: Asked, answer: Json) -> tuple[str, str | None]:
    question = control.question
    if question.type in ("text", "edits"):
        return "textarea", cell_of(asked, answer)
    if question.type != "labels" or answer == UNCLEAR:
        return "choices", None if control.rank else cell_of(asked, answer)
    return "choices", token_of(question, answer[control.rank]) if control.rank < len(answer) else None
