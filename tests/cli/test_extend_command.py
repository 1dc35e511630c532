"""``fabula extend`` and ``fabula edit --withdraw`` through the real command."""

import json
import shutil
from pathlib import Path

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


def test_extend_when_the_story_is_there_under_another_id_shows_both(
    fabula_command, sample_run, write_stories
) -> None:
    done = fabula_command("extend", sample_run, write_stories({"id": "other"}), "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["exit_code"]) == (1, 1)
    assert "other, 100% like kb25k_0001" in error["message"]
    assert "fix: leave it out" in error["message"]
