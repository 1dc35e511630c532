"""``fabula import katha`` and ``fabula export katha``: what they print, and what they refuse."""

import json
import re
import shlex
import shutil
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


# ``fabula extend`` and ``fabula edit --withdraw`` through the real command.

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"


def test_extend_when_a_story_is_new_says_what_came_in(fabula_command, sample_run, tmp_path: Path) -> None:
    run = shutil.copytree(sample_run, tmp_path / "run")
    row = json.loads((SAMPLES / "later_stories.jsonl").read_text("utf-8").splitlines()[0])
    later = tmp_path / "new.jsonl"
    later.write_text(json.dumps(row) + "\n", "utf-8")
    done = fabula_command("extend", run, later, "--workers", 0, "--created-at", "2026-06-01T00:00:00Z")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 story added to 24, which stay as they were\n")
    assert "fabula release pack" in done.stdout
    again = fabula_command("extend", run, later, "--json")
    assert json.loads(again.stdout)["added"] == []


def test_extend_when_the_sources_of_the_run_moved_takes_their_new_place(
    fabula_command, write_stories, tmp_path: Path
) -> None:
    stories, later = write_stories({}), tmp_path / "new.jsonl"
    later.write_text((SAMPLES / "later_stories.jsonl").read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    run, moved = tmp_path / "run", tmp_path / "moved"
    assert fabula_command("build", "katha", stories, "--out", run, "--workers", 0).returncode == 0
    before = (run / "run.json").read_bytes()
    moved.mkdir()
    stories.rename(moved / "renamed.jsonl")
    refused = fabula_command("extend", run, later, "--workers", 0)
    assert refused.returncode == 1 and "say where to with --sources PLACE" in refused.stderr
    assert (run / "run.json").read_bytes() == before
    done = fabula_command("extend", run, later, "--workers", 0, "--sources", moved / "renamed.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 story added to 1")


# The corrections that the documentation shows, run as they are printed, end in a release.

ROOT = Path(fabula.__file__).parent
DOCUMENTED = ROOT / "builders" / "katha" / "samples"
PAGE = ROOT / "docs" / "versions.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the suite runs against an installed wheel, which has no docs")
def test_versions_page_when_its_commands_are_run_as_printed_packs_the_next_version(
    fabula_command, sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sample_run, tmp_path / "runs/mine")
    shutil.copy(DOCUMENTED / "later_stories.jsonl", tmp_path / "new_stories.jsonl")
    packed = fabula_command(
        "release", "pack", sample_run, "--version", "0.1.0", "--out", tmp_path / "dist/mine-0.1.0",
        "--name", "mine", "--title", "Mine", "--creator", "Ana", "--license", "CC-BY-4.0",
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    block = re.search(r"```\n(fabula extend.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    commands = [shlex.split(line, comments=True)[1:] for line in block[1].splitlines()]
    assert [command[0] for command in commands] == ["extend", "edit", "edit", "run", "release"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = fabula_command(*command)
        assert done.returncode == 0, (command, done.stderr + done.stdout)
    released = json.loads((tmp_path / "dist/mine-0.2.0/release.json").read_text("utf-8"))
    assert released["withdrawn"]
    assert fabula_command("release", "verify", tmp_path / "dist/mine-0.2.0").returncode == 0


def test_edit_when_a_gold_answer_changes_says_what_it_noted_and_what_breaks(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    signed = ("--who", "ana", "--why", "the text says so")
    done = fabula_command(
        "edit", run, "kb25k_0007", "$.questions[0].gold_answer", "--new", '"a net"', *signed
    )
    assert done.returncode == 0, done.stderr
    assert "also saved, because it follows from it: $.questions[0].accepted_answers = [" in done.stdout
    assert "is still accepted" in done.stdout
    broken = fabula_command(
        "edit", run, "kb25k_0007", "$.questions[0].gold_answer", "--new", '"yes"', *signed
    )
    assert broken.returncode == 0
    assert "error: kb25k_0007 $.questions[0].accepted_answers[0] [answer-empty]" in broken.stdout
    assert "correct it further" in broken.stdout
    as_json = fabula_command("edit", run, "kb25k_0007", "$.title", "--new", '"Once"', *signed, "--json")
    report = json.loads(as_json.stdout)
    assert (report["path"], report["also"], report["notes"]) == ("$.title", [], [])
    assert [issue["code"] for issue in report["issues"]] == ["answer-empty"]
