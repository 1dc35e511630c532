"""Errors: their wording, their exit codes, and that they survive a process border."""

import inspect
import pickle
from pathlib import Path

import pytest

from fabula import errors
from fabula.errors import ConfigError, ExitCode, InputError, MissingRequirement, UserError

GOLDEN = Path(__file__).parents[1] / "golden" / "errors.txt"


def problem(line: int) -> UserError:
    return UserError(f"a.jsonl:{line}", expected="an object", found="a list", fix="wrap it in braces")


def test_wording_when_errors_are_shown_is_the_pinned_one() -> None:
    shown = [
        problem(3),
        MissingRequirement("--planner openai:x", expected="the key", found="none", fix="set OPENAI_API_KEY"),
        InputError([problem(1), problem(2)]),
        InputError([problem(n) for n in range(25)], shown=2),
    ]
    assert "\n---\n".join(map(str, shown)) + "\n" == GOLDEN.read_text("utf-8")


def test_exit_codes_when_read_from_classes_are_the_documented_ones() -> None:
    codes = {
        name: kind.exit_code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.FabulaError)
    }
    assert codes == {
        "FabulaError": ExitCode.BUG,
        "UserError": ExitCode.USAGE,
        "ConfigError": ExitCode.USAGE,
        "InputError": ExitCode.FINDINGS,
        "TargetError": ExitCode.USAGE,
        "PlaceUnavailable": ExitCode.USAGE,
        "RunError": ExitCode.USAGE,
        "RunBusy": ExitCode.USAGE,
        "MissingRequirement": ExitCode.MISSING,
        "ModelUnavailable": ExitCode.MISSING,
        "HubUnavailable": ExitCode.MISSING,
        "BudgetStop": ExitCode.BUDGET,
        "BelowThreshold": ExitCode.BELOW_THRESHOLD,
        "Interrupted": ExitCode.INTERRUPTED,
    }


@pytest.mark.parametrize("error", [problem(1), InputError([problem(1), problem(2)])])
def test_error_when_pickled_keeps_its_text(error: UserError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_input_error_when_empty_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        InputError([])


def test_user_error_when_said_as_a_sentence_reads_as_it_and_survives_pickling() -> None:
    error = ConfigError("--out", what="the folder holds another run", fix="name another folder")
    assert str(error) == "--out: the folder holds another run\n  fix: name another folder"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.what, again.found) == (str(error), error.what, error.what)
