"""What a check of data found: the issues, sorted, what was looked at, and a summary by code."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..models.spec import made_up, stand_ins_in
from ..pages.grid import Grid, Tabular
from ..schemas.canonical import Json
from ..schemas.text import tallied, tallies
from ..schemas.values import Issue, Level

KEPT_PER_CODE = 1000
"""So many issues of one code are kept; the rest are counted, so that memory stays bounded."""


def as_user_error(problem: Issue) -> UserError:
    """Return an issue as an error that can be raised."""
    what = f"{problem.message} (rule {problem.code})"
    return UserError(f"{problem.where} {problem.path}", what=what, fix=problem.cure)


@dataclass(frozen=True, slots=True)
class CheckReport(Tabular):
    """What every check of data reports."""

    issues: tuple[Issue, ...]  # the findings, sorted
    checked: dict[str, int]  # what was looked at -> how many

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The findings that make the data unsound."""
        return tuple(issue for issue in self.issues if issue.level == "error")

    @property
    def ok(self) -> bool:
        """Whether there are no errors; warnings do not count."""
        return not self.errors

    @property
    def cause(self) -> UserError | None:
        """What most findings follow from, where that is known."""
        return None

    @property
    def beside_cause(self) -> tuple[Issue, ...]:
        """The findings that are told one by one: those that do not follow from the cause."""
        return self.issues

    @property
    def looked(self) -> str:
        return ", ".join(tallied(count, name) for name, count in self.checked.items())

    def about(self) -> dict[str, Json]:
        """Return what was checked, and how, as plain JSON."""
        return {}

    def grids(self) -> Iterator[Grid]:
        """Yield the findings, and what was looked at."""
        columns = ("level", "rule", "where", "path", "message", "fix")
        rows = (
            (issue.level, issue.code, issue.where, issue.path, issue.message, issue.cure)
            for issue in self.issues
        )
        note = "" if self.issues else "No findings."
        yield Grid("findings", "Findings", columns, tuple(rows), note, words=(1, 2, 3, 4, 5))
        yield Grid("checked", "What was checked", ("part", "count"), tuple(self.checked.items()))

    def as_json(self) -> dict[str, Json]:
        return {
            **self.about(),
            "ok": self.ok,
            "checked": dict(self.checked),
            "issues": [issue.as_dict() for issue in self.issues],
        }


@dataclass(frozen=True, slots=True)
class ValidationReport(CheckReport):
    """All findings of one validation; at most :data:`KEPT_PER_CODE` issues per code.

    Attributes:
        issues: the findings, sorted by place, path and code.
        checked: what was looked at: stories, scenes, transitions, questions, variants, reviews.
        counts: code -> how many findings there are, kept or not.
        path: the data set, as it was given.
        kind: ``run``, ``release`` or ``file``.
        stand_ins: stand-ins for models that wrote or checked records of it.
    """

    counts: dict[str, int]
    path: str
    kind: str
    stand_ins: tuple[str, ...] = field(default=(), kw_only=True)

    def about(self) -> dict[str, Json]:
        """Return the data set and how many findings each code has."""
        made: dict[str, Json] = {"stand_ins": list(self.stand_ins)} if self.stand_ins else {}
        return {"path": self.path, "kind": self.kind, "counts": dict(self.counts), **made}

    def summary(self) -> str:
        """Return what was checked and how many findings each code has, as lines for people."""
        notes = [f"note: {made_up(self.stand_ins)}"] if self.stand_ins else []
        return "\n".join([*self._counted(), *notes])

    def _counted(self) -> list[str]:
        if not self.counts:
            return [f"checked {self.looked}: no findings"]
        levels = {issue.code: issue.level for issue in self.issues}
        lines = [
            f"  {count:6} {levels[code]:7} {code}{_unshown(count)}" for code, count in self.counts.items()
        ]
        sums = Counter[str]()
        for code, count in self.counts.items():
            sums[f"{levels[code]}s"] += count
        return [f"checked {self.looked}: {tallies(dict(sorted(sums.items())))}", *lines]


def _unshown(count: int) -> str:
    return f" ({KEPT_PER_CODE} shown)" if count > KEPT_PER_CODE else ""


@dataclass(slots=True)
class IssueBin:
    """Takes issues one by one and keeps a bounded number of each code."""

    kept: list[Issue] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, issue: Issue) -> None:
        self.counts[issue.code] += 1
        if self.counts[issue.code] <= KEPT_PER_CODE:
            self.kept.append(issue)

    def extend(self, issues: Iterable[Issue]) -> None:
        for issue in issues:
            self.add(issue)

    def report(self, path: str, kind: str, checked: dict[str, int]) -> ValidationReport:
        """Return the report over everything taken."""
        return ValidationReport(
            tuple(sorted(self.kept, key=by_line)), checked, dict(sorted(self.counts.items())), path, kind
        )


def by_line(issue: Issue) -> tuple[str, int, Issue]:
    """Sort by file and line number, then by everything else."""
    name, _, rest = issue.where.partition(":")
    line = rest.split(" ", 1)[0]
    return (name, int(line) if line.isascii() and line.isdigit() else 0, issue)


# -- Every code that a validator reports: what it means, how bad it is, and what to do about it
#
# The tables are files ``codes.toml``, one beside the rules of each kind; they are the documentation,
# which :func:`rule_table` prints.


@dataclass(frozen=True, slots=True)
class Code:
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


# -- How releases of every kind name what people, or programs in their place, said of their records

VOTES = "votes.jsonl"
"""The votes of reviewers, in a folder that a review exports and in a release that publishes them."""
STANDS_FOR = "stands_for.jsonl"
"""Of each record the content that its review stands for, in a folder that a review exports."""
REVIEWED = "reviews"
"""Key of ``release.json`` under which it says which status its reviews give, and what became of the votes."""
BINDINGS = "review_bindings"
"""Key of ``release.json``: how many reviews name the content that was read, and which no longer hold."""
MARK = "simulated_reviews"
"""Key of ``release.json``: true where reviews or votes were made by programs."""
SIMULATED = "simulated-"
"""How the id of a reviewer begins who is a program."""


def is_simulated(rater: object) -> bool:
    """Return whether the id of a reviewer is that of a program."""
    return isinstance(rater, str) and rater.startswith(SIMULATED)


# -- The rules of a kind as a part of it: reading gives data, ``validate(data, rules)`` the findings


@dataclass(frozen=True, slots=True)
class Opened:
    """Data that was read."""

    path: Path  # where it lies
    kind: str  # what it is, as the report says
    content: Any  # the data, of a type of its kind
    found: IssueBin = field(default_factory=IssueBin)  # what is wrong with its form


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What data of a kind must satisfy, and what is counted over it."""

    open: Callable[[Path], Opened]  # reads what lies at a path, and notes what is wrong with its form
    # data, bin; the bin takes what breaks a rule. Returns what was looked at -> how many.
    check: Callable[[Any, IssueBin], Mapping[str, int]]
    count: Callable[[Path], Json]  # path -> counts and distributions


def validate(data: Opened, rules: RuleSet) -> ValidationReport:
    """Return every finding about data that was read."""
    checked = rules.check(data.content, data.found)
    report = data.found.report(str(data.path), data.kind, dict(checked))
    return replace(report, stand_ins=tuple(stand_ins_in(data.path)))
