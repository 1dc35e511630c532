"""Official episodes, as a user types it: imported, validated, counted, shown, packed, exported."""

import csv
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
    assert "2 episodes, 3 scenes, 7 shots, 9 entities, 1 split file" in done.stdout
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
    rows = list(csv.DictReader(fabula_command("stats", run, "--format", "csv").stdout.splitlines()))
    scenes = [row for row in rows if row["table"] == "table_6" and row["row"].split(",")[0] == "scenes"]
    assert [row["value"] for row in scenes] == ["2", "1", "3", "1,136 (1,146 in 3.1)"]
    assert "\\toprule" in fabula_command("stats", run, "--format", "latex").stdout


# The commands of episodes: build, status, show, validate.

pytest.importorskip("av")
