"""Shot images beside people's ratings, and archives put together, with the real commands."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.table_detector import SETTINGS

Fabula = Callable[..., Any]


@pytest.fixture
def evaluated(fabula_command: Fabula, tmp_path: Path) -> Callable[[str, str], Path]:
    """Evaluate a drawn method into a folder, with some metrics."""
    draw_shot_set(tmp_path / "data", 2)
    draw_shot_outputs(tmp_path / "model-x", 2)
    sets = [part for text in SETTINGS for part in ("--set", text)]

    def run(out: str, metrics: str) -> Path:
        made = fabula_command(
            "evaluate", "images", "--release", tmp_path / "data", "--outputs", tmp_path / "model-x",
            "--metrics", metrics, "--device", "cpu", "--workers", "0", "--out", tmp_path / out, *sets,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        return tmp_path / out

    return run


def test_shots_when_scored_as_tables_correlate_with_ratings(
    fabula_command: Fabula, evaluated: Callable[[str, str], Path], tmp_path: Path
) -> None:
    run = evaluated("run", "clip-score,aesthetic")
    made = fabula_command("score", run, "--tables", tmp_path / "tables")
    assert made.returncode == 0 and "clip_score" in made.stdout
    with (tmp_path / "tables/shots.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["method", "story_id", "shot", "aesthetic", "clip_score"]
    assert len(rows) == 10
    lines = ["method,story_id,shot,liked"]
    lines += [
        f"{row['method']},{row['story_id']},{row['shot']},{float(row['aesthetic']) * 2}" for row in rows
    ]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    found = fabula_command(
        "correlate", tmp_path / "tables/shots.csv", tmp_path / "people.csv", "--on", "method,story_id,shot",
        "--columns", "aesthetic:liked,clip_score:liked", "--json",
    )  # fmt: skip
    told = json.loads(found.stdout)
    assert told["shared"] == 10
    assert told["columns"][0]["correlations"]["pearson"]["value"] == pytest.approx(1.0)
    assert told["columns"][1]["correlations"]["spearman"]["value"] is not None


def test_archives_when_of_images_are_put_together_and_calibrated(
    fabula_command: Fabula, evaluated: Callable[[str, str], Path], tmp_path: Path
) -> None:
    first, second = evaluated("a", "occm"), evaluated("b", "csd")
    merged = fabula_command("import", "archive", first, second, "--out", tmp_path / "both")
    assert merged.returncode == 0 and "stories of methods that were looked at: 2" in merged.stdout
    scores = json.loads(fabula_command("score", tmp_path / "both", "--json").stdout)
    assert {"occm", "csd_self"} <= set(scores["methods"][0]["scores"])
    rated = {"kind": "rating", "rater": "p1", "method": "model-x", "criterion": "style"}
    lines = [rated | {"item": item, "value": value} for item, value in (("01", 4), ("02", 0))]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    told = fabula_command("calibrate", tmp_path / "both", "--human", tmp_path / "people.jsonl")
    assert told.returncode == 0 and "style against scores" in told.stdout
    for more in (("--save",), ("--key", "key.json"), ("--nonresponse", "excluded")):
        refused = fabula_command("calibrate", tmp_path / "both", "--human", tmp_path / "people.jsonl", *more)
        assert (
            refused.returncode == 2
            and f"{more[0]}: only for an evaluation of storyboards or videos" in refused.stderr
        )
