"""fabula evaluate stories: the budget first, then the judges; exit codes for limits and missing things."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from fabula.engine.calls import answered
from fabula.engine.journal import NAME as JOURNAL
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, read_archive
from fabula.releases.loading import Release
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.endurance import rounds
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_images import Simulated as SimulatedOfReport
from fabula.testing.simulated_images import write_images
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people
from fabula.testing.table_detector import SETTINGS


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return drawn_release(tmp_path / "release")


@pytest.fixture
def boards(tmp_path: Path, release: Release) -> Path:
    return draw_outputs(tmp_path / "drawn", release.records)


@pytest.fixture
def server(release: Release) -> Iterator[ModelServer]:
    with ModelServer(JudgeModel(release.records)) as running:
        yield running


@pytest.fixture
def evaluate(fabula_command, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run the command in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def run(*options: object) -> Any:
        return fabula_command("evaluate", "katha", "--release", release.path, "--workers", 0, *options)

    return run


def test_dry_run_when_there_are_outputs_tells_tokens_and_cost_and_asks_nobody(evaluate, boards, server):
    judge = f"{server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nprices = {{input = 1.0, output = 2.0}}\n')
    done = evaluate("--outputs", boards, "--judge", judge, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["budget"]["total"] == told["plan"]["calls"] == 115
    assert told["plan"]["cost"] > 0
    assert server.count == 0


def test_evaluation_when_run_tells_the_budget_first_and_can_be_repeated_shown_and_retried(
    evaluate, fabula_command, boards: Path, server: ModelServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    options = ("--outputs", boards, "--judge", f"{server.openai_url}#one", "--out", run)
    done = evaluate(*options)
    assert done.returncode == 0, done.stderr
    assert "115 calls of 1 judge: 35 text, 35 image, 35 text+image, 10 contrast" in done.stderr
    assert (
        "drawn: 5 of 5 storyboards valid, 35 questions scanned for leaks, 0 storyboards held back"
        in done.stdout
    )
    assert f"next: fabula score {run}" in done.stdout
    assert len(read_archive(run).judgements) == 115
    before = (run / JUDGEMENTS).read_bytes(), (run / EVALUATION).read_bytes()
    assert evaluate(*options, "--json").returncode == 0
    assert fabula_command("run", "retry", run, "--workers", 0).returncode == 0
    assert server.count == 115
    assert ((run / JUDGEMENTS).read_bytes(), (run / EVALUATION).read_bytes()) == before
    status = fabula_command("run", "status", run)
    assert status.returncode == 0 and "judge_images" in status.stdout
    shown = fabula_command("run", "show", run, "drawn/kb25k_0001")
    assert shown.returncode == 0 and "judge_contrasts" in shown.stdout
    about = ("--run", run, "--story", "drawn/kb25k_0001")
    rendered = fabula_command("prompts", "render", "judge/question_image", *about)
    assert rendered.returncode == 0, rendered.stderr
    assert "Image 5" in rendered.stdout and "[image/jpeg]" in rendered.stdout


def test_export_when_an_evaluation_is_copied_can_be_scored_with_its_release(
    evaluate, fabula_command, boards: Path, server: ModelServer, release: Release, tmp_path: Path
) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    done = evaluate("--outputs", boards, "--judge", f"{server.openai_url}#one", "--out", run)
    assert done.returncode == 0, done.stderr
    exported = fabula_command("export", "archive", run, "--out", copy, "--json")
    assert json.loads(exported.stdout)["judgements"] == 115
    assert str(tmp_path) not in (copy / EVALUATION).read_text()
    assert (copy / JUDGEMENTS).read_bytes() == (run / JUDGEMENTS).read_bytes()
    scored = fabula_command("score", copy, "--release", release.path, "--json", "--resamples", 10)
    assert scored.returncode == 0, scored.stderr
    assert fabula_command("export", "archive", run, "--out", copy).returncode == 2


@pytest.mark.waits
@pytest.mark.endurance
@pytest.mark.parametrize("least", range(40, 40 + rounds(10)))
def test_evaluation_when_killed_goes_on_and_loses_only_what_was_under_way(
    evaluate, starter: Any, boards: Path, server: ModelServer, release: Release, tmp_path: Path, least: int
) -> None:
    judge = f"{server.openai_url}#one"
    Path("fabula.toml").write_text(f'[models."{judge}"]\nconcurrency = 4\n')
    server.latency = lambda asked: 0.05 if asked.number < least + 20 else 3600.0  # it cannot come to its end
    options = ("--outputs", boards, "--judge", judge, "--out", tmp_path / "run")
    command = ("evaluate", "katha", "--release", release.path, *options, "--workers", "0")
    with Path(os.devnull).open("wb") as nowhere:
        process = starter.start(command, stdout=nowhere, stderr=nowhere)
    assert server.wait_for(least, 120)
    process.kill()
    process.wait()
    with pytest.raises(HTTPError):  # there is no such page; what came before it was taken before it
        urlopen(server.url)
    before, kept = server.count, len(list(answered(tmp_path / "run" / JOURNAL)))
    assert least <= before < 115 and 0 < kept <= before
    server.latency = 0.0
    assert evaluate(*options).returncode == 0
    assert len(read_archive(tmp_path / "run").judgements) == 115
    assert server.count == before + 115 - kept  # only what was not on disk is asked again
    asked = Counter(exchange.asked.key for exchange in server.log)
    assert len(asked) == 115 and set(asked.values()) <= {1, 2}


# -- ``fabula report`` as people call it

Fabula = Callable[..., Any]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return write_simulated(tmp_path_factory.mktemp("simulated"), 24, (("alpha", Truth()), ("beta", Truth())))


def test_report_when_asked_for_writes_its_files_and_prints_the_main_numbers(fabula_command, simulated):
    done = fabula_command("report", simulated.run, "--release", simulated.release, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["headline"]) == {"alpha", "beta"}
    files = {name: Path(path) for name, path in told["files"].items()}
    assert files["page"] == simulated.run / "evaluation_report.html"
    assert all(path.is_file() for path in files.values())
    before = files["page"].read_bytes()
    again = fabula_command("report", simulated.run, "--release", simulated.release)
    assert again.returncode == 0 and "STG" in again.stdout and "Simulation" in again.stdout
    assert files["page"].read_bytes() == before


def test_report_when_something_is_wrong_says_what_and_writes_nothing(fabula_command, simulated, tmp_path):
    for options, told in (
        ((simulated.run,), "--release"),
        ((tmp_path, "--release", simulated.release), "evaluation.json"),
        ((simulated.run, "--release", simulated.release, "--outputs", tmp_path / "no"), "no"),
        ((simulated.run, "--release", simulated.release, "--out", tmp_path / "page.pdf"), ".html"),
        ((simulated.run, "--release", simulated.release, "--gap", "index"), "only for an evaluation of"),
    ):
        done = fabula_command("report", *options)
        assert done.returncode in (1, 2), done.stderr
        assert told in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# -- Shot images beside people's ratings, and archives put together, with the real commands


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


def test_shots_when_scored_as_tables_correlate_with_ratings(fabula_command, evaluated, tmp_path):
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


def test_archives_when_of_images_are_put_together_and_calibrated(fabula_command, evaluated, tmp_path):
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
            and f"{more[0]}: only for an evaluation of storyboards (stories) or videos (events)"
            in refused.stderr
        )


# -- ``fabula calibrate`` as people call it, and what report and score show of it. All people are simulated


@pytest.fixture
def judged(tmp_path: Path) -> Simulated:
    return write_simulated(tmp_path, 24, (("alpha", Truth()), ("beta", Truth())))


@pytest.fixture
def human(tmp_path: Path, judged: Simulated) -> Path:
    who = SimulatedPeople(pairs={("alpha", "beta"): ["Q1", "Q15"]})
    return write_simulated_people(tmp_path / "human.jsonl", judged.items.records, who)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_calibration_when_kept_is_shown_by_report_and_score(fabula_command, judged, human):
    asked = (judged.run, "--release", judged.release)
    before = fabula_command("score", *asked, "--format", "csv", "--resamples", "20")
    assert before.returncode == 0 and "ratings" not in {row["table"] for row in rows_of(before.stdout)}
    options = ("--human", human, "--resamples", "50")
    made = fabula_command("calibrate", *asked, *options, "--save")
    lines = len(human.read_text().splitlines())
    assert made.returncode == 0, made.stderr
    warning = f"{lines:,} of {lines:,} lines come from simulated people"
    assert made.stdout.startswith(f"warning: {warning}")
    kept = json.loads((judged.run / "calibration.json").read_text())
    assert (kept["people"]["simulated"], kept["people"]["protocols"]) == (lines, {"a" * 64: lines})
    told = fabula_command("report", *asked)
    assert told.returncode == 0 and warning in told.stdout and "Human Score" in told.stdout
    page = (judged.run / "evaluation_report.html").read_text("utf-8")
    assert 'id="figure-people-judges"' in page
    scored = fabula_command("score", *asked, "--format", "csv", "--resamples", "20")
    assert scored.returncode == 0 and warning in scored.stderr
    found = {row["table"] for row in rows_of(scored.stdout)}
    assert {"headline", "ratings", "preference_tests", "people_dimensions"} <= found
    assert scored.stdout.startswith(before.stdout.partition("\nremarks,")[0])


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_calibration_when_written_in_a_form_has_every_table(fabula_command, judged, human, form):
    made = fabula_command(
        "calibrate", judged.run, "--release", judged.release, "--human", human, "--resamples", "0",
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


def test_lines_when_used_elsewhere_are_refused_with_what_to_do(fabula_command, judged, tmp_path):
    story = judged.items.records[0].story_id
    row = {"kind": "review", "rater": "p1", "item": story, "criterion": "scene", "answer": "ok"}
    (tmp_path / "reviews.jsonl").write_text(json.dumps(row))
    done = fabula_command(
        "calibrate",
        judged.run,
        "--release",
        judged.release,
        "--human",
        tmp_path / "reviews.jsonl",
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "1 line of kind review cannot be compared with an evaluation" in done.stderr
    assert "fabula release pack --reviews" in done.stderr


# -- ``fabula report`` of an evaluation of shot images, as people call it


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = SimulatedOfReport({"alpha": 0.4, "beta": 0.9}, 3, 2, missing=frozenset({("alpha", "02", 1)}))
    return write_images(tmp_path_factory.mktemp("images") / "run", made)


def test_report_when_of_shot_images_writes_page_data_and_shots(fabula_command: Fabula, run: Path) -> None:
    shown = ("--unranked", "beta", "--story", "02", "--method", "alpha", "--least-coverage", "0.5")
    done = fabula_command("report", run, *shown, "--json")
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


def test_report_when_of_shot_images_takes_definitions(fabula_command, run, tmp_path):
    page = tmp_path / "code.html"
    done = fabula_command("report", run, "--define", "cids=code", "--out", page, "--json")
    assert done.returncode == 0, done.stderr
    scored = json.loads(fabula_command("score", run, "--define", "cids=code", "--json").stdout)
    told = json.loads(done.stdout)["headline"]["alpha"]["cids_cross"]["value"]
    assert told == scored["methods"][0]["scores"]["cids_cross"]["value"]
