"""Running programs of others: what they read and write, and where that is bounded."""

import os
import sys

import pytest

from fabula.models import programs
from fabula.models.programs import ProgramStopped, allowed_environment, run_program


def run(code: str, **options: object) -> programs.Ended:
    words = [sys.executable, "-S", "-c", f"import os, sys\n{code}"]
    return run_program(words, allowed_environment(), **options)  # type: ignore[arg-type]


def test_program_when_it_is_given_something_reads_it_and_its_output_is_kept() -> None:
    ended = run("sys.stdout.write(sys.stdin.read().upper())", given=b"fox" * 50_000, output="kept")
    assert (ended.status, ended.output, ended.complaint) == (0, b"FOX" * 50_000, b"")


def test_program_when_it_does_not_read_what_it_is_given_ends_all_the_same() -> None:
    assert run("sys.exit(3)", given=b"fox" * 500_000).status == 3


def test_program_when_it_complains_much_keeps_the_end_of_it() -> None:
    ended = run("sys.stderr.write('x' * 500_000 + '\\nno memory\\n'); sys.exit(4)")
    assert (ended.status, ended.last_line, len(ended.complaint)) == (4, "no memory", programs.TAIL)


def test_program_when_it_writes_more_than_is_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST_OUTPUT", 1000)
    with pytest.raises(ProgramStopped, match="wrote more than 1,000 bytes"):
        run("while True: sys.stdout.write('x' * 100_000)", output="kept")


def test_variables_when_named_or_set_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "LC_ALL": "C", "MY_KEY": "k", "OTHER": "o", "Path": "p"}
    )
    assert allowed_environment(("MY_KEY",), {"NEW": "n"}) == {
        "PATH": "/bin", "Path": "p", "LC_ALL": "C", "MY_KEY": "k", "NEW": "n",
    }  # fmt: skip
