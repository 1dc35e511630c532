"""Official episodes, as a user types it: imported, validated, counted, shown, packed, exported."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.written_episodes import write_episodes

CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def run(fabula_command: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entities")
    data = write_episodes(folder / "data")
    done = fabula_command("import", "entitybench", data, "--out", folder / "run", "--created-at", CREATED)
    assert done.returncode == 0, done.stderr
    assert "2 episodes, 3 scenes, 7 shots, 9 entities, 1 split files" in done.stdout
    return folder / "run"


def test_episodes_when_validated_counted_and_shown(
    fabula_command: Callable, run: Path, tmp_path: Path
) -> None:
    checked = fabula_command("validate", run)
    assert checked.returncode == 0, checked.stdout
    assert "no findings" in checked.stdout
    told = fabula_command("stats", run, "--html", tmp_path / "pages/page.html")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0].split() == ["Table", "3:", "statistics", "across", "tiers", "easy", "hard", "all"]
    gap = next(line for line in lines if line.strip().startswith("mean gap, index"))
    assert gap.split()[-9:] == ["1.56", "±", "0.96", "1.00", "±", "0.00", "1.45", "±", "0.89"]
    assert "<!doctype html>" in (tmp_path / "pages/page.html").read_text("utf-8")
    document = json.loads(fabula_command("stats", run, "--json").stdout)
    assert document["totals"]["slots"] == 20
    assert document["tables"]["table_6"]["rows"]["scenes"]["published"] == {"all": "1,136 (1,146 in 3.1)"}


def test_episodes_when_packed_and_exported(fabula_command: Callable, run: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    packed = fabula_command(
        "release", "pack", run, "--version", "0.1.0", "--license", "CC-BY-4.0", "--language", "en",
        "--out", release,
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    assert fabula_command("validate", release).returncode == 0
    out = fabula_command("export", "entitybench", release, "--out", tmp_path / "official", "--json")
    assert json.loads(out.stdout)["episodes"] == 2
    for path in (run / "data").rglob("*.json"):
        copy = tmp_path / "official" / path.relative_to(run / "data")
        assert copy.read_bytes() == path.read_bytes()
    asked = fabula_command("export", "entities", release, "--header", "all", "--out", tmp_path / "ask")
    assert asked.returncode == 0, asked.stderr
    assert "7 requests, 7 shots" in asked.stdout


def test_episodes_when_something_is_wrong_exit_with_1_and_say_what(
    fabula_command: Callable, tmp_path: Path
) -> None:
    data = write_episodes(tmp_path / "data")
    (data / "scripts/ep_b.json").write_bytes(b'{"scenes": [')
    done = fabula_command("import", "entitybench", data, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "error: scripts/ep_b.json $ [json]" in done.stdout
    assert "1 episodes, 2 scenes" in done.stdout
    checked = fabula_command("validate", data, "--json")
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["counts"] == {"json": 1}
    for command in (("stats", data), ("export", "entitybench", data, "--out", tmp_path / "copy")):
        done = fabula_command(*command)
        assert done.returncode == 1
        assert "left out: scripts/ep_b.json $ [json]" in done.stderr
    none = fabula_command("import", "entitybench", tmp_path / "none", "--out", tmp_path / "other", "--json")
    assert none.returncode == 1
    assert "nothing there" in json.loads(none.stdout)["error"]["message"]


def test_options_of_episodes_when_given_for_something_else_are_refused(
    fabula_command: Callable, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n", "utf-8")
    done = fabula_command("stats", tmp_path / "a.jsonl", "--html", "x")
    assert done.returncode == 2
    assert "error: --html: this option is for episodes" in done.stderr
    done = fabula_command("stats", run, "--split", "none")
    assert done.returncode == 2
    assert "one of ids" in done.stderr
    retried = fabula_command("run", "retry", run)
    assert retried.returncode == 2
    assert "`fabula import entitybench` made" in retried.stderr
