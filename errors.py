"""Every error that Fabula raises on purpose, and the exit code each one means.

    FabulaError
    ├── UserError              the user can fix it: says where, what is wrong, what to do
    │   ├── ConfigError        a setting or an option                                     exit 2
    │   ├── InputError         one or more invalid inputs, all of them listed             exit 1 or 2
    │   ├── TargetError        an output place that cannot be used                        exit 2
    │   │   └── PlaceUnavailable  shared files that cannot be reached now                 exit 2
    │   ├── RunError           a run folder that cannot be opened or continued            exit 2
    │   │   └── RunBusy        another process holds the run                              exit 2
    │   ├── MissingRequirement an extra, a library, weights or a key is not there         exit 3
    │   ├── ModelUnavailable   a language model cannot be used: it is down, refuses us    exit 3
    │   └── HubUnavailable     a Hub cannot be used: it is down, refuses us, is none      exit 3
    ├── BudgetStop             the run stopped at --max-cost and can be resumed           exit 4
    ├── BelowThreshold         the run finished, but too few items succeeded              exit 5
    └── Interrupted            stopped by the user; the run can be resumed                exit 130

An InputError exits with 2 where a path that was given is not there or of another kind (``cli/common.py``).
Anything else that reaches the command line is our bug: exit 70, with its traceback.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of the ``fabula`` command."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    MISSING = 3
    BUDGET = 4
    BELOW_THRESHOLD = 5
    BUG = 70
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done, and nothing is wrong",
    ExitCode.FINDINGS: "what was read has errors; all of them are told",
    ExitCode.USAGE: "an option, a place for output or the state of a run does not allow it, or a path is not "
    "there or of another kind than the command takes",
    ExitCode.MISSING: "an extra, weights, a key or a service is missing",
    ExitCode.BUDGET: "stopped at the cost limit; the same command with a higher one goes on",
    ExitCode.BELOW_THRESHOLD: "finished, but too few items succeeded",
    ExitCode.BUG: "an error of ours, with its traceback",
    ExitCode.INTERRUPTED: "you stopped it; what was finished is kept",
}


class FabulaError(Exception):
    """Base of all errors that Fabula raises on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUG


class UserError(FabulaError):
    """A problem that the user can fix.

    What is wrong is said in two parts where a value is not what it should be ("expected an object, found a
    list"), and as one plain sentence everywhere else.

    Args:
        where: the file, line, option, record or JSON path concerned.
        what: what happened, as a sentence of its own; in place of ``expected`` and ``found``.
        expected: what should have been there.
        found: what was there instead.
        fix: what to do about it, as an instruction.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, where: str, *, fix: str, what: str = "", expected: str = "", found: str = "") -> None:
        self.where, self.expected, self.found, self.fix = where, expected, found or what, fix
        self.what = what or f"expected {expected}, found {found}"
        super().__init__(where, self.what, fix)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  fix: {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders; keyword-only arguments do not survive the default pickling.
        return (_rebuild, (type(self), self.where, self.what, self.expected, self.found, self.fix))


def mismatch(where: str, expected: str, found: str, fix: str) -> UserError:
    """Return the error of a value that is not what it should be."""
    return UserError(where, expected=expected, found=found, fix=fix)


def _rebuild(kind: type[UserError], where: str, what: str, expected: str, found: str, fix: str) -> UserError:
    return kind(where, what=what, expected=expected, found=found, fix=fix)


class ConfigError(UserError):
    """A setting or an option has a wrong value."""


class TargetError(UserError):
    """An output place exists already, is a file, is full or cannot be written."""


class PlaceUnavailable(TargetError):
    """Files that machines share cannot be reached now; an item that needed them is tried again."""


class RunError(UserError):
    """A run folder cannot be opened or continued."""


class RunBusy(RunError):
    """Another process holds the run folder."""


class MissingRequirement(UserError):
    """Something that must be installed, downloaded or set is not there."""

    exit_code = ExitCode.MISSING


class ModelUnavailable(UserError):
    """A language model cannot be used at all: it is down, there is no such model, or it refuses the key."""

    exit_code = ExitCode.MISSING


class HubUnavailable(UserError):
    """A Hub cannot be used: it is down, it refuses us, or what answers is none."""

    exit_code = ExitCode.MISSING


class InputError(UserError):
    """One or more inputs are invalid; every problem is listed.

    Args:
        problems: the problems, in input order. At least one.
        shown: how many of them the message spells out; those that differ in their place only are one.
    """

    exit_code = ExitCode.FINDINGS
    PLACES: ClassVar[int] = 20
    """So many more places of a problem that repeats are named."""

    def __init__(self, problems: Sequence[UserError], *, shown: int = 20) -> None:
        if not problems:
            raise ValueError("InputError needs at least one problem")
        self.problems = tuple(problems)
        self._shown = shown
        first = self.problems[0]
        super().__init__(
            first.where, what=first.what, expected=first.expected, found=first.found, fix=first.fix
        )

    @classmethod
    def one(
        cls, where: str, *, fix: str, what: str = "", expected: str = "", found: str = ""
    ) -> "InputError":
        """Return the error of one problem; as :class:`UserError`."""
        return cls([UserError(where, fix=fix, what=what, expected=expected, found=found)])

    def __str__(self) -> str:
        groups: dict[tuple[str, str], list[UserError]] = {}
        for problem in self.problems:
            groups.setdefault((problem.what, problem.fix), []).append(problem)
        shown = list(groups.values())[: self._shown]
        lines = [line for group in shown for line in _as_one(group)]
        rest = len(self.problems) - sum(map(len, shown))
        if rest > 0:
            lines.append(f"... and {rest} more")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (InputError, (self.problems,))


@contextmanager
def needing(missing: UserError) -> Iterator[None]:
    """Raise an error that says what to install where an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise missing from error


def _as_one(group: Sequence[UserError]) -> list[str]:
    """Return the lines of problems that differ in their place only: the first, and where else it is so."""
    places = [problem.where for problem in group[1 : 1 + InputError.PLACES]]
    more = len(group) - 1 - len(places)
    same = f"  the same at {', '.join(places)}" + (f" and {more} more places" if more else "")
    return [str(group[0]), *([same] if places else [])]


class BudgetStop(FabulaError):
    """The run stopped cleanly at its cost limit and can be resumed."""

    exit_code = ExitCode.BUDGET


class BelowThreshold(FabulaError):
    """The run finished, but the share of items that succeeded is below the threshold."""

    exit_code = ExitCode.BELOW_THRESHOLD


class Interrupted(FabulaError):
    """The user stopped the run; what was finished is kept."""

    exit_code = ExitCode.INTERRUPTED
