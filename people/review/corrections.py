"""Corrections that people ask for: which values may change, what may stand there, when two are the same."""

import unicodedata
from collections.abc import Mapping, Sequence

from ...schemas.canonical import Json, canonical_text
from .items import Item, Value
from .task import UNCLEAR, Question, Task, is_due, place_of

LONGEST_VALUE = 20_000
"""Characters of a new value, as JSON."""


def values_of(item: Item, question: Question, part: str) -> tuple[Value, ...]:
    """Return the values that an ``edits`` question lets people change.

    ``part``: id of the part that it is asked of; empty for the whole item.
    """
    held = item.values
    if part:
        held = next((each.values for each in item.parts[question.each or ""] if each.id == part), ())
    return tuple(value for value in held if not question.corrects or value.path.startswith(question.corrects))


def edits_after(task: Task, question: Question) -> Question | None:
    """Return the question that asks for corrections after answers to another; None where there is none."""
    named = (each for each in task.card.questions if each.type == "edits" and question.name in each.when)
    return next(named, None)


def notes_after(task: Task, question: Question) -> tuple[Question, ...]:
    """Return the questions for a note that are asked after answers to another."""
    return tuple(each for each in task.card.questions if each.type == "text" and question.name in each.when)


def said_value(
    task: Task, item: Item, question: Question, part: str, answers: Mapping[str, Json]
) -> tuple[bool, Json]:
    """Return whether a question is about one value of the item, and the value that answers say is right.

    That is the one that was shown, or the one that a correction puts there; :data:`.task.UNCLEAR` where the
    answer says that several readings stand. Reviewers who agree that a label is wrong may differ in which is
    right: this is what tells.

    Example: the label courage was shown. ``correct`` says courage; ``corrected`` with kindness says kindness;
    ``ambiguous`` says unclear.
    """
    after = edits_after(task, question)
    values = () if after is None else values_of(item, after, part)
    if len(values) != 1:
        return False, None
    if answers.get(place_of(question.name, part)) in (*question.ambiguous, UNCLEAR):
        return True, UNCLEAR
    return True, tidy(edits_in(answers, after, part).get(values[0].path, values[0].value))


def edits_in(answers: Mapping[str, Json], question: Question | None, part: str) -> dict[str, Json]:
    """Return path -> new value of the corrections in a vote; empty where it has none."""
    given = answers.get(place_of(question.name, part)) if question is not None else None
    return {str(edit["path"]): edit["new"] for edit in given or ()}


def listed_edits(edits: Mapping[str, Json]) -> list[Json]:
    """Return corrections as votes and decisions have them, by path."""
    return [{"path": path, "new": new} for path, new in sorted(edits.items())]


def wrong_corrections(task: Task, item: Item, answers: Mapping[str, Json]) -> dict[str, str]:
    """Return what is wrong with the corrections in answers of the right shape: place -> what."""
    wrong = {}
    for question, part in task.asked(item.part_ids):
        place = place_of(question.name, part)
        if question.type == "edits" and place in answers and is_due(question, part, answers):
            problem = problem_of(values_of(item, question, part), answers[place])
            if problem is not None:
                wrong[place] = problem
    return wrong


def problem_of(values: Sequence[Value], edits: Json) -> str | None:
    """Return what is wrong with corrections, a list of ``path`` and ``new``; None where nothing is."""
    known = {value.path: value for value in values}
    seen = set()
    for edit in edits:
        value = known.get(edit["path"])
        if value is None:
            return f"{str(edit['path'])[:100]} is not among the fields that can be corrected here"
        if value.path in seen:
            return f"{value.label} is corrected twice"
        seen.add(value.path)
        if problem := _problem_of_value(value, edit["new"]):
            return f"{value.label}: {problem}"
    return None


def _problem_of_value(value: Value, new: Json) -> str | None:
    """Return what keeps a new value from standing in a place, or None."""
    if is_same(value.value, new):
        return "this is what stands there"
    if value.options:
        known = {(type(option), option) for option in value.options}
        listed = ", ".join("nothing" if option is None else str(option) for option in value.options)
        fits = (new is None or isinstance(new, str | int)) and (type(new), new) in known
        return None if fits else f"one of {listed} is expected"
    if new is None or new == []:
        return None if value.optional else "something has to stand there"
    return _problem_of_kind(value.takes, new)


def _problem_of_kind(takes: str, new: Json) -> str | None:
    many, is_right = takes.endswith("s"), _is_text if takes.startswith("text") else _is_number
    if many != isinstance(new, list) or not all(map(is_right, new if many else [new])):
        return f"a list of {takes} is expected" if many else f"a {takes} is expected"
    return (
        f"at most {LONGEST_VALUE} characters are expected"
        if len(canonical_text(new)) > LONGEST_VALUE
        else None
    )


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_same(first: Json, second: Json) -> bool:
    """Return whether two values say the same, whatever the form of letters and white space around texts."""
    return bool(tidy(first) == tidy(second))


def tidy(value: Json) -> Json:
    """Return a value with its texts in composed form (NFC) and without white space around them."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if isinstance(value, list):
        return [tidy(entry) for entry in value]
    if isinstance(value, dict):
        return {name: tidy(entry) for name, entry in value.items()}
    return value
