"""Outputs of one method, checked: what evaluations of every kind know of them, and how findings are told."""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...errors import InputError, UserError
from ...media.images import LIMITS, MediaProblem, PictureLimits, open_picture, read_bytes
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.plain_files import by_name, composed
from ...schemas.text import counted
from ...schemas.values import Issue, Level
from ...validators.report import IssueBin, ValidationReport

NOTHING_FOUND = "nothing-found"
"""Code of the finding that says what lies in a folder in which no output was found."""
UNREADABLE = "unreadable-picture"
"""Code of an output with a file that cannot be read, or that holds no picture."""
UNTOLD = frozenset({
    NOTHING_FOUND, "stray-file", "unnumbered-file", "unknown-shot", "unknown-story",
    "unknown-episode", "ambiguous-title",
})  # fmt: skip
"""Codes of findings about names of which nobody can tell what they are of; a map may say it."""
_MOST_THREADS = 4
_SHOWN = 20
"""How many findings of a method are told that stop an evaluation."""
# What a picture may be and yet be worth a look: an animation, a single colour, another format than its name.
_ODD = ("misnamed", "animated", "blank")
SMALL = 64
"""Pictures whose longer side has fewer pixels are worth a look."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file that can be used."""

    number: int  # of the picture, from 1; of a video 1
    file: Path  # a picture, a video, or the clip whose first frame is the picture
    sha256: str = ""  # hash of the file; empty where it was not read whole
    # index of the scene that the picture shows; None for a bridge frame, and where pictures and scenes do not
    # correspond one to one
    scene: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a method made of one story or prompt, with one seed."""

    unit: str  # the story's id, or the prompt's file name in the suite
    seed: int | None  # of the generation; None where there is one per unit
    files: tuple[OutputFile, ...] = ()  # those that can be used, by number
    codes: tuple[str, ...] = ()  # of what makes it invalid, sorted; none where it can be judged


@dataclass(frozen=True, slots=True)
class Outputs(ValidationReport):
    """The outputs of one method, checked; findings and counts as in every validation."""

    method: str  # the method's name, from ``outputs.json`` or else the folder's
    # the seeds expected of every unit; ``(None,)`` where there is one output per unit
    seeds: tuple[int | None, ...]
    # one of each unit and seed that was requested, whether it is there or not
    outputs: tuple[Output, ...] = field(repr=False)

    @property
    def valid(self) -> tuple[Output, ...]:
        """The outputs that can be judged."""
        return tuple(output for output in self.outputs if not output.codes)

    @property
    def invalid(self) -> tuple[Output, ...]:
        """The outputs that cannot be judged."""
        return tuple(output for output in self.outputs if output.codes)

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and is valid."""
        return {"method": self.method}

    def details(self) -> dict[str, Json]:
        """Return what else the report says as JSON."""
        return {}

    def told(self) -> str:
        """Return the accounting in words."""
        return ""

    def about(self) -> dict[str, Json]:
        """Return the method, the accounting and what is invalid."""
        return {**ValidationReport.about(self), **self.accounting(), **self.details()}

    def summary(self) -> str:
        """Return the counts as lines for people."""
        return f"{ValidationReport.summary(self)}\n{self.method}: {self.told()}"


class Asked(Protocol):
    """One unit and seed that is asked for, and how it is checked."""

    def check(self) -> tuple[Output, list[Issue]]:
        """Return the output and the findings about it."""


Checked = TypeVar("Checked", bound=Outputs)


def look_at(asked: Sequence[Asked], findings: IssueBin) -> tuple[Output, ...]:
    """Return the outputs that are asked for, checked by a few threads; findings are added in order."""
    outputs = []
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for output, issues in threads.map(lambda one: one.check(), asked):
            findings.extend(issues)
            outputs.append(output)
    return tuple(outputs)


def report_of(
    kind: type[Checked], folder: Path, findings: IssueBin, checked: dict[str, int], **about: object
) -> Checked:
    """Return the report on a method's outputs.

    ``checked``: what was looked at -> how many.
    """
    base = findings.report(str(folder), "outputs", checked)
    shared = {part.name: getattr(base, part.name) for part in fields(base)}
    own: dict[str, Any] = {"method": composed(folder.resolve().name), **about}
    return kind(**shared, **own)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was seen of a file."""

    sha256: str | None  # hash of the file; None where it cannot be used
    issues: list[Issue]  # the findings about it
    size: tuple[int, int] | None = None  # width and height of a picture that was decoded, in pixels


def look_at_picture(
    file: Path, where: str, limits: PictureLimits = LIMITS, *, decode: bool = True, cure: str = ""
) -> Looked:
    """Return what is seen of a file that should hold a picture.

    ``limits``: what a picture may be at most. ``cure``: what to do where it cannot be read; if not given,
    what the decoder advises.
    """
    try:
        data = read_bytes(file, limits)
        picture = open_picture(data, limits, name=file.name) if decode else None
    except MediaProblem as problem:
        return Looked(None, [unreadable(where, problem, UNREADABLE, cure)])
    if picture is None:
        return Looked(sha256_bytes(data), [])
    odd = [note for note in picture.notes if note.startswith(_ODD)]
    issues = [finding(where, "odd-picture", note, "have a look at it", "warning") for note in odd]
    return Looked(sha256_bytes(data), issues, (picture.width, picture.height))


def unreadable(where: str, problem: MediaProblem, code: str, cure: str = "") -> Issue:
    """Return the finding about a file that cannot be decoded."""
    message = f"[{problem.code}] expected {problem.expected}, found {problem.found}"
    return finding(where, code, message, cure or problem.fix)


def finding(where: str, code: str, message: str, cure: str, level: Level = "error") -> Issue:
    """Return a finding about a place in the outputs."""
    return Issue(where, "$", code, message, cure, level)


def repeated_names(folder: Path, prefix: str = "") -> Iterator[Issue]:
    """Yield a finding for each entry of a folder whose name is that of another in normal form C."""
    for first, second in by_name(sorted(entry.name for entry in folder.iterdir()))[1]:
        message = f"the same name as {first!a}, written otherwise in Unicode ({second!a})"
        yield finding(f"{prefix}{second}", "repeated-name", message, "keep one of the two")


def listed_numbers(numbers: Sequence[int]) -> str:
    """Return the first ten numbers, and how many more there are."""
    listed = ", ".join(map(str, numbers[:10]))
    return listed if len(numbers) <= 10 else f"{listed} and {len(numbers) - 10} more"


def listed_names(names: Sequence[str], shown: int = 5) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {counted(len(names) - shown, 'other')}" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def require_shots(reports: Sequence[Outputs], mismatched: Collection[str], what: str) -> None:
    """Check that there are shots to look at, and that each is judged by its own text."""
    problems = [
        UserError(
            f"{report.method}/{issue.where}",
            what=f"a {what} cannot be matched with a shot: [{issue.code}] {issue.message}",
            fix=issue.cure,
        )
        for report in reports
        for issue in [issue for issue in report.issues if issue.code in mismatched][:_SHOWN]
    ]
    if problems:
        raise InputError(problems)
    if not any(output.files for report in reports for output in report.outputs):
        raise nothing_to_judge("shot", reports)


def nothing_to_judge(noun: str, reports: Sequence[ValidationReport]) -> InputError:
    """Return the error for outputs of which none can be judged: what was seen in each folder, and the cure.

    It stops an evaluation before the first call.
    """
    return InputError([_nothing_in(noun, report) for report in reports])


def _nothing_in(noun: str, report: ValidationReport) -> UserError:
    for issue in report.issues:
        if issue.code == NOTHING_FOUND:
            return UserError(report.path, what=f"no judge was asked: {issue.message}", fix=issue.cure)
    errors = [issue for issue in report.issues if issue.level == "error"] or list(report.issues)
    codes = Counter(issue.code for issue in errors)
    told = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    first = f"; first: {errors[0].where}: {errors[0].message}" if errors else ""
    return UserError(
        report.path,
        what=f"no judge was asked: no {noun} can be judged ({told or 'none is there'}{first})",
        fix=f"{errors[0].cure if errors else 'generate them'}; fabula outputs check lists every finding",
    )


def doubtful_pictures(where: str, looked: Mapping[str, Looked]) -> Iterator[Issue]:
    """Yield what is worth a look in the pictures of a storyboard: too small, of unlike sizes, or the same."""
    sizes = {name: seen.size for name, seen in looked.items() if seen.size is not None}
    for name, (width, height) in sizes.items():
        if max(width, height) < SMALL:
            message = f"only {width} x {height} pixels: judges can see little in it"
            cure = f"generate it with {SMALL} pixels or more"
            yield finding(f"{where}/{name}", "small-picture", message, cure, "warning")
    if len(counts := Counter(sizes.values())) > 1:
        told = ", ".join(f"{count} of {width} x {height}" for (width, height), count in counts.most_common())
        message = f"pictures of unlike sizes: {told}"
        yield finding(where, "unlike-sizes", message, "generate them in one size, or leave it", "warning")
    same: dict[str | None, list[str]] = {}
    for name, seen in looked.items():
        same.setdefault(seen.sha256, []).append(name)
    for sha256, names in same.items():
        if sha256 is not None and len(names) > 1:
            message = f"the same picture: {', '.join(names)}"
            cure = "have a look: a file may have been copied in place of another"
            yield finding(where, "same-picture", message, cure, "warning")
