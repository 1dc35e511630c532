"""Reading people's answers, ratings and preferences: JSONL or CSV, every problem gathered with its line."""

import errno
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ..errors import InputError, UserError
from ..evaluation.stats.tables import number_of, plain_text
from ..schemas.canonical import without_guard
from ..schemas.judgement import NEEDED, HumanRow
from ..schemas.katha import Question, StoryRecord
from ..schemas.paths import format_path
from ..schemas.plain_files import (
    MISSHAPEN,
    BadCsv,
    CsvTable,
    explaining,
    read_json,
    read_plain,
    reason_of,
    type_reason,
)
from ..schemas.text import counted
from ..schemas.values import vocabulary

LARGEST = 256 * 1024 * 1024
"""Most bytes of a file; a study of 400 stories has less than one per cent of that."""
LISTED = 1000
LISTS = ("labels", "completion")
NUMBERS = ("seed", "value", "seconds", "repeat", "completion")
FLAGS = ("simulated",)
FIX = "correct the line; docs/human.md has the columns"
UNCLEAR = "unclear"
STORY_KINDS = frozenset(("answer", "moral_label", "rating", "preference", "attention"))
"""The kinds of lines about storyboards."""
ELSEWHERE = {
    "review": "`fabula release pack --reviews` reads them",
    "equivalence": "`labelled` in the study.toml of an experiment takes the file, for Table 61",
    "audit": "`fabula review status --results` counts them; `fabula audit` reads forms of its own",
}
"""Kinds of lines that no evaluation is compared with -> where they are used."""
SWITCHES = {"true": True, "1": True, "false": False, "0": False}

Key = Mapping[str, tuple[str, str]]
"""Task id -> video and method that it stands for."""


class Stray(NamedTuple):
    """A column that does not say what it may: what was expected there, and what was found."""

    column: str
    expected: str
    found: str


@dataclass(frozen=True)
class Known:
    """What an evaluation knows; a line of a human file that names something else is a problem."""

    questions: Mapping[str, Question] = field(default_factory=dict)  # question id -> question
    morals: Mapping[str, str | None] = field(default_factory=dict)  # story id -> its moral label
    methods: frozenset[str] = frozenset()  # the methods that were judged; none: any is allowed
    # file name of a video in the suite -> how many events its prompt has
    events: Mapping[str, int] = field(default_factory=dict)
    # file name of a video in the suite -> the classes of its prompt
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()  # the kinds of lines that fit the evaluation; none: every kind
    pictures: frozenset[str] = frozenset()  # stories and shots of an evaluation of shot images
    rating: tuple[int, int] = (1, 5)  # least and greatest rating
    # instance of an evaluation of episodes -> what is rated of it -> least and greatest rating
    asked: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of_records(cls, records: tuple[StoryRecord, ...], methods: frozenset[str] = frozenset()) -> "Known":
        """Return what story records hold."""
        questions = {question.question_id: question for record in records for question in record.questions}
        morals = {record.story_id: record.moral_label for record in records}
        return cls(questions, morals, methods, kinds=STORY_KINDS)

    @cached_property
    def labels(self) -> frozenset[str]:
        """The moral labels that a person may give."""
        return frozenset((*vocabulary("moral_label").values, UNCLEAR))

    def unknown(self, row: HumanRow) -> Stray | None:
        """Return the column in which a line names what is not there."""
        items: Mapping[str, object]
        if row.kind == "attention":
            return None
        if row.kind == "answer":
            items, what = self.questions, "a question of the release"
        elif row.kind == "completion":
            items, what = self.events, "a video of the suite"
        elif self.asked:
            items, what = self.asked, "an appearance or a pair that was judged"
        elif self.pictures:
            items = dict.fromkeys(self.pictures)
            what = "a story of the evaluation, or of one of its shots, such as 01/shot_03"
        else:
            items, what = self.morals, "a story of the release"
        if row.item not in items:
            return Stray("item", f"the id of {what}", repr(row.item))
        judged = self.pictures or self.asked or row.kind in ("answer", "moral_label", "completion")
        if judged and row.method is not None and self.methods and row.method not in self.methods:
            return Stray("method", f"one of {', '.join(sorted(self.methods))}", repr(row.method))
        return self._unknown_detail(row)

    def _unknown_detail(self, row: HumanRow) -> Stray | None:
        ratings = self.asked.get(str(row.item), {})
        if ratings and row.criterion not in ratings:
            return Stray("criterion", f"one of {', '.join(ratings)}", repr(row.criterion))
        low, high = ratings.get(str(row.criterion), self.rating)
        if row.kind == "rating" and row.value is not None and not low <= row.value <= high:
            return Stray("value", f"a rating from {low} to {high}", str(row.value))
        if strange := [label for label in row.labels if label not in self.labels]:
            return Stray("labels", "moral labels, or unclear", ", ".join(map(repr, strange)))
        if len(set(row.labels)) < len(row.labels):
            return Stray("labels", "different labels", ", ".join(row.labels))
        events = self.events[str(row.item)] if row.kind == "completion" else 0
        if row.kind == "completion" and len(row.completion) != events:
            return Stray("completion", f"{events} values, one for each event", str(len(row.completion)))
        return None


def read_key(path: str | Path) -> dict[str, tuple[str, str]]:
    """Return task -> video and model."""
    with explaining(
        path, "give the key of the tasks that people answered",
        what="this is not the key of a study (task -> [video, model])", of=MISSHAPEN,
    ):  # fmt: skip
        document = read_json(Path(path), follow=True)
        return {str(task): (str(video), str(method)) for task, (video, method) in document.items()}


def read_human(path: str | Path, known: Known, key: Key | None = None) -> tuple[HumanRow, ...]:
    """Return the lines of a file of people's answers, in file order.

    A line that is there twice counts once.
    """
    return _Reading(Path(path), known, key).rows()


@dataclass
class _Reading:
    """One file while it is read, with its problems so far."""

    path: Path
    known: Known
    key: Key | None
    problems: list[UserError] = field(default_factory=list)

    def wrong(self, where: str, expected: str, found: str, fix: str = FIX) -> None:
        self.problems.append(UserError(where, expected=expected, found=found, fix=fix))

    def rows(self) -> tuple[HumanRow, ...]:
        first: dict[tuple[Any, ...], tuple[str, HumanRow]] = {}
        strays, elsewhere = Counter[str](), Counter[str]()
        text = self._text()
        for where, fields in self._csv(text) if self.path.suffix == ".csv" else self._jsonl(text):
            if len(self.problems) >= LISTED:
                self.wrong(where, f"at most {LISTED} problems", "more; the rest is not read")
                break
            kind = str(fields.get("kind"))
            if kind in ELSEWHERE.keys() - self.known.kinds:
                elsewhere[kind] += 1
                continue
            if self.known.kinds and kind in NEEDED.keys() - self.known.kinds:
                strays[kind] += 1
                continue
            shown = self._unblinded(where, fields)
            if shown is not None and (row := self._row(where, shown)):
                self._check(where, row, first)
        if strays:
            self._name_strays(strays)
        for kind, count in sorted(elsewhere.items()):
            lines = f"{counted(count, 'line')} of kind {kind}"
            what = f"{lines} cannot be compared with an evaluation: {ELSEWHERE[kind]}"
            self.problems.insert(0, UserError(str(self.path), what=what, fix="take them out of this file"))
        if not first and not self.problems:
            self.wrong(str(self.path), "at least one line", "none")
        if self.problems:
            raise InputError(self.problems)
        return tuple(row for _, row in first.values())

    def _name_strays(self, strays: Counter[str]) -> None:
        """Put the one problem of lines that are about another kind of evaluation first."""
        what = "videos" if "completion" in self.known.kinds else "storyboards"
        what = "episodes" if self.known.asked else what
        self.wrong(
            str(self.path),
            f"lines of kind {', '.join(sorted(self.known.kinds))}: the evaluation is of {what}",
            ", ".join(f"{count} of kind {kind}" for kind, count in sorted(strays.items())),
            "give what people said about this evaluation, or the evaluation that they were asked about",
        )
        self.problems.insert(0, self.problems.pop())

    def _text(self) -> str:
        wanted, fix = "a .jsonl or .csv file in UTF-8", "rename or convert it"
        found = f"the ending {self.path.suffix!r}"
        if self.path.suffix in (".jsonl", ".csv"):
            try:
                return read_plain(self.path, LARGEST, follow=True).decode("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                found, fix = reason_of(error), "give the file of answers"
                if isinstance(error, OSError) and error.errno == errno.EFBIG:
                    wanted, found, fix = f"at most {LARGEST} bytes", "more", "split the file"
        self.wrong(str(self.path), wanted, found, fix)
        raise InputError(self.problems)

    def _jsonl(self, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            where = f"{self.path}:{number}"
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.wrong(where, "a JSON object", reason_of(error))
                continue
            if isinstance(fields, dict):
                yield where, fields
            else:
                self.wrong(where, "a JSON object", type(fields).__name__)

    def _csv(self, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
        known = sorted(HumanRow.model_fields)
        try:
            table = CsvTable(text)
            if strange := [repr(name) for name in table.columns if name not in known]:
                self.wrong(f"{self.path}:1", f"columns among {', '.join(known)}", ", ".join(strange))
                return
            for line, cells in table.rows():
                where = f"{self.path}:{line}"
                if len(cells) != len(table.columns):
                    if any(cells):
                        self.wrong(where, f"{len(table.columns)} cells, as in line 1", str(len(cells)))
                    continue
                named = table.by_name(cells)
                if any(cells):
                    yield where, {name: _cell(name, cell) for name, cell in named.items() if cell}
        except BadCsv as error:
            self.wrong(f"{self.path}:{error.line}", "CSV, with commas and quotes", str(error))

    def _unblinded(self, where: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return a line with video and method instead of the task that stood for them."""
        named = "rating" if self.known.asked else "completion"
        if self.key is None or fields.get("kind") != named or not fields.get("rater"):
            return fields
        task, method = fields.get("item"), fields.get("method")
        if not isinstance(task, str) or task not in self.key:
            self.wrong(f"{where} item", "the id of a task in the key", repr(task))
            return None
        if method is not None:
            self.wrong(f"{where} method", "no method, because the task says which it is", repr(method))
            return None
        return {**fields, **dict(zip(("item", "method"), self.key[task], strict=True))}

    def _row(self, where: str, fields: dict[str, Any]) -> HumanRow | None:
        if fields.get("rater") in (None, ""):
            self.wrong(f"{where} rater", "the anonymised id of the person", "none")
            return None
        try:
            return HumanRow.model_validate_json(json.dumps(fields), strict=True)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                column = f" {format_path(detail['loc']).removeprefix('$.')}" if detail["loc"] else ""
                self.problems.append(UserError(f"{where}{column}", what=type_reason(detail), fix=FIX))
        except (ValueError, RecursionError) as error:
            self.wrong(where, "values that JSON has", str(error))
        return None

    def _check(self, where: str, row: HumanRow, first: dict[tuple[Any, ...], tuple[str, HumanRow]]) -> None:
        """Keep a line where it names what is there, and the person said nothing else about it before."""
        if stray := self.known.unknown(row):
            self.wrong(f"{where} {stray.column}", stray.expected, stray.found)
            return
        earlier, said = first.setdefault(row.place(), (where, row))
        if said != row:
            self.wrong(
                where, f"one line of {row.rater} for this {row.kind} of {row.item}, as in {earlier}",
                "a different one", "keep the line that counts, or number a repeated control with repeat",
            )  # fmt: skip


def _cell(name: str, cell: str) -> Any:  # noqa: ANN401 - a JSON value
    cell = without_guard(cell.strip())
    parts = [part.strip() for part in cell.split("|")] if name in LISTS else [cell]
    values = [_number(part) if name in NUMBERS else part for part in parts]
    if name in FLAGS:
        return SWITCHES.get(cell.lower(), cell)
    return values if name in LISTS else values[0]


def _number(text: str) -> int | float | str:
    """Return the number that a cell holds, else its text, which the type then refuses by name."""
    number, plain = number_of(text), plain_text(text)
    if number is None or math.isnan(number) or plain.endswith("%"):
        return text
    if plain.lstrip("+-").isdecimal():
        return int(plain)
    return int(number) if number.is_integer() else number
