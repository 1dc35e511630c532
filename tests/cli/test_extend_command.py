"""``fabula extend`` and ``fabula edit --withdraw`` through the real command."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

import fabula

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
