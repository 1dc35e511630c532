"""Items that somebody wrote into a file: anything that a task can show and ask.

A JSONL file has an item a line; only ``about`` is needed. Pictures and videos are named from the folder of
the file, and lie below it::

    {"about": "page-7", "story": "tale-1", "condition": "image", "methods": ["model-a"], "seed": 1,
     "stratum": "hard", "texts": {"title": "..."}, "sides": [["left/1.png"], ["right/1.png"]],
     "parts": {"questions": [{"id": "q1", "text": "What falls?", "detail": ["a tree"]}]},
     "values": [{"path": "$.title", "label": "Title", "value": "..."}]}

``about`` is what votes name as item; ``story`` is the cluster that it belongs to, ``about`` if it is not
said. ``texts`` are what the task's template shows; ``sides`` are pictures or videos, two sides where things
are compared; ``parts`` are what the task asks of ``each``. Training and check items have ``expected`` and
``explained``, too:

    {"about": "story-000001", "condition": "image", "methods": ["model-a"],
     "expected": {"answer/q-000001": ["a bridge", "the bridge"]}, "explained": {"en": "The bridge breaks."}}

There ``about``, with ``condition``, ``methods``, ``seed`` and ``texts`` where these are needed to tell items
apart, picks one of the drawn items. A line with pictures or parts, or with texts and about something that no
drawn item is about, is an item of its own. ``expected`` has the right answers by place: the name of a
question, and the id of the part that it is asked of; places that are not named are not looked at. ``use``
says ``training`` or ``check``; without it, a line with ``explained`` is training.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ....errors import InputError, UserError
from ....schemas.canonical import Json, digest, sha256_file
from ....schemas.paths import format_path
from ....schemas.plain_files import json_lines, reason_of, type_reason
from ....schemas.values import Own
from ..items import Drawn, Part, Value
from ..task import Task, place_of
from .source import Drawing, Material, Source, known_only

LISTED = 100
"""Most problems of a file that are listed."""


class GivenItem(Own):
    """One line of a file of items."""

    about: str = Field(min_length=1)  # what votes name as item
    story: str = ""  # the cluster that it belongs to
    condition: Literal["text", "image", "text_image"] | None = None  # evidence condition
    methods: tuple[str, ...] = ()  # whose outputs the sides show
    seed: int | None = None  # of the generation
    stratum: str = ""  # what it was drawn among
    texts: Mapping[str, Json] = {}  # what the template shows
    sides: tuple[tuple[str, ...], ...] = ()  # files of pictures or videos, from the folder of the file
    parts: Mapping[str, tuple[Part, ...]] = {}  # list name -> parts
    values: tuple[Value, ...] = ()  # what of the whole may be corrected
    # whether it is for training or a check; training where something is explained
    use: Literal["training", "check"] | None = None
    expected: Mapping[str, tuple[Json, ...]] = {}  # place of an answer -> the answers that are right
    explained: Mapping[str, str] = {}  # what training says after the answer

    def drawn(self, root: Path) -> Drawn:
        shown = {name: self.as_json()[name] for name in ("texts", "sides", "parts", "values")}
        return Drawn(
            self.about, self.story or self.about, self.texts,
            tuple(tuple(_below(root, name) for name in side) for side in self.sides), self.parts, self.values,
            self.condition, self.methods, self.seed, self.stratum, digest(shown), self.expected,
            self.explained,
        )  # fmt: skip


def _below(root: Path, name: str) -> Path:
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ValueError(f"the file {name!r} does not lie below the folder of this one")
    if not path.is_file():
        raise ValueError(f"there is no file {name!r}")
    return path


def read_lines(path: Path) -> list[tuple[int, GivenItem]]:
    """Return number and content of every line."""
    problems: list[UserError] = []
    lines: list[tuple[int, GivenItem]] = []
    fix = "correct the line; docs/review.md has the fields"
    try:
        for number, document in enumerate(json_lines(path), 1):
            try:
                lines.append((number, GivenItem.model_validate(document)))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = f"{path}:{number} {format_path(first['loc'])}"
                problems.append(UserError(where, what=type_reason(first), fix=fix))
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"this cannot be read: {reason_of(error)[:200]}", fix=fix))
    if not lines and not problems:
        problems.append(UserError(str(path), what="there is no item in it", fix="write an item a line"))
    if problems:
        raise InputError(problems[:LISTED])
    return lines


def draw_given(material: Material) -> Drawing:
    """Return the items of a file."""
    options, path = material.options, material.path
    problems: list[UserError] = []
    items: list[Drawn] = []
    for number, line in read_lines(path):
        try:
            if line.expected:
                raise ValueError("an item with expected answers is for training or a check")
            items.append(line.drawn(path.parent))
        except ValueError as error:
            fix = "correct the line; training and checks have a file of their own"
            problems.append(UserError(f"{path}:{number}", what=str(error), fix=fix))
    twice = [named for named, count in Counter(item.named for item in items).items() if count > 1]
    for named in twice:
        about = named.partition("\n")[0]
        problems.append(UserError(str(path), what=f"the item {about} is there twice", fix="keep one of them"))
    if problems:
        raise InputError(problems[:LISTED])
    known_only("stories", options.stories, {item.story for item in items}, "story")
    known_only("methods", options.methods, {name for item in items for name in item.methods}, "method")
    known_only("conditions", options.conditions, {str(item.condition) for item in items}, "condition")
    kept = [
        item
        for item in items
        if (not options.stories or item.story in options.stories)
        and (not options.conditions or item.condition in options.conditions)
        and (not options.methods or set(item.methods) <= set(options.methods))
    ][: options.limit]
    return Drawing(tuple(kept), {"kind": "file", "path": path.name, "sha256": sha256_file(path)})


SOURCE = Source(
    "items of a file", {"file": ()}, "a JSONL file of items",
    ("methods", "stories", "conditions", "limit"), draw_given,
)  # fmt: skip


# -- training and check items

FIX = "correct the line; docs/review.md has the fields"


def marked(path: Path, drawing: Drawing, task: Task) -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
    """Return the items for training, in the order of the file, and the check items.

    They are no longer to be among the items: see :meth:`.Drawing.without`.
    """
    problems: list[UserError] = []
    training: list[Drawn] = []
    checks: list[Drawn] = []
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            item = _item(line, drawing.items, path.parent)
            _check_expected(item, task)
            if first := seen.get(item.named):
                raise ValueError(f"line {first} has this item already")
        except ValueError as error:
            problems.append(UserError(f"{path}:{number}", what=str(error), fix=FIX))
            continue
        seen[item.named] = number
        use = line.use or ("training" if line.explained else "check")
        (training if use == "training" else checks).append(item)
    if problems:
        raise InputError(problems[:LISTED])
    return tuple(training), tuple(checks)


def _item(line: GivenItem, items: Sequence[Drawn], root: Path) -> Drawn:
    if not line.expected:
        raise ValueError("no answer is expected")
    alike = [item for item in items if item.about == line.about]
    if line.sides or line.parts or line.values or (line.texts and not alike):
        return line.drawn(root)
    fitting = [item for item in alike if _fits(line, item)]
    if len(fitting) == 1:
        return replace(fitting[0], expected=line.expected, explained=line.explained)
    if fitting:
        raise ValueError(
            f"{len(fitting)} drawn items are about {line.about}: say condition, methods or texts, too"
        )
    raise ValueError(f"no drawn item is about {line.about}, as this line has it")


def _fits(line: GivenItem, item: Drawn) -> bool:
    given = {name: getattr(line, name) for name in ("condition", "methods", "seed", "story", "stratum")}
    return all(value in (None, "", (), getattr(item, name)) for name, value in given.items()) and all(
        item.texts.get(name) == value for name, value in line.texts.items()
    )


def _check_expected(item: Drawn, task: Task) -> None:
    """Check that the expected answers can be given."""
    parts = {name: tuple(part.id for part in listed) for name, listed in item.parts.items()}
    asked = {place_of(question.name, part): question for question, part in task.asked(parts)}
    for name, answers in item.expected.items():
        question = asked.get(name)
        if question is None:
            listed = ", ".join(list(asked)[:12]) + (" and others" if len(asked) > 12 else "")
            raise ValueError(f"nothing is asked at {name!r}; there are {listed}")
        if not answers:
            raise ValueError(f"no answer is right at {name!r}")
        for answer in answers:
            if problem := question.problem(answer):
                raise ValueError(f"{answer!r} cannot be answered at {name!r}: {problem}")
