"""``fabula import katha`` and ``fabula export katha``: what they print, and what they refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import fabula
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


# From stories to a release with the licence that its makers chose, as README and fabula.toml have it.

PACK = ("release", "pack", "run", "--version", "0.1.0", "--allow-drafts")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Give commands in a folder that ``fabula init`` made."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, args)
        return done.exit_code, done.output

    assert run("init")[0] == 0
    return run


def built(command: Callable[..., tuple[int, str]], *more: str) -> None:
    code, output = command("build", "katha", "stories.jsonl", "--out", "run", "--workers", "0", *more)
    assert code == 0, output


def licence_of(folder: str) -> str:
    (record,) = fabula.load(folder).records
    notice = (Path(folder) / "LICENSE").read_text("utf-8")
    assert f"SPDX-License-Identifier: {record.provenance.dataset_license}\n" in notice
    return str(record.provenance.dataset_license)


def stated(run: str) -> str | None:
    line = json.loads((Path(run) / "records.jsonl").read_bytes())
    return line["payload"]["record"]["provenance"]["dataset_license"]


def test_release_when_init_wrote_the_settings_has_the_licence_that_they_name(command) -> None:
    built(command)
    assert stated("run") == "CC-BY-4.0" and command(*PACK, "--out", "new")[0] == 0
    assert licence_of("new") == "CC-BY-4.0"


def test_release_when_nobody_gave_a_licence_is_refused_until_somebody_does(command) -> None:
    settings = Path("fabula.toml").read_text("utf-8")
    Path("fabula.toml").unlink()
    built(command)
    assert stated("run") is None and command("validate", "run")[0] == 0
    code, output = command(*PACK, "--out", "new")
    assert code == 2 and "CC-BY-4.0" in output and "CC0-1.0" in output and "--license" in output
    Path("fabula.toml").write_text(settings.replace("CC-BY-4.0", "CC0-1.0"), "utf-8")
    assert command(*PACK, "--out", "by-settings")[0] == 0
    assert command(*PACK, "--license", "mit", "--out", "by-option")[0] == 0
    assert (licence_of("by-settings"), licence_of("by-option")) == ("CC0-1.0", "MIT")
