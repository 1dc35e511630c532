"""Answers read from texts that people write into a cell or field.

What a text cannot say, such as white space around it, is written as JSON after ``json:``.
"""

import json
from collections.abc import Sequence

from ....schemas.canonical import Json
from ..items import Value
from ..task import UNCLEAR, Question, text_in
from .sheets import Asked

JSON = "json:"
BETWEEN = "|"
"""Stands between the labels of an answer."""
EQUALS = "="
"""Stands between the path of a correction and the new value."""
NONE = "none"
"""A list of corrections with nothing in it."""
LONGEST_TOKEN = 80


def tokens(question: Question) -> dict[str, str | int]:
    """Return what each option of a question is called in other tools -> its value, in order; with Unclear.

    That is the value itself, where it can stand in a list, a cell and an attribute of XML, and no other reads
    so; else ``option-`` and its number.
    """
    values = [option.value for option in question.choices]
    texts = [str(value) for value in values]
    reserved = {text for text, value in zip(texts, values, strict=True) if _can_stand(text, value)}
    named: dict[str, str | int] = {}
    for number, (text, value) in enumerate(zip(texts, values, strict=True), 1):
        name = text
        if text not in reserved or texts.count(text) > 1:
            name = f"option-{number}"
            while name in reserved or name in named:
                name += "-"
        named[name] = value
    return named | ({UNCLEAR: UNCLEAR} if question.unclear else {})


def _can_stand(text: str, value: str | int) -> bool:
    if text == UNCLEAR and value != UNCLEAR:
        return False
    plain = text.isprintable() and text == text.strip() and len(text) <= LONGEST_TOKEN
    return bool(text) and plain and text[0] not in "'=+@" and not set(text) & set(",|$\\")


def token_of(question: Question, value: Json) -> str:
    """Return what an option is called in other tools."""
    named = {(type(known), known): name for name, known in tokens(question).items()}
    return named[type(value), value]


def answer_of(asked: Asked, cell: str) -> Json:
    """Return the answer that a text stands for."""
    question, text = asked.question, cell.strip()
    if question.unclear and text.lower() == UNCLEAR:
        return UNCLEAR
    if question.type in ("choice", "scale"):
        return _option(question, text)
    if question.type == "labels":
        return [_option(question, label.strip()) for label in text.split(BETWEEN) if label.strip()]
    return _text(text) if question.type == "text" else _edits(asked.values, text)


def _option(question: Question, text: str) -> Json:
    named = tokens(question)
    if text in named:
        return named[text]
    lowered = text.casefold()
    chosen = {name: value for name, value in named.items() if name.casefold() == lowered}
    for option in question.choices:
        if lowered in (words.casefold() for words in option.text.values()):
            chosen[str(option.value)] = option.value
    if len(chosen) != 1:
        raise ValueError(f"one of {', '.join(named)} is expected, and there is {text[:60]!r}")
    return next(iter(chosen.values()))


def _text(text: str) -> Json:
    return _parsed(text.removeprefix(JSON)) if text.startswith(JSON) else text


def _edits(values: Sequence[Value], text: str) -> Json:
    if text.lower() == NONE:
        return []
    if text.startswith(JSON):
        return _parsed(text.removeprefix(JSON))
    paths = sorted((value.path for value in values), key=len, reverse=True)
    shown = {value.path: value.value for value in values}
    edits = []
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        path = next((path for path in paths if line.removeprefix(path).lstrip().startswith(EQUALS)
                     and line.startswith(path)), None)  # fmt: skip
        if path is None:
            listed = ", ".join(shown) or "there are none"
            raise ValueError(f"each line is a path, {EQUALS} and the new value; the paths are {listed}")
        edits.append({"path": path, "new": _new(shown[path], line[len(path) :].lstrip()[1:].strip())})
    return edits


def _new(shown: Json, text: str) -> Json:
    if text.startswith(JSON):
        return _parsed(text.removeprefix(JSON))
    if isinstance(shown, str):
        return text
    try:
        return _parsed(text)
    except ValueError:
        if shown is None:
            return text
        raise


def _parsed(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a character has no form in a file
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON is expected, and there is {text[:60]!r}") from error
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number of JSON")


def hint(asked: Asked, language: str) -> str:
    """Return how a question is answered in a cell: its options, or what to write, and when it is asked."""
    question = asked.question
    texts = {option.value: text_in(option.text, language) for option in question.choices}
    options = [name if (words := texts.get(value, name)) == name else f"{name} = {words}"
               for name, value in tokens(question).items()]  # fmt: skip
    how = f" {BETWEEN} ".join(options)
    if question.type == "labels":
        how = f"1 to {question.most}, the likeliest first, with {BETWEEN} between them: {how}"
    elif question.type == "text":
        how = f"a text{f', or {UNCLEAR}' if question.unclear else ''}"
    elif question.type == "edits":
        paths = ", ".join(value.path for value in asked.values)
        how = f"one correction a line, as PATH {EQUALS} NEW VALUE; {NONE} if there is none; paths: {paths}"
    notes = ["may be left empty"] if question.optional else []
    notes += [f"only if {name} is {' or '.join(map(str, wanted))}" for name, wanted in question.when.items()]
    return "; ".join((how, *notes))
