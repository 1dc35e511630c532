"""``fabula report`` of an evaluation of shot images, as people call it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.simulated_images import Simulated, write_images

Fabula = Callable[..., Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Simulated({"alpha": 0.4, "beta": 0.9}, 3, 2, missing=frozenset({("alpha", "02", 1)}))
    return write_images(tmp_path_factory.mktemp("images") / "run", made)


def test_report_when_of_shot_images_writes_page_data_and_shots(fabula_command: Fabula, run: Path) -> None:
    done = fabula_command("report", run, "--unranked", "beta", "--story", "02", "--method", "alpha", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kind"] == "images" and set(told["headline"]) == {"alpha", "beta"}
    files = {name: Path(path) for name, path in told["files"].items()}
    assert files["page"] == run / "evaluation_report.html"
    assert files["shots as CSV"] == run / "evaluation_report_shots.csv"
    assert all(path.is_file() for path in files.values())
    document = json.loads(files["JSON"].read_bytes())
    assert [one["story_id"] for one in document["shots"]["stories"]] == ["02"]
    assert document["shots"]["leaders"]["rows"][-1]["unranked"] == "excluded from ranking"
    scored = json.loads(fabula_command("score", run, "--json").stdout)
    for method in scored["methods"]:
        for name, score in method["scores"].items():
            assert told["headline"][method["method"]][name]["value"] == score["value"]


def test_report_when_of_shot_images_takes_definitions(
    fabula_command: Fabula, run: Path, tmp_path: Path
) -> None:
    page = tmp_path / "code.html"
    done = fabula_command("report", run, "--define", "cids=code", "--out", page, "--json")
    assert done.returncode == 0, done.stderr
    scored = json.loads(fabula_command("score", run, "--define", "cids=code", "--json").stdout)
    told = json.loads(done.stdout)["headline"]["alpha"]["cids_cross"]["value"]
    assert told == scored["methods"][0]["scores"]["cids_cross"]["value"]
