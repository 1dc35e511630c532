"""Errors: their wording, their exit codes, and that they survive a process border."""

import inspect
import pickle
import sys
from pathlib import Path

import pytest

from fabula import errors
from fabula.errors import ConfigError, ExitCode, InputError, MissingRequirement, UserError
from fabula.pages.grid import Grid, latex_of, latex_text
from fabula.testing.latex import latex_problems

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


# Tables as LaTeX: plain pdflatex sets them, whatever signs their texts hold.


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("text\u00a0✓ images\u00a0✗", r"text~$\surd$ images~$\times$"),
        ("Zoë's naïve Łódź, ß", r"Zo\"{e}'s na\"{i}ve \L{}\'{o}d\'{z}, \ss{}"),
        ("p < 0.001 | 4 × 3", r"p $<$ 0.001 $|$ 4 $\times$ 3"),
        ("文 \u202e", "[U+6587] [U+202E]"),
        (r"a\b{c}_^~&%$#", r"a\textbackslash{}b\{c\}\_\textasciicircum{}\textasciitilde{}\&\%\$\#"),
    ],
)
def test_text_when_it_has_signs_of_others_is_ascii_that_says_the_same(text: str, latex: str) -> None:
    assert latex_text(text) == latex


@pytest.mark.slow
def test_text_when_it_is_any_character_is_ascii_that_plain_latex_sets() -> None:
    every = [chr(code) for code in range(0x20, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert list(latex_problems("\n".join(f"x{latex_text(sign)}" for sign in every if sign != "\n"))) == []


def test_table_when_a_row_begins_with_a_bracket_is_not_read_as_an_option() -> None:
    text = latex_of([Grid("é", "Title ✓", ("[a]", "b"), (("*", 0.5), ("[x]", None)), "a|b")])
    assert list(latex_problems(text)) == []
    assert "{}[x] & -- \\\\" in text
    assert r"\label{tab:-}" in text
    assert text.startswith("% Needs \\usepackage{booktabs}.")
