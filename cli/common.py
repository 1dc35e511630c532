"""What every command shares: the error guard, output, and the options that mean the same everywhere."""

import errno
import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Protocol, TypeVar, cast

import typer

from ..errors import ExitCode, FabulaError, UserError
from .findings import finding_lines

if TYPE_CHECKING:
    from ..schemas.issue import Issue
    from .folders import Misfit

P = ParamSpec("P")
Place = TypeVar("Place", bound=Path | None)

_NAMES: dict[Callable[..., object], str] = {}

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Settings file; fabula.toml here is used if present.")
]
MaxCostOption = Annotated[
    float | None, typer.Option("--max-cost", help="Most USD that the run may cost in all [no limit].")
]
ReuseOption = Annotated[
    list[Path] | None,
    typer.Option("--reuse", help="Use the replies of this run instead of asking again. Repeatable."),
]
SettingsOption = Annotated[
    list[str] | None, typer.Option("--set", help="One setting, as stage.key=value. Repeatable.")
]
WorkersOption = Annotated[int | None, typer.Option("--workers", help="Worker processes [all cores].")]
RetryFailedOption = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Run failed items again; ask once more what got no usable reply, nothing else."
    ),
]
ReplaceSourcesOption = Annotated[
    bool,
    typer.Option("--replace-sources", help="Replace the run's sources by these."),
]
ReplaceOption = Annotated[
    bool,
    typer.Option(
        "--replace", help="Remove earlier replies from the folder that this command does not ask for."
    ),
]
CreatedAtOption = Annotated[
    str | None, typer.Option("--created-at", help="Creation time of the run, RFC 3339.")
]


def example(*lines: str) -> str:
    """Return the epilog that shows a command's examples, one a line."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def emit(value: object) -> None:
    """Print a value as one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2) + "\n")


def say(text: str) -> None:
    """Print a line for people on standard output."""
    sys.stdout.write(text + "\n")


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
        for line in result.lines():
            say(line)


class Findings(Protocol):
    """The report of a check."""

    @property
    def issues(self) -> tuple["Issue", ...]:
        """The findings."""
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
        say_findings(report, everything=everything)
    return int(any(strict or issue.level == "error" for issue in report.issues))


def say_findings(report: Findings, *, everything: bool, owner: str = "") -> None:
    """Print the findings of a report and its summary; see :func:`.findings.finding_lines`."""
    for line in finding_lines(report.issues, everything=everything, owner=owner):
        say(line)
    say(report.summary())


def released(given: Place) -> Place:
    """Return the folder of a release: the one given, or a version on a Hub, fetched into the cache first."""
    if given is None:
        return given
    from ..releases.hub.fetch import release_folder

    return cast("Place", release_folder(given, warn))


def warn(text: str) -> None:
    """Print a line for people on standard error."""
    sys.stderr.write(text + "\n")


def guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """Turn what a command returns or raises into its exit code.

    Errors that the user can fix are printed without a traceback. Anything unforeseen is our bug: it keeps its
    traceback and exits with 70.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            _refuse_misfits(run, kwargs)
            code = command(*args, **kwargs) or ExitCode.OK
            for found in _misfits(run, kwargs) if code == ExitCode.FINDINGS else ():
                warn(f"note: {found.text}")
            sys.stdout.flush()
        except FabulaError as error:
            text, code = _with_folders(run, error, kwargs)
            _report(error, text, code, as_json=as_json)
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
        _report(error, str(error), ExitCode.BUG, as_json=True)
    return ExitCode.BUG


def _with_folders(
    command: Callable[..., None], error: FabulaError, given: Mapping[str, object]
) -> tuple[str, ExitCode]:
    """Return what is said of an error, and its code: with what a path is, where the command takes none such.

    A folder of another kind is what went wrong, whatever the command stumbled over.
    """
    if not isinstance(error, UserError):
        return str(error), error.exit_code
    found = _misfits(command, given)
    code = ExitCode.USAGE if found and error.exit_code == ExitCode.MISSING else error.exit_code
    if any(one.alone for one in found) or code != error.exit_code:
        return "\n".join(one.text for one in found), code
    return "\n  note: ".join([str(error), *(one.text for one in found)]), code


def name_commands(app: typer.Typer) -> None:
    """Note what each command of the program is called after ``fabula``, such as ``release pack``."""
    nouns = [group.typer_instance for group in app.registered_groups if group.typer_instance is not None]
    for noun in (app, *nouns):
        for info in noun.registered_commands:
            if info.callback is not None:
                _NAMES[info.callback] = str(info.name) if noun is app else f"{noun.info.name} {info.name}"


def name_of(command: Callable[..., object]) -> str:
    """Return the name that was noted for a command; empty for a stranger."""
    return _NAMES.get(command, "")


def _refuse_misfits(command: Callable[..., None], given: Mapping[str, object]) -> None:
    from .folders import refuse_misfits

    refuse_misfits(name_of(command), given)


def _misfits(command: Callable[..., None], given: Mapping[str, object]) -> list["Misfit"]:
    from .folders import misfits

    return list(misfits(name_of(command), given))


def _report(error: Exception, text: str, code: ExitCode, *, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {"type": type(error).__name__, "message": text, "exit_code": int(code)}
        emit({"error": document})
    else:
        warn(f"error: {text}")
