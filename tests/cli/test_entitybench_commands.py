"""Official episodes, as a user types it: imported, validated, counted, shown, packed, exported."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.drawn_episode import write_episode
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


def test_episodes_when_a_name_is_corrected_as_edit_says_every_place_that_no_longer_fits_is_named(
    fabula_command: Callable, run: Path, tmp_path: Path
) -> None:
    refused = fabula_command("edit", run, "ep_b", "$.title", "--new", '"x"', "--who", "a", "--why", "b")
    assert refused.returncode == 2
    tree, script = tmp_path / "set", tmp_path / "set" / "scripts" / "ep_b.json"
    for step in ("export entitybench RUN --out SET", "SET/scripts/EPISODE.json", "validate SET",
                 "import entitybench SET --out NEW"):  # fmt: skip
        assert step in refused.stderr
    assert fabula_command("export", "entitybench", run, "--out", tree).returncode == 0
    document = json.loads(script.read_text("utf-8"))
    document["entity_descriptions"]["Character 1"]["name"] = "Zoe"
    script.write_text(json.dumps(document), "utf-8")
    found = json.loads(fabula_command("validate", tree, "--json").stdout)["issues"]
    assert {"$._name_map['Character 1']", "$.entity_schedule['1:1'].characters[0]"} <= {
        one["path"] for one in found
    }
    script.write_text(script.read_text("utf-8").replace("Ben", "Zoe"), "utf-8")
    assert fabula_command("validate", tree).returncode == 0
    assert fabula_command("import", "entitybench", tree, "--out", tmp_path / "new").returncode == 0


# The commands of episodes: build, status, show, validate.

Fabula = Callable[..., subprocess.CompletedProcess[str]]
pytest.importorskip("av")
SETS = ("--set", "detect_shots.method=histogram", "--set", "filter_shots.copies=false", "--workers", "0")


def test_build_when_options_are_wrong_says_so(fabula_command: Fabula, tmp_path: Path) -> None:
    video, detections = write_episode(tmp_path, ["A1"])
    out = ("--out", str(tmp_path / "run"))
    done = fabula_command("build", "entities", str(tmp_path / "none"), "--detections", str(detections), *out)
    assert done.returncode == 1 and "none" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(tmp_path / "no.jsonl"), *out)
    assert done.returncode == 2 and "--detections: there is no file" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(detections), *SETS)
    assert done.returncode == 2 and "--out" in done.stderr
    done = fabula_command("build", "entities", str(video), "--detections", str(detections), *SETS, *out)
    assert done.returncode == 5
    assert "1 kept shots in a row, and the smallest tier takes 10" in done.stdout
    assert "Window selection (shots): 1 -> 0, 0%" in done.stdout
    for command in ("validate", "stats"):
        done = fabula_command(command, str(tmp_path / "run"))
        assert done.returncode == 2
        assert "this run has made no episodes" in done.stderr
