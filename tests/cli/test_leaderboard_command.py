"""A leaderboard of the sample benchmark by the real commands, with a submission that gives a story away."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.releases.loading import load
from fabula.studies.pictures import PLANS
from fabula.testing.drawn_outputs import draw_method
from fabula.testing.drawn_service import study_service
from fabula.testing.model_server import ModelServer

from .conftest import invoke

METHODS = {"faithful": ("transition-aware", "faithful"), "forgets": ("transition-aware", "storyboard")}


def fabula(*arguments: object, code: int = 0) -> str:
    done = invoke(*arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert done.exit_code == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def evaluations(sample_release: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Storyboards of two methods, judged by the toy judge behind a real server."""
    base = tmp_path_factory.mktemp("evaluations")
    records = [record for record in load(sample_release).records if record.split != "train"]
    runs = {}
    with ModelServer(study_service) as server:
        for name, (plan, renderer) in METHODS.items():
            drawn = draw_method(base, records, next(each for each in PLANS if each.name == plan), renderer)
            drawn.rename(base / name)
            runs[name] = base / "runs" / name
            fabula(
                "evaluate", "katha", "--release", sample_release, "--outputs", base / name, "--out",
                runs[name],
                "--split", "public_test", "--split", "validation", "--judge", f"{server.url}#drawn",
                "--questions-only", "--workers", 0, "--created-at", "2026-01-01T00:00:00Z",
            )  # fmt: skip
    return runs


@pytest.mark.slow
def test_leaderboard_when_one_of_three_gives_a_story_away_ranks_two_and_shows_why(
    sample_release: Path, evaluations: dict[str, Path], tmp_path: Path
) -> None:
    board = tmp_path / "board"
    text = fabula(
        "leaderboard", "init", board, "--release", sample_release, "--like", evaluations["faithful"],
        "--resamples", 500, "--published", "vistorybench-lite",
    )  # fmt: skip
    assert "ranked by STG" in text
    assert "6 units judged, 30 pictures or videos, 129 calls of 1 judge" in text
    for number, (name, run) in enumerate(evaluations.items(), 1):
        fabula(
            "leaderboard", "submit", run, "--leaderboard", board, "--name", name, "--model", "drawn",
            "--prompt-rewriting", "none", "--date", f"2026-01-0{number}",
        )  # fmt: skip
    hidden = sample_release.with_name(f"{sample_release.name}-hidden")
    story = json.loads((hidden / "annotations.jsonl").read_text("utf-8").splitlines()[0])
    told = board / "submissions" / "ours"
    shutil.copytree(board / "submissions" / "forgets", told)
    document = json.loads((told / "submission.json").read_bytes())
    document |= {"name": "ours", "links": [f"https://example.org/{story['story_id']}"]}
    (told / "submission.json").write_text(json.dumps(document), "utf-8")
    with (told / "frames.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"unit": "x", "frames": [], "note": story["story_text"]}) + "\n")
    findings = json.loads(fabula("leaderboard", "check", board, "--hidden", hidden, "--json", code=1))
    rows = {row["name"]: row for row in findings["submissions"]}
    assert {name: row["ranked"] for name, row in rows.items()} == {
        "faithful": True, "forgets": True, "ours": False,
    }  # fmt: skip
    found = {(issue["code"], issue["where"].partition(":")[0]) for issue in rows["ours"]["issues"]}
    leaked = {("hidden-leak", "submission.json"), ("hidden-leak", "frames.jsonl")}
    assert found >= {("file-changed", "frames.jsonl"), *leaked}
    assert "numbers are the same" in fabula("leaderboard", "reproduce", board, "forgets")
    fabula("leaderboard", "build", board, "--hidden", hidden)
    index = (board / "site" / "index.html").read_text("utf-8")
    assert "hidden-leak" in index
    assert "something of the hidden test" in index
    assert "Table S4 of the supplement" in index
    for page in (board / "site").rglob("*"):  # what leaked is not shown again
        content = page.read_text("utf-8") if page.is_file() else ""
        assert story["story_id"] not in content, page.name
        assert story["story_text"][:40] not in content, page.name
    data = json.loads((board / "site" / "leaderboard_data.json").read_bytes())
    assert {name: (rank["low"], rank["high"]) for name, rank in data["ranks"].items()} == {
        "faithful": (1, 1), "forgets": (2, 2),
    }  # fmt: skip
    page = (board / "site" / "methods" / "forgets.html").read_text("utf-8")
    assert page.count("<img ") > 0
    assert "undeclared" in page


@pytest.mark.slow
def test_score_hidden_when_a_generator_was_evaluated_writes_scores_and_no_replies(
    sample_release: Path, evaluations: dict[str, Path], tmp_path: Path
) -> None:
    hidden = sample_release.with_name(f"{sample_release.name}-hidden")
    board, private = tmp_path / "board", tmp_path / "private"
    (record,) = load(hidden).records
    with ModelServer(study_service) as server:
        for name in ("model-x", "model-y"):
            drawn = draw_method(tmp_path / name, [record], PLANS[0])
            fabula(
                "evaluate", "katha", "--release", hidden, "--outputs", drawn, "--out", private / name,
                "--judge", f"{server.url}#drawn", "--workers", 0, "--created-at", "2026-01-01T00:00:00Z",
            )  # fmt: skip
    like = private / "model-x"
    fabula("leaderboard", "init", board, "--release", hidden, "--like", like, "--hidden", "--board", "secret")
    fabula(
        "leaderboard", "init", board, "--release", sample_release, "--like", evaluations["forgets"],
        "--resamples", 0,
    )  # fmt: skip
    assert list((board / "releases").iterdir()) == [board / "releases" / sample_release.name]
    public = next(path.name for path in (board / "releases").iterdir())
    for name in ("model-x", "model-y"):
        submit = ("leaderboard", "submit", evaluations["forgets"], "--leaderboard", board)
        fabula(*submit, "--name", name, "--generator-command", "python generate.py {plans} {outputs}")
        score = ("leaderboard", "score-hidden", board, name, private / name, "--board")
        fabula(*score, public, "--release", hidden, code=2)
        fabula(*score, "secret", "--release", hidden)
    fabula(
        "leaderboard", "score-hidden", board, "model-x", evaluations["forgets"], "--board", "secret",
        "--release", hidden, code=1,
    )  # fmt: skip
    text = (board / "hidden" / "model-x.json").read_text("utf-8")
    row = json.loads(text)
    assert row["scores"]["text"]["value"] == 1.0
    assert row["coverage"] == 1.0
    assert record.story_id not in text
    assert record.questions[0].gold_answer not in text
    fabula("leaderboard", "build", board, "--hidden", hidden)
    index = (board / "site" / "index.html").read_text("utf-8")
    assert "hidden test" in index
    assert index.count("run by the maintainer") == 2
    assert record.story_id not in index
