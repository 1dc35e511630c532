"""Answers from a JSON export of Label Studio.

Source: labelstud.io/guide/task_format (annotations and their results), labelstud.io/guide/export (the JSON).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .....errors import InputError, UserError
from .....schemas.canonical import Json
from .....schemas.plain_files import read_json, reason_of
from .....validators.katha.seen import SEEN
from ...folder import Study
from ...task import UNCLEAR, is_due
from ..cells import answer_of, tokens
from ..given import LARGEST, Given, Reading, moment_of, seconds_of
from ..sheets import Asked, Load, Sheet, sheets_of
from .interface import controls_of
from .tasks import asked_by


def read_label_studio(path: Path, study: Study) -> Reading:
    """Return the answers of a JSON export of Label Studio.

    Of several annotations of a task by one person the last is taken. Skipped annotations, drafts and
    predictions are passed over.

    Raises:
        InputError: it cannot be read, or is no such export.
    """
    try:
        document = read_json(path, LARGEST, follow=True)
    except (OSError, ValueError) as error:
        raise _no_export(path, reason_of(error)) from error
    if not isinstance(document, list) or not all(isinstance(task, dict) for task in document):
        raise _no_export(path, "it is no list of tasks")
    if document and not any("annotations" in task for task in document):
        raise _no_export(path, "its tasks have no annotations")
    reader = _Reader(path, study)
    for number, task in enumerate(document, 1):
        reader.take_task(f"{path}: task {task.get('id', number)}", task)
    return reader.reading


def _no_export(path: Path, why: str) -> InputError:
    fix = "export the project as JSON (neither JSON_MIN nor CSV) and give that file"
    return InputError([UserError(str(path), what=f"this is no JSON export of Label Studio: {why}", fix=fix)])


@dataclass
class _Reader:
    """Reads the tasks of an export."""

    path: Path
    study: Study

    def __post_init__(self) -> None:
        self.reading = Reading()
        self._loads: dict[int, Load] = {}

    def take_task(self, where: str, task: Mapping[str, Any]) -> None:
        data = task.get("data")
        data = data if isinstance(data, dict) else {}
        key, seat = data.get("item"), data.get("seat")
        sheet = self._sheet(key, seat)
        if sheet is None:
            fix = "export the project of this study"
            self.reading.wrong(where, "it is about no item and seat of this study", fix)
            return
        self.reading.pass_over("drafts", len(task.get("drafts") or ()))
        annotations = task.get("annotations") or ()
        if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
            self.reading.wrong(where, "its annotations are no list of objects", "export the project again")
            return
        for user, annotation in self._last(annotations).items():
            own = f"{where}, annotation {annotation.get('id', '?')}"
            answers = self._answers(own, sheet, annotation.get("result") or ())
            moment, seconds = moment_of(annotation.get("created_at")), seconds_of(annotation.get("lead_time"))
            seen = str(data[SEEN]) if data.get(SEEN) else None
            self.reading.given.append(
                Given(own, user, sheet.key, answers, sheet.seat, moment, seconds, seen=seen)
            )

    def _sheet(self, key: Json, seat: Json) -> Sheet | None:
        if not isinstance(seat, int) or seat not in self.study.seats:
            return None
        return next((sheet for sheet in self._load(seat).sheets if sheet.key == key), None)

    def _load(self, seat: int) -> Load:
        if seat not in self._loads:
            self._loads[seat] = Load(self.study, seat, sheets_of(self.study, seat))
        return self._loads[seat]

    def _last(self, annotations: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return who annotated -> the last annotation that was not skipped."""
        latest: dict[str, dict[str, Any]] = {}
        for annotation in sorted(annotations, key=lambda each: str(each.get("created_at") or "")):
            if annotation.get("was_cancelled"):
                self.reading.pass_over("skipped annotations")
                continue
            user = _user_of(annotation.get("completed_by"))
            if user in latest:
                self.reading.pass_over("annotations that the same person made anew")
            latest[user] = annotation
        return latest

    def _answers(self, where: str, sheet: Sheet, results: Any) -> dict[str, Json]:  # noqa: ANN401 - checked here
        controls = controls_of(self._load(sheet.seat))
        answers: dict[str, Json] = {}
        ranked: dict[str, dict[int, Json]] = {}
        for result in results if isinstance(results, list) else ():
            control = controls.get(str(result.get("from_name"))) if isinstance(result, dict) else None
            asked = None if control is None else asked_by(sheet, control)
            if control is None or asked is None:
                name = result.get("from_name") if isinstance(result, dict) else result
                what = f"{str(name)[:80]!r} is no field of this item"
                self.reading.wrong(where, what, "leave it empty there")
                continue
            try:
                value = _read(asked, _content(result))
            except ValueError as error:
                self.reading.wrong(f"{where}, {control.name}", str(error), "correct it in Label Studio")
                continue
            if control.question.type == "labels" and value != UNCLEAR:
                ranked.setdefault(asked.name, {})[control.rank] = value
            else:
                answers[asked.name] = value
        answers |= {name: [label for _, label in sorted(labels.items())] for name, labels in ranked.items()
                    if name not in answers}  # fmt: skip
        return self._visible(sheet, answers)

    def _visible(self, sheet: Sheet, answers: dict[str, Json]) -> dict[str, Json]:
        """Return answers without those to questions that the other answers hide."""
        for _ in sheet.asked:
            hidden = [
                asked.name for asked in sheet.asked if asked.name in answers
                and not is_due(asked.question, "" if asked.part is None else asked.part.id, answers)
            ]  # fmt: skip
            if not hidden:
                break
            self.reading.pass_over("answers to questions that other answers hide", len(hidden))
            answers = {name: answer for name, answer in answers.items() if name not in hidden}
        return answers


def _user_of(completed_by: Json) -> str:
    """Return who made an annotation, as the import is told of them: the user's number, else the address."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("id", completed_by.get("email"))
    return "" if completed_by is None else str(completed_by)


def _content(result: Mapping[str, Any]) -> str:
    """Return what a result holds as a text; of a choice that is what it is called, of a rating its number.

    Raises:
        ValueError: it holds nothing that an answer can be read from, or several things.
    """
    value = result.get("value")
    kind = "text" if result.get("type") == "textarea" else str(result.get("type"))
    held = value.get(kind) if isinstance(value, dict) else None
    listed = held if isinstance(held, list) else [held]
    if len(listed) != 1 or not isinstance(listed[0], str | int | float) or isinstance(listed[0], bool):
        raise ValueError("one answer is expected")
    number = listed[0]
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def _read(asked: Asked, text: str) -> Json:
    if asked.question.type != "labels":
        return answer_of(asked, text)
    named = tokens(asked.question)
    if text not in named:
        raise ValueError(f"one of {', '.join(named)} is expected, and there is {text[:60]!r}")
    return named[text]
