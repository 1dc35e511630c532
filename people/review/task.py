"""A task: what a reviewer is shown and asked. One file holds it whole: data, then a template of the evidence.

Tasks of ours lie in ``people/review/tasks``; another package adds its own with an entry point of the group
``fabula.review_tasks`` that names a package with a file ``<name>.j2``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ...errors import ConfigError, InputError
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.judgement import HumanKind
from ...schemas.plain_files import check_storable, read_plain, reason_of
from ...schemas.plugins import plugins
from ...schemas.values import Own, vocabulary

GROUP = "fabula.review_tasks"
ENDING = ".j2"
UNCLEAR = "unclear"
"""The answer of somebody who cannot tell (KathaTrace, section F.1)."""
LONGEST_TEXT = 4_000
"""Characters of a free answer."""
MOST_EDITS = 200
_OPEN, _CLOSE = "{#---\n", "\n---#}\n"
Texts = Mapping[str, str]
"""Language -> text; English is always there."""


class Option(Own):
    """One answer that can be chosen: what it is called in the votes, and how it reads."""

    value: str | int
    text: Texts


class Question(Own):
    """One thing that a task asks."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")  # what it is called in the votes
    # ``choice`` of one option, ``scale`` (a choice whose options are numbers), ``labels`` (one to ``most``
    # options, the likeliest first), ``text``, or ``edits`` (new values of fields shown)
    type: Literal["choice", "scale", "labels", "text", "edits"]
    title: Texts  # the question as it is put
    help: Texts = Field(default={})  # more on it, such as a checklist
    section: str | None = None  # the heading that it stands under
    options: tuple[Option, ...] = ()  # what can be chosen
    words: str | None = None  # vocabulary whose values are the options, in place of ``options``
    # whether the options of a choice go from less to more, as those of a scale always do
    ordered: bool = False
    most: int = Field(default=3, ge=1)  # how many labels at most
    each: str | None = None  # list of the item's parts; the question is asked once for each of them
    unclear: bool = False  # whether ``Unclear`` may be answered
    optional: bool = False  # whether it may be left unanswered
    # answers of another question of the same part at which it is asked: name -> answers
    when: Mapping[str, tuple[str | int, ...]] = {}
    # kind of line that an answer becomes (see :mod:`.votes`); None where it only travels along
    row: HumanKind | None = None
    criterion: str | None = None  # what the line calls it; the name if None
    adjudicated: bool = False  # whether different answers are a disagreement that somebody decides
    # answers that say that several readings stand; somebody decides, whoever gives them
    ambiguous: tuple[str | int, ...] = ()
    # answers that say that the thing cannot be used as it is; somebody decides likewise
    unusable: tuple[str | int, ...] = ()
    # of ``edits``, beginnings of the paths of values that may be changed; any if empty
    corrects: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        choosing = self.type in ("choice", "scale", "labels")
        if choosing and not self.options and self.words is None:
            raise ValueError(f"question {self.name}: it has no options")
        if any("en" not in texts for texts in (self.title, *(option.text for option in self.options))):
            raise ValueError(f"question {self.name}: a text has no English form")
        if self.type == "scale" and not all(isinstance(option.value, int) for option in self.options):
            raise ValueError(f"question {self.name}: the options of a scale are numbers")
        if not {*self.ambiguous, *self.unusable} <= {option.value for option in self.choices}:
            raise ValueError(f"question {self.name}: an answer that is ambiguous or unusable is no option")
        return self

    @property
    def choices(self) -> tuple[Option, ...]:
        """What can be chosen, the words of a vocabulary included; without Unclear."""
        if self.words is None:
            return self.options
        words = vocabulary(self.words)
        return tuple(Option(value=value, text={"en": value.replace("_", " ")}) for value in words.values)

    def problem(self, answer: Json) -> str | None:
        """Return what is wrong with an answer, or None."""
        try:
            check_storable(answer)
        except (ValueError, RecursionError):
            return "it has half a character, or a number that cannot be stored"
        if self.unclear and answer == UNCLEAR:
            return None
        if self.type == "text":
            right = isinstance(answer, str) and len(answer.strip()) > 0 and len(answer) <= LONGEST_TEXT
            return None if right else f"a text of 1 to {LONGEST_TEXT} characters is expected"
        if self.type == "edits":
            return _problem_of_edits(answer, least=0 if self.optional else 1)
        return self._problem_of_choice(answer)

    def _problem_of_choice(self, answer: Json) -> str | None:
        allowed = [option.value for option in self.choices]
        chosen = answer if self.type == "labels" else [answer]
        if not isinstance(chosen, list) or not 1 <= len(chosen) <= (
            self.most if self.type == "labels" else 1
        ):
            return f"one to {self.most} of the options are expected"
        known = {(type(value), value) for value in allowed}
        strange = [
            value for value in chosen if not isinstance(value, str | int) or (type(value), value) not in known
        ]
        if strange or len({str(value) for value in chosen}) < len(chosen):
            return f"one of {', '.join(map(str, allowed))} is expected, each once"
        return None


def _problem_of_edits(answer: Json, least: int) -> str | None:
    if not isinstance(answer, list) or not least <= len(answer) <= MOST_EDITS:
        return f"a list of {least} to {MOST_EDITS} corrections is expected"
    for edit in answer:
        if not isinstance(edit, dict) or edit.keys() != {"path", "new"} or not isinstance(edit["path"], str):
            return "each correction has a path and a new value"
    return None


class TaskCard(Own):
    """The data of a task, at the head of its file."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")  # the name of its file
    version: int = Field(ge=1)  # raised whenever the file changes
    title: Texts  # what reviewers read above it
    instructions: Texts  # what they read before they begin, and at any time again
    source: str  # where it comes from
    draws: str  # name of the source of its items (:mod:`fabula.kinds.making_studies`)
    # what a reviewer may see: ``image`` (pictures and nothing of the story) or ``any``
    evidence: Literal["image", "any"] = "any"
    watched: bool = False  # whether videos must have been played to their end before a vote
    apart: bool = False  # whether a person gets one evidence condition per story
    # whether questions and options come in an order that is drawn, as in section F.1 of the KathaTrace paper
    # (see :class:`.serve.pages.Shown`)
    shuffled: bool = False
    questions: tuple[Question, ...] = Field(min_length=1)  # what is asked, in order
    sections: Mapping[str, Texts] = {}  # section -> its heading
    texts: Mapping[str, Texts] = {}  # other texts that the template uses

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        names = [question.name for question in self.questions]
        if len(set(names)) < len(names):
            raise ValueError(f"task {self.id}: two questions have one name")
        for question in self.questions:
            if strange := set(question.when) - set(names):
                raise ValueError(f"task {self.id}: {question.name} depends on {', '.join(strange)}")
            if question.section is not None and question.section not in self.sections:
                raise ValueError(f"task {self.id}: section {question.section} has no heading")
            if self.shuffled and question.when:
                raise ValueError(f"task {self.id}: {question.name} follows another, so none can be shuffled")
        return self


@dataclass(frozen=True, slots=True)
class Task:
    """A task as its file holds it."""

    card: TaskCard  # its data
    template: str  # its template of the evidence, in Jinja; what is put in is escaped
    content: bytes  # the whole file

    @property
    def sha256(self) -> str:
        """Hash of the whole file."""
        return sha256_bytes(self.content)

    @property
    def label(self) -> str:
        """The task as protocols name it."""
        return f"{self.card.id}@{self.card.version}#{self.sha256[:12]}"

    def asked(self, parts: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Question, str]]:
        """Yield every question with the part that it is about, empty where it is about the whole item.

        ``parts``: list of the item's parts -> their ids.
        """
        for question in self.card.questions:
            for part in ("",) if question.each is None else parts.get(question.each, ()):
                yield question, part

    def problems(self, answers: Mapping[str, Json], parts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        """Return what is wrong with the answers to an item: place of the answer -> what.

        ``answers``: place (see :func:`place_of`) -> answer. ``parts``: list of the item's parts -> their ids.
        """
        wrong: dict[str, str] = {}
        places = set()
        for question, part in self.asked(parts):
            place = place_of(question.name, part)
            places.add(place)
            if not is_due(question, part, answers):
                if place in answers:
                    wrong[place] = "this is not asked after the other answers"
            elif place not in answers:
                if not question.optional:
                    wrong[place] = "an answer is missing"
            elif problem := question.problem(answers[place]):
                wrong[place] = problem
        return wrong | {str(place)[:100]: "this is not asked" for place in answers if place not in places}


def place_of(name: str, part: str = "") -> str:
    """Return what an answer is called in a vote: the question's name, and its part where it has one."""
    return f"{name}/{part}" if part else name


def is_due(question: Question, part: str, answers: Mapping[str, Json]) -> bool:
    """Return whether a question is asked after the answers given."""
    return all(
        answers.get(place_of(name, part), answers.get(name)) in wanted
        for name, wanted in question.when.items()
    )


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks, ours first."""
    own = sorted(
        entry.name.removesuffix(ENDING)
        for entry in (files(__package__) / "tasks").iterdir()
        if entry.name.endswith(ENDING)
    )
    return (*own, *(entry.name for entry in plugins(GROUP)))


@cache
def load_task(name: str) -> Task:
    """Return a task by its name, or by the path of its file, or of the folder that holds this file alone."""
    if Path(name).is_dir() and name not in task_names():
        found = sorted(Path(name).glob(f"*{ENDING}"))
        if len(found) != 1:
            what = f"the folder {name} holds {len(found)} files of tasks"
            raise ConfigError("--task", what=what, fix=f"keep one file that ends in {ENDING} in it")
        name = str(found[0])
    if name.endswith(ENDING):
        path = Path(name)
        if not path.is_file():
            raise ConfigError("--task", what=f"there is no file {name}", fix="give the file of a task")
        return read_task(read_plain(path, follow=True), name)
    for entry in plugins(GROUP):
        if entry.name == name:
            return read_task((files(entry.value) / f"{name}{ENDING}").read_bytes(), name)
    if name not in task_names():
        raise ConfigError(
            "--task", expected=f"one of {', '.join(task_names())}", found=repr(name), fix="choose one of them"
        )
    return read_task((files(__package__) / "tasks" / f"{name}{ENDING}").read_bytes(), name)


@lru_cache(maxsize=16)
def read_task(content: bytes, where: str) -> Task:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C reads ten times as fast

    try:
        head, mark, body = content.decode("utf-8").replace("\r\n", "\n").partition(_CLOSE)
        if not mark or not head.startswith(_OPEN):
            raise ValueError("the file must start with the task's data between {#--- and ---#}")
        data: Any = yaml.load(head.removeprefix(_OPEN), loader)
        return Task(TaskCard.model_validate(data), body, content)
    except (ValueError, yaml.YAMLError) as error:
        fault = reason_of(error)
    raise InputError.one(where, what=f"this is not the file of a task: {fault}", fix="see docs/review.md")


def text_in(texts: Texts, language: str) -> str:
    """Return a text in a language, in English where it has no such form."""
    return texts.get(language) or texts.get(language.partition("-")[0]) or texts.get("en", "")
