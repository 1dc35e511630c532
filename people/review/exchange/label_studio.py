"""Label Studio: the items of a seat as a project, and answers read back from a JSON export of it.

A question about parts is there once for each: ``name__1``, ``name__2`` and so on, in the order in which the
seat sees them. Labels that are ranked are one list of choices for each rank: ``name``, ``name__second``,
``name__third``. Choices are called by the values of their options (``alias``), which is what comes back.

Source: labelstud.io/tags (Choices, Choice, TextArea, View, Header, HyperText): visibility can depend on which
choice is selected, several in one condition with commas between them, and applies to View and Choices;
labelstud.io/guide: task_format (tasks, annotations, results), storage (local files), export. Seen in version
1.23.2: HyperText shows local files and no data URLs, Image both; an empty list of images breaks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as Tree

from ....errors import ConfigError, InputError
from ....schemas.canonical import Json, canonical_bytes, write_atomic
from ....schemas.plain_files import read_json, reason_of
from ....validators.katha.review_tables import SEEN
from ..folder import Study
from ..items import Media
from ..serve.server import strings
from ..task import UNCLEAR, Question, is_due, place_of, text_in
from .cells import (
    EQUALS,
    LARGEST,
    NONE,
    Asked,
    Given,
    Load,
    Reading,
    Sheet,
    answer_of,
    copy_media,
    embedded,
    moment_of,
    plain_evidence,
    seconds_of,
    sheets_of,
    stored_name,
    token_of,
    tokens,
)

# -- the interface

EVIDENCE = "evidence"
RANKS = ("", "__second", "__third", "__fourth", "__fifth")
SIDE_BY_SIDE, COLUMN = "display:flex;gap:1em", "flex:1;min-width:0"
WORD_JOINER = "\u2060"
Element = Tree.Element


@dataclass(frozen=True, slots=True)
class Control:
    """A field of the interface."""

    name: str  # what it is called there
    question: Question  # what it asks
    turn: int  # which part it is about, from 1; 0 for the whole item
    rank: int = 0  # of ranked labels, which it is, from 0


@dataclass(frozen=True)
class Interface:
    """The interface of a seat."""

    controls: Mapping[str, Control]  # name -> field, in order
    xml: str  # the labeling config
    limits: tuple[str, ...]  # what it cannot hold


def data_name(listed: str, turn: int) -> str:
    """Return what a part of an item is called in the data of a task."""
    return f"part_{listed}_{turn}"


def pictures_name(side: int) -> str:
    """Return what the pictures of a side are called in the data of a task."""
    return f"pictures_{side + 1}"


def sides_of(load: Load) -> int:
    """Return how many sides with pictures the items of a seat have."""
    shapes = {tuple(bool(side) for side in sheet.item.sides) for sheet in load.sheets}
    videos = any(medium.kind != "picture" for sheet in load.sheets for medium in sheet.item.media)
    if videos or len(shapes) > 1 or not all(all(shape) for shape in shapes):
        what = "the items have videos" if videos else "some items lack pictures that others have"
        raise ConfigError("--embed", what=what, fix="leave it out: pictures and videos are then files beside")
    return max(map(len, shapes), default=0)


def controls_of(load: Load) -> dict[str, Control]:
    """Return the fields that the items of a seat need: as many of each as the item with the most parts."""
    listed: dict[str, Control] = {}
    for question in load.study.task.card.questions:
        turns = range(1, _most(load, question) + 1) if question.each else (0,)
        ranks = min(question.most, len(question.choices), len(RANKS)) if question.type == "labels" else 1
        for turn in turns:
            for rank in range(ranks):
                name = f"{question.name}{f'__{turn}' if turn else ''}{RANKS[rank]}"
                listed[name] = Control(name, question, turn, rank)
    return listed


def _most(load: Load, question: Question) -> int:
    counts = (len(sheet.item.parts.get(question.each or "", ())) for sheet in load.sheets)
    return max(counts, default=0)


def _least(load: Load, question: Question) -> int:
    counts = (len(sheet.item.parts.get(question.each or "", ())) for sheet in load.sheets)
    return min(counts, default=0)


def interface_of(load: Load) -> Interface:
    maker = _Maker(load)
    return Interface(maker.controls, maker.xml(), tuple(dict.fromkeys(maker.limits)))


@dataclass
class _Maker:
    """Makes the XML of an interface, and notes what cannot be said in it."""

    load: Load
    controls: dict[str, Control] = field(init=False)
    limits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.controls = controls_of(self.load)

    def xml(self) -> str:
        root = Tree.Element("View")
        shown = {"name": EVIDENCE, "value": f"${EVIDENCE}", "valueType": "text", "inline": "true"}
        Tree.SubElement(root, "HyperText", shown)
        self._add_pictures(root)
        for section, groups in self._sections():
            heading = self.load.study.task.card.sections.get(section)
            if heading is not None:
                Tree.SubElement(root, "Header", value=self._text(heading), size="3")
            for listed, turn, controls in groups:
                if turn:
                    Tree.SubElement(root, "Header", value=f"${data_name(listed, turn)}", size="4")
                for control in controls:
                    self._add(root, control)
        Tree.indent(root)
        return Tree.tostring(root, encoding="unicode") + "\n"

    def _add_pictures(self, root: Element) -> None:
        sides = sides_of(self.load) if self.load.embed else 0
        row = Tree.SubElement(root, "View", style=SIDE_BY_SIDE) if sides else root
        for side in range(sides):
            column = Tree.SubElement(row, "View", style=COLUMN)
            if sides > 1:
                words = strings(self.load.language)
                Tree.SubElement(column, "Header", value=words["side.right" if side else "side.left"])
            name = pictures_name(side)
            Tree.SubElement(column, "Image", name=name, valueList=f"${name}")

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, int, list[Control]]]]]:
        """Yield sections, each with its parts (list and turn; 0 for the whole item) and their fields."""
        sections: dict[str, dict[tuple[str, int], list[Control]]] = {}
        for control in self.controls.values():
            groups = sections.setdefault(control.question.section or "", {})
            groups.setdefault((control.question.each or "", control.turn), []).append(control)
        for section, groups in sections.items():
            yield section, [(listed, turn, controls) for (listed, turn), controls in groups.items()]

    def _add(self, parent: Element, control: Control) -> None:
        question = control.question
        holder = self._held(parent, control)
        title = self._text(question.title)
        if control.rank:
            Tree.SubElement(holder, "Header", value=f"{title} ({control.rank + 1})", size="5")
        else:
            Tree.SubElement(holder, "Header", value=title, size="5")
            if question.help:
                Tree.SubElement(holder, "Header", value=self._text(question.help), size="5")
        if question.type in ("text", "edits"):
            self._add_text(holder, control)
        else:
            self._add_choices(holder, control)

    def _add_choices(self, parent: Element, control: Control) -> None:
        question = control.question
        inline = "true" if question.type == "scale" else "false"
        about = {"name": control.name, "toName": EVIDENCE, "choice": "single-radio", "showInline": inline}
        choices = Tree.SubElement(parent, "Choices", about | self._required(control))
        texts: dict[str | int, str] = {UNCLEAR: strings(self.load.language)["unclear"]}
        texts |= {option.value: self._text(option.text) for option in question.choices}
        order = list(tokens(question).items())
        if question.type == "labels" and self.load.sheets:
            shown = self.load.sheets[0].shown.options(question)
            order = [(token_of(question, option.value), option.value) for option in shown]
            order += [(UNCLEAR, UNCLEAR)] if question.unclear and not control.rank else []
        for name, value in order:
            Tree.SubElement(choices, "Choice", value=texts.get(value, name), alias=name)

    def _add_text(self, parent: Element, control: Control) -> None:
        how = f"PATH {EQUALS} NEW VALUE, one correction a line; {NONE} if there is none"
        hint = how if control.question.type == "edits" else ""
        if control.question.unclear:
            hint += f"{'; ' if hint else ''}or write {UNCLEAR}"
        about = {
            "name": control.name, "toName": EVIDENCE, "rows": "3", "editable": "true", "maxSubmissions": "1",
            "placeholder": hint,
        }  # fmt: skip
        Tree.SubElement(parent, "TextArea", about | self._required(control))

    def _required(self, control: Control) -> dict[str, str]:
        question = control.question
        always = question.each is None or control.turn <= _least(self.load, question)
        if not always:
            self.limits.append(
                f"items have different numbers of {question.each}: fields of parts that an item lacks are"
                " shown with a dash above them, and stay empty"
            )
        needed = not question.optional and not control.rank and always and self._can_be_hidden(question)
        return {"required": "true", "requiredMessage": self._text(question.title)} if needed else {}

    def _held(self, parent: Element, control: Control) -> Element:
        """Return the element that holds a field: one for each condition under which it is asked."""
        conditions = [
            self._condition(control, name, wanted) for name, wanted in control.question.when.items()
        ]
        if control.rank:
            begin = control.name.removesuffix(RANKS[control.rank])
            before = self.controls[begin + RANKS[control.rank - 1]]
            names = [name for name, value in tokens(control.question).items() if value != UNCLEAR]
            conditions.append((before.name, names))
        for condition in conditions:
            if condition is not None:
                parent = Tree.SubElement(
                    parent, "View", visibleWhen="choice-selected", whenTagName=condition[0],
                    whenChoiceValue=",".join(condition[1]),
                )  # fmt: skip
        return Tree.SubElement(parent, "View")

    def _condition(
        self, control: Control, name: str, wanted: Sequence[str | int]
    ) -> tuple[str, list[str]] | None:
        other = self._named(name)
        names = {value: token for token, value in tokens(other).items()}
        if not self._decides(control.question, other):
            self.limits.append(
                f"{control.question.name} is shown whatever was answered to {name}; answers to it are left"
                " out where it is not asked"
            )
            return None
        turn = control.turn if other.each is not None else 0
        listed = [names[value] for value in wanted if value in names]
        return f"{name}{f'__{turn}' if turn else ''}", listed

    def _named(self, name: str) -> Question:
        return next(question for question in self.load.study.task.card.questions if question.name == name)

    def _decides(self, question: Question, other: Question) -> bool:
        return other.type in ("choice", "scale") and other.each in (None, question.each)

    def _can_be_hidden(self, question: Question) -> bool:
        return all(self._decides(question, self._named(name)) for name in question.when)

    def _text(self, texts: Mapping[str, str]) -> str:
        """Return a text in the language; a dollar sign in it names no data of the task."""
        return text_in(texts, self.load.language).replace("$", f"${WORD_JOINER}")


# -- tasks

CONFIG, TASKS, GUIDE = "config.xml", "tasks.json", "label-studio.txt"
ABSENT = "–"
LIMITS = (
    "raw events of the page: lead_time is taken for the time that an answer took",
    "that every picture was loaded before the answer",
    "labels beyond the fifth",
)


def write_label_studio(load: Load, folder: Path) -> tuple[str, ...]:
    """Write a project for Label Studio: its labeling config and its tasks; return what it cannot hold."""
    root = f"fabula/{load.study.protocol.name}-seat-{load.seat}"
    interface = interface_of(load)
    if not load.embed:
        copy_media(load, folder / "media")

    def address(medium: Media) -> str:
        return f"/data/local-files/?d={quote(f'{root}/{stored_name(load, medium)}')}"

    tasks = []
    for sheet in load.sheets:
        evidence = plain_evidence(load, sheet, None if load.embed else address)
        tasks.append({"data": _data(load, sheet, evidence)})
    write_atomic(folder / CONFIG, [interface.xml.encode("utf-8")])
    write_atomic(folder / TASKS, [canonical_bytes(tasks) + b"\n"])
    write_atomic(folder / GUIDE, [_guide(load, root).encode("utf-8")])
    listed = ("how pictures are arranged and named: there is one list of them for each side",)
    return (*LIMITS, *interface.limits, *(listed if load.embed else ()))


def _guide(load: Load, root: str) -> str:
    local = [
        f"Copy what is in media/ to ROOT/{root} on the machine of Label Studio, where ROOT is a",
        "folder of your choice, and start Label Studio with",
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=ROOT.",
        f"In the project: Settings, Cloud Storage, Add Source Storage, Local Files, ROOT/{root}.",
        "Do not sync it.",
    ]
    steps = [
        f"Make a project; paste {CONFIG} as its labeling interface (Code), and the instructions as its",
        "instructions.",
        *([] if load.embed or not any(sheet.item.media for sheet in load.sheets) else local),
        f"Import {TASKS}. Keep the sampling sequential: the order of the items is drawn for this seat.",
        "One person answers the tasks. When they are done: Export, JSON, and give that file to",
        "fabula review import STUDY --tool label-studio --from FILE --person NUMBER=PSEUDONYM,",
        "where NUMBER is the person's number in Label Studio (completed_by in the file).",
    ]
    return "\n".join(steps) + "\n"


def _data(load: Load, sheet: Sheet, evidence: str) -> dict[str, Json]:
    data: dict[str, Json] = {
        "item": sheet.key, "seat": sheet.seat, "number": sheet.number, EVIDENCE: evidence or ABSENT,
        **load.study.seen(sheet.item.item),
    }  # fmt: skip
    if load.embed:
        for number, side in enumerate(sheet.shown.sides):
            data[pictures_name(number)] = [embedded(load, medium) for medium in side]
    for control in controls_of(load).values():
        if control.turn:
            parts = sheet.shown.parts.get(control.question.each or "", ())
            part = parts[control.turn - 1] if control.turn <= len(parts) else None
            detail = f" ({'; '.join(part.detail)})" if part is not None and part.detail else ""
            text = ABSENT if part is None else part.text + detail
            data[data_name(control.question.each or "", control.turn)] = text
    return data


def asked_by(sheet: Sheet, control: Control) -> Asked | None:
    """Return the question that a field stands for in an item; None where the item has no such part."""
    parts = sheet.shown.parts.get(control.question.each or "", ())
    if control.turn > len(parts):
        return None
    name = place_of(control.question.name, parts[control.turn - 1].id if control.turn else "")
    return next(asked for asked in sheet.asked if asked.name == name)


# -- annotations


def read_label_studio(path: Path, study: Study) -> Reading:
    """Return the answers of a JSON export of Label Studio.

    Of several annotations of a task by one person the last is taken. Skipped annotations, drafts and
    predictions are passed over.
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
    return InputError.one(str(path), what=f"this is no JSON export of Label Studio: {why}", fix=fix)


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
    """Return what a result holds as a text; of a choice that is what it is called, of a rating its number."""
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
