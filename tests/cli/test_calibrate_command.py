"""``fabula calibrate`` as people call it, and what report and score show of it. All people are simulated."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people

Fabula = Callable[..., Any]


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    return write_simulated(tmp_path, 24, (("alpha", Truth()), ("beta", Truth())))


@pytest.fixture
def human(tmp_path: Path, simulated: Simulated) -> Path:
    who = SimulatedPeople(pairs={("alpha", "beta"): ["Q1", "Q15"]})
    return write_simulated_people(tmp_path / "human.jsonl", simulated.items.records, who)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_calibration_when_kept_is_shown_by_report_and_score(
    fabula_command: Fabula, simulated: Simulated, human: Path
) -> None:
    asked = (simulated.run, "--release", simulated.release)
    before = fabula_command("score", *asked, "--format", "csv", "--resamples", "20")
    assert before.returncode == 0 and "ratings" not in {row["table"] for row in rows_of(before.stdout)}
    options = ("--human", human, "--resamples", "50")
    made = fabula_command("calibrate", *asked, *options, "--save")
    lines = len(human.read_text().splitlines())
    assert made.returncode == 0, made.stderr
    warning = f"{lines:,} of {lines:,} lines come from simulated people"
    assert made.stdout.startswith(f"warning: {warning}")
    kept = json.loads((simulated.run / "calibration.json").read_text())
    assert (kept["people"]["simulated"], kept["people"]["protocols"]) == (lines, {"a" * 64: lines})
    told = fabula_command("report", *asked)
    assert told.returncode == 0 and warning in told.stdout and "Human Score" in told.stdout
    page = (simulated.run / "evaluation_report.html").read_text("utf-8")
    assert 'id="figure-people-judges"' in page
    scored = fabula_command("score", *asked, "--format", "csv", "--resamples", "20")
    assert scored.returncode == 0 and warning in scored.stderr
    found = {row["table"] for row in rows_of(scored.stdout)}
    assert {"headline", "ratings", "preference_tests", "people_dimensions"} <= found
    assert scored.stdout.startswith(before.stdout)


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_calibration_when_written_in_a_form_has_every_table(
    fabula_command: Fabula, simulated: Simulated, human: Path, form: str
) -> None:
    made = fabula_command(
        "calibrate", simulated.run, "--release", simulated.release, "--human", human, "--resamples", "0",
        "--format", form,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    for text in ("HMR@1", "visual", "Q15", "causality", "experts"):
        assert text in made.stdout or text.capitalize() in made.stdout, text
    if form == "csv":
        rows = rows_of(made.stdout)
        assert {(row["table"], row["row"]) for row in rows} >= {
            ("people_asked", "Of these simulated"),
            ("preference_tests", "alpha over beta · Q15 · overall preference"),
        }  # fmt: skip
    else:
        assert "simulated people" in made.stdout and "Bonferroni" in made.stdout


def test_lines_when_used_elsewhere_are_refused_with_what_to_do(
    fabula_command: Fabula, simulated: Simulated, tmp_path: Path
) -> None:
    story = simulated.items.records[0].story_id
    row = {"kind": "review", "rater": "p1", "item": story, "criterion": "scene", "answer": "ok"}
    (tmp_path / "reviews.jsonl").write_text(json.dumps(row))
    done = fabula_command(
        "calibrate", simulated.run, "--release", simulated.release, "--human", tmp_path / "reviews.jsonl"
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "1 line of kind review cannot be compared with an evaluation" in done.stderr
    assert "fabula release pack --reviews" in done.stderr
