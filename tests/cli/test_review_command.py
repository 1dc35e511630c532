"""fabula review where its extra is not installed, as a user types it."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.errors import ExitCode
from fabula.people.review.journal import VoteJournal
from fabula.testing.review_studies import toy_study


@pytest.mark.parametrize("command", [["invite", "--count", "3"], ["serve"]])
def test_review_when_its_extra_is_not_installed_says_so_and_invites_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    study = toy_study(tmp_path / "study").folder
    with VoteJournal(study) as journal:
        before = list(journal.events())
    for library in ("itsdangerous", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, library, None)
    result = CliRunner().invoke(app, ["review", command[0], str(study), *command[1:]])
    assert result.exit_code == ExitCode.MISSING, result.output
    assert 'pip install "fabula[review]"' in result.output
    assert "Traceback" not in result.output
    with VoteJournal(study) as journal:
        assert list(journal.events()) == before
