"""``fabula import katha`` and ``fabula export katha``: what they print, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.testing.official_packages import write_package

STORY = ("--field", "source_text=story")


def run(*args: Any) -> Result:
    return CliRunner().invoke(app, [str(one) for one in args])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "package")


def test_package_when_imported_and_exported_says_what_became_of_it(package: Path, tmp_path: Path) -> None:
    done = run("import", "katha", package, "--out", tmp_path / "in", *STORY)
    assert done.exit_code == 0, done.output
    assert "version 1.2.0; 6 stories, 30 scenes" in done.output
    assert "only in official/" not in done.output, "the renamed field is held"
    assert "1 hidden-test story stays among the others" in done.output
    done = run("export", "katha", tmp_path / "in", "--out", tmp_path / "out", "--json")
    assert json.loads(done.output)["restored"] is True
    for path in package.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_json_when_asked_for_is_one_document_also_for_errors(package: Path, tmp_path: Path) -> None:
    done = run("import", "katha", package, "--out", tmp_path / "in", *STORY, "--json")
    assert json.loads(done.output)["counts"]["stories"] == 6
    again = run("import", "katha", package, "--out", tmp_path / "in", *STORY, "--json")
    assert again.exit_code == 2
    assert json.loads(again.output)["error"]["type"] == "TargetError"


@pytest.mark.parametrize(
    ("args", "code", "found"),
    [
        (("nothing",), 1, "found nothing there"),
        (("user/a/b@v1",), 2, "expected OWNER/NAME"),
        (("package", "--field", "story"), 2, "is not written OURS=THEIRS"),
        (("package", "--version", "one"), 2, "--version"),
        (("package", "--language", ""), 2, "--language"),
    ],
)
def test_import_when_something_is_wrong_says_where_and_what_to_do(
    package: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, found: str
) -> None:
    monkeypatch.chdir(package.parent)
    done = run("import", "katha", *args, "--out", "in")
    assert done.exit_code == code
    assert found in done.output
    assert "fix:" in done.output
    assert not (package.parent / "in").exists()
