"""What every command shares: output, findings as lines, and the guard that turns errors into exit codes."""

import errno
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast

import typer

from ..errors import ConfigError, ExitCode, FabulaError, UserError
from ..schemas.text import counted, tallied, tallies

if TYPE_CHECKING:
    from ..evaluation.report.formats import Format, Table
    from ..schemas.values import Issue
    from .folders import Misfit

P = ParamSpec("P")
FORMS = ("text", "json", "csv", "markdown", "latex")
"""The forms of ``--format``."""
PLACES, VALUES = 3, 10
"""So many places of a finding that repeats are named, and so many different findings of one rule."""
Place = TypeVar("Place", bound=Path | None)


def emit(value: object) -> None:
    """Print a value as one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2) + "\n")


def say(*lines: str) -> None:
    """Print lines for people on standard output."""
    for line in lines:
        sys.stdout.write(line + "\n")


class Bill(NamedTuple):
    """What a run has used of models."""

    calls: int = 0  # answered
    unpriced: int = 0  # of these, those whose price is not known
    cost: float = 0.0  # USD of the others

    def usd(self) -> str:
        """Return the cost for people."""
        return "price not known" if self.unpriced and not self.cost else f"{self.cost:.4f} USD"


def model_bill(run: Path) -> Bill:
    """Return what a run has used of models so far."""
    from ..engine.calls import model_uses
    from ..engine.journal_file import NAME

    uses = model_uses(run / NAME) if (run / NAME).exists() else ()
    cost = math.fsum(use.cost for use in uses)
    return Bill(sum(use.calls for use in uses), sum(use.unpriced for use in uses), cost)


def used_since(before: Bill, run: Path) -> str:
    """Return what a command used of models, and its run in all; empty where no model was ever asked."""
    after = model_bill(run)
    own = Bill(after.calls - before.calls, after.unpriced - before.unpriced, after.cost - before.cost)
    calls = f"{tallied(own.calls, 'calls')} of models, {own.usd()}"
    whole = f"{tallied(after.calls, 'calls')}, {after.usd()}"
    return f"this command: {calls}; the run in all: {whole}" if after.calls else ""


def answer(document: object, lines: Iterable[str], *, as_json: bool) -> int:
    """Print a result, as one JSON document for scripts or as lines for people; return the code of success."""
    if as_json:
        emit(document)
    else:
        say(*lines)
    return 0


class Shown(Protocol):
    """A result that can be shown to people and to scripts."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        ...

    def lines(self) -> Iterable[str]:
        """Return it as lines for people."""
        ...


def show(result: Shown, *, as_json: bool) -> None:
    """Print a result on standard output, for scripts or for people."""
    if as_json:
        emit(result.as_json())
    else:
        say(*result.lines())


def chosen_form(form: str | None, *, as_json: bool, forms: Sequence[str] = FORMS) -> str:
    """Return in which of the forms a result is printed; ``--json`` is short for ``--format json``.

    Raises:
        ConfigError: there is no such form, or both options are given and differ.
    """
    if form is not None and form not in forms:
        raise ConfigError("--format", what=f"{form} is none of {', '.join(forms)}", fix="use one of these")
    if as_json and form not in (None, "json"):
        raise ConfigError("--json", what=f"--json and --format {form} are both given", fix="leave one out")
    return "json" if as_json else form or "text"


def show_tables(
    result: Shown, tables: "Callable[[], Iterable[Table] | None]", form: str,
    remarks: Callable[[], Sequence[str]] = tuple,
) -> None:  # fmt: skip
    """Print a result in a form of :func:`chosen_form`; ``remarks`` makes what must stand beside its tables.

    Raises:
        ConfigError: it has no tables, and the form is made of tables.
    """
    if form in ("text", "json"):
        show(result, as_json=form == "json")
        return
    from ..evaluation.report.formats import written

    made = tables()
    if made is None:
        raise ConfigError("--format", what=f"there are no tables to print as {form}", fix="use text or json")
    sys.stdout.write(written(made, cast("Format", form), remarks()))


class Findings(Protocol):
    """The report of a check."""

    @property
    def issues(self) -> tuple["Issue", ...]:
        """The findings."""
        ...

    @property
    def cause(self) -> UserError | None:
        """What most of them follow from, where that is known."""
        ...

    @property
    def beside_cause(self) -> tuple["Issue", ...]:
        """Those that do not follow from it."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        ...

    def summary(self) -> str:
        """Return counts for people."""
        ...


def show_findings(report: Findings, *, as_json: bool, strict: bool = False, everything: bool = False) -> int:
    """Print findings; return the exit code: 1 for an error, and for a warning too where strict.

    For people those that repeat are told once, unless everything is asked for; JSON always holds them all.
    """
    if as_json:
        emit(report.as_json())
    else:
        if report.cause is not None:
            say(f"error: {report.cause}")
        told = report.issues if everything else report.beside_cause
        say(*finding_lines(told, everything=everything))
        if rest := len(report.issues) - len(told):
            say(f"{counted(rest, 'more finding')} because of this; --all prints them")
        say(report.summary())
    return int(any(strict or issue.level == "error" for issue in report.issues))


def finding_lines(issues: Iterable["Issue"], *, everything: bool) -> Iterator[str]:
    """Yield findings as lines, in their order.

    Args:
        issues: the findings.
        everything: print each by itself; otherwise those of one rule with one message are told once, those
            with one cure say it once, and after the first few messages of a rule the rest is counted.
    """
    rules: dict[tuple[str, ...], dict[str, list[Issue]]] = {}
    for number, issue in enumerate(issues):
        alone = (str(number),) if everything else ()
        messages = rules.setdefault((issue.level, issue.code, issue.cure, *alone), {})
        messages.setdefault(issue.message, []).append(issue)
    shown: dict[str, int] = {}
    unshown: dict[str, int] = {}
    for (level, code, cure, *_), messages in rules.items():
        room = len(messages) if everything else max(0, VALUES - shown.get(code, 0))
        shown[code] = shown.get(code, 0) + len(messages)
        for number, (message, group) in enumerate(messages.items()):
            if number >= room:
                unshown[code] = unshown.get(code, 0) + len(group)
            elif len(group) == 1:
                yield f"{level}: {group[0].line}"
            else:
                yield f"{level}: [{code}] {message}, in {tallied(len(group), 'places')}:"
                yield from (f"  {issue.spot}" for issue in group[:PLACES])
                if len(group) > PLACES:
                    yield f"  ... and {tallied(len(group) - PLACES, 'more places')}; --all prints them"
        if room:
            yield f"  fix: {cure}"
    for code, rest in unshown.items():
        yield f"... and {rest} more of [{code}]; --all prints them"


def released(given: Place) -> Place:
    """Return the folder of a release: the one given, a version on a Hub, or the set of a benchmark by name.

    A version is fetched into the cache first; a benchmark must have been got before.
    """
    from ..releases.hub.client import looks_like_reference

    if given is not None and given.name == str(given) and not given.exists():
        from ..kinds.benchmarks.getting import named_set

        if (judged_by := named_set(str(given))) is not None:
            return cast("Place", judged_by)
    if given is None or not looks_like_reference(str(given)):
        return given
    from ..releases.hub.fetch import release_folder

    return cast("Place", release_folder(given, warn))


def log_to_stderr(level: int) -> None:
    """Write what the package logs from a level on to standard error; from ERROR on, no progress is told."""
    log = logging.getLogger("fabula")
    log.setLevel(level)
    if not any(isinstance(handler, _ToStderr) for handler in log.handlers):
        handler = _ToStderr()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
        log.addHandler(handler)


class _ToStderr(logging.Handler):
    """Writes to what standard error is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(self.format(record))


def warn(*lines: str) -> None:
    """Print lines for people on standard error."""
    for line in lines:
        sys.stderr.write(line + "\n")


def guarded(command: Callable[P, int | None], name: str = "") -> Callable[P, None]:
    """Turn what a command returns or raises into its exit code.

    Errors that the user can fix are printed without a traceback, with what a folder is where the command
    takes none such. Anything unforeseen is our bug: it keeps its traceback and exits with 70. ``name`` is
    what the command is called after ``fabula``, such as ``release pack``.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from .folders import misfits, paths_in, refuse_misfits

        as_json = bool(kwargs.get("as_json")) or kwargs.get("form") == "json"
        try:
            refuse_misfits(name, kwargs)
            code = command(*args, **kwargs) or ExitCode.OK
            if code == ExitCode.FINDINGS:
                warn(*(f"note: {misfit.text}" for misfit in misfits(name, kwargs)))
            sys.stdout.flush()
        except FabulaError as error:
            given = [path for value in kwargs.values() for path in paths_in(value)]
            text, code = _with_folders(list(misfits(name, kwargs)), given, error)
            report_error(error, text, code, as_json=as_json)
        except KeyboardInterrupt:
            warn("interrupted")
            code = ExitCode.INTERRUPTED
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - the command line's top
            code = _unforeseen(error, as_json=as_json)
        raise typer.Exit(int(code))

    return run


def _unforeseen(error: Exception, *, as_json: bool) -> ExitCode:
    """Report what no command foresaw: our bug, with its traceback, unless the output itself is full."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        warn("error: standard output: no space left\n  fix: write the output to another place")
        return ExitCode.USAGE
    import traceback

    traceback.print_exception(error)
    warn("This is a bug in fabula. Please report it with the traceback above.")
    if as_json:
        report_error(error, str(error), ExitCode.BUG, as_json=True)
    return ExitCode.BUG


def _with_folders(
    misfits: "Sequence[Misfit]", given: Sequence[Path], error: FabulaError
) -> tuple[str, ExitCode]:
    """Return what is said of an error, and its code: with what a path is, where the command takes none such.

    A path of another kind is what went wrong, whatever the command stumbled over. So is a path at which
    nothing is, where the error is about it or about a part that it lacks.
    """
    if not isinstance(error, UserError):
        return str(error), error.exit_code
    code = error.exit_code
    if code in (ExitCode.FINDINGS, ExitCode.MISSING) and (misfits or _lacks(error, given)):
        code = ExitCode.USAGE
    if any(misfit.alone for misfit in misfits) or (misfits and error.exit_code == ExitCode.MISSING):
        return "\n".join(misfit.text for misfit in misfits), code
    says_so = "not there" in str(error) or "nothing there" in str(error)
    notes = (misfit.text for misfit in misfits if misfit.kind != "missing" or not says_so)
    return "\n  note: ".join([str(error), *notes]), code


def _lacks(error: UserError, given: Sequence[Path]) -> bool:
    """Return whether an error is that at a given path is nothing, or a folder in place of a file."""
    where = re.sub(r"^--\S+ ", "", error.where) + "/"
    named = next((path for path in given if where.startswith((f"{path}/", f"{path.absolute()}/"))), None)
    wrong = re.search(r"nothing there|Not a directory|\ba folder$", error.found)
    return named is not None and (wrong is not None or not os.path.lexists(named))


def report_error(error: Exception, text: str, code: ExitCode, *, as_json: bool) -> None:
    """Tell an error: to scripts as JSON on standard output, to people on standard error."""
    if as_json:
        document: dict[str, Any] = {"type": type(error).__name__, "message": text, "exit_code": int(code)}
        emit({"error": document})
    else:
        warn(f"error: {text}")


def wrote(out: Path, sha256: str, counts: Mapping[str, int], *, as_json: bool) -> int:
    """Say what official files were written."""
    line = f"{out}: {tallies(counts)}"
    return answer({"out": str(out), "sha256": sha256, **counts}, [line], as_json=as_json)


def asked_for(out: Path, file: Path, counts: Mapping[str, int], more: str, *, as_json: bool) -> int:
    """Say what requests for generators were written."""
    cut = f", {tallied(counts['cut'], 'prompts')} cut" if counts["cut"] else ""
    line = f"{file}: {tallied(counts['requests'], 'requests')}, {more}{cut}"
    return answer({"out": str(out), **counts}, [line], as_json=as_json)
