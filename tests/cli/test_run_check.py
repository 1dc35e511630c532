"""fabula run check: a sound journal, a damaged one, and one that was salvaged."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path


def test_run_check_when_a_result_is_damaged_exits_with_1_and_salvages(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    done = fabula_command("run", "check", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the journal is sound" in done.stdout
    with closing(sqlite3.connect(run / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE results SET blob = x'00' WHERE stage = 'draft_scenes'")
    done = fabula_command("run", "check", run, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["count"] == 24
    done = fabula_command("run", "show", run, "kb25k_0001")
    assert done.returncode == 2
    assert "fabula run check" in done.stderr
    done = fabula_command("run", "check", run, "--salvage")
    assert (done.returncode, done.stderr) == (0, "")
    assert "journal.sqlite.damaged" in done.stdout
    assert fabula_command("run", "check", run).returncode == 0
    before = (run / "records.jsonl").read_bytes()
    assert fabula_command("run", "retry", run).returncode == 0
    assert (run / "records.jsonl").read_bytes() == before


def test_run_check_when_there_is_no_journal_says_what_to_give(fabula_command, tmp_path: Path) -> None:
    for option in ((), ("--salvage",)):
        done = fabula_command("run", "check", tmp_path, *option)
        assert done.returncode == 2
        assert "no journal.sqlite" in done.stderr
