"""Every code that a validator reports: what it means, how bad it is, and what to do about it.

The tables are files ``codes.toml``, one beside the rules of each kind; they are the documentation,
which :func:`rule_table` prints.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from ..schemas.values import Issue, Level


@dataclass(frozen=True, slots=True)
class Code:
    """One stable code."""

    meaning: str  # what must hold, in one sentence
    cure: str  # what to do where it does not
    level: Level = "error"  # ``error`` or ``warning``


def read_codes(package: str) -> dict[str, Code]:
    """Return the codes of a package: code -> its meaning, cure and level."""
    table = tomllib.loads((files(package) / "codes.toml").read_text("utf-8"))
    return {name: Code(**entry) for name, entry in table.items()}


def issue_of(codes: Mapping[str, Code], code: str, where: str, path: str, message: str) -> Issue:
    """Return an issue with the cure and level of its code."""
    known = codes[code]
    return Issue(where, path, code, message, known.cure, known.level)


CODES = read_codes(__package__)
"""The codes about stories."""
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue about stories."""
_WORDS: dict[object, str] = {None: "null", True: "true", False: "false"}


def show(value: object, limit: int = 80) -> str:
    """Return a value as it appears in a message: on one line, quoted, cut, plain where it must be."""
    text = _WORDS.get(value, repr(value)) if value is None or isinstance(value, bool) else repr(value)
    # repr keeps printable characters and escapes the rest, lone surrogates and line ends included.
    return text if len(text) <= limit else f"{text[: limit - 4]}...{text[-1]}"


def label(value: object) -> str:
    """Return an id as a place names it: itself if it is plain and short, else as :func:`show` has it."""
    return value if isinstance(value, str) and value.isprintable() and len(value) <= 64 else show(value)


def rule_table(codes: Mapping[str, Code] = CODES) -> str:
    """Return codes as a Markdown table for the documentation."""
    rows = [f"| `{name}` | {code.level} | {code.meaning} | {code.cure} |" for name, code in codes.items()]
    return "\n".join(["| code | level | what must hold | what to do |", "|---|---|---|---|", *rows])
