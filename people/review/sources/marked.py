"""Training and check items, whose right answers somebody wrote into a file.

A JSONL file has an item a line::

    {"about": "story-000001", "condition": "image", "methods": ["model-a"],
     "expected": {"answer/q-000001": ["a bridge", "the bridge"]}, "explained": {"en": "The bridge breaks."}}

``about``, with ``condition``, ``methods``, ``seed`` and ``texts`` where these are needed to tell items apart,
picks one of the drawn items. A line with pictures or parts, or with texts and about something that no drawn
item is about, is an item of its own (see :mod:`.given`). ``expected`` has the right answers by place: the
name of a question, and the id of the part that it is asked of; places that are not named are not looked at.
``use`` says ``training`` or ``check``; without it, a line with ``explained`` is training.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ....errors import InputError, UserError
from ..items import Drawn
from ..task import Task, place_of
from .given import LISTED, GivenItem, read_lines
from .source import Drawing

FIX = "correct the line; docs/review.md has the fields"


def marked(path: Path, drawing: Drawing, task: Task) -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
    """Return the items for training, in the order of the file, and the check items.

    They are no longer to be among the items: see :meth:`.Drawing.without`.

    Args:
        path: the file.
        drawing: what was drawn.
        task: what is asked.

    Raises:
        InputError: a line cannot be used, picks no item or several, or expects what cannot be answered; all
            are listed.
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
    """Check that the expected answers can be given.

    Raises:
        ValueError: a place is not asked, or an answer is none of the question's.
    """
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
