"""A leaderboard of the sample benchmark by the real commands, with a cheat that is caught."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.generation.plans import PLANS
from fabula.releases.loading import load
from fabula.testing.drawn_outputs import draw_method
from fabula.testing.drawn_service import study_service
from fabula.testing.model_server import ModelServer

METHODS = {"faithful": ("transition-aware", "faithful"), "forgets": ("transition-aware", "storyboard")}


def fabula(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
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


def cheat(run: Path, out: Path) -> Path:
    """Write the replies to a method's outputs as those to another's."""
    out.mkdir()
    lines = (run / "judgements.jsonl").read_text("utf-8").replace('"method":"forgets"', '"method":"ours"')
    (out / "judgements.jsonl").write_text(lines, "utf-8")
    manifest = json.loads((run / "evaluation.json").read_bytes())
    about = manifest["subject"]["methods"].pop("forgets")
    manifest["subject"]["methods"]["ours"] = {**about, "outputs_sha256": "0" * 64}
    (out / "evaluation.json").write_text(json.dumps(manifest), "utf-8")
    return out


def test_leaderboard_when_one_of_three_cheats_ranks_two_and_shows_why(
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
    copy = cheat(evaluations["forgets"], tmp_path / "cheat")
    fabula("leaderboard", "submit", copy, "--leaderboard", board, "--name", "ours", "--date", "2026-01-09")
    hidden = sample_release.with_name(f"{sample_release.name}-hidden")
    story = json.loads((hidden / "annotations.jsonl").read_text("utf-8").splitlines()[0])
    words = "-".join(story["story_text"].split()[:9])
    store = board / "submissions" / "ours" / "store"
    store.mkdir()
    for name in (story["story_id"], words):
        (store / f"{name}.jpg").write_bytes(b"x")
    findings = json.loads(fabula("leaderboard", "check", board, "--hidden", hidden, "--json", code=1))
    rows = {row["name"]: row for row in findings["submissions"]}
    assert {name: row["ranked"] for name, row in rows.items()} == {
        "faithful": True, "forgets": True, "ours": False,
    }  # fmt: skip
    found = {(issue["code"], issue["where"]) for issue in rows["ours"]["issues"]}
    assert {
        ("copied-answers", "judgements.jsonl"),
        ("hidden-leak", f"store/{story['story_id']}.jpg"),
        ("hidden-leak", f"store/{words}.jpg"),
    } <= found
    # Without the hidden folder, as in the repository's workflow, the id still gives it away.
    assert f"names '{story['story_id']}'" in fabula("leaderboard", "check", board, code=1)
    assert "numbers are the same" in fabula("leaderboard", "reproduce", board, "forgets")
    fabula("leaderboard", "build", board, "--hidden", hidden)
    index = (board / "site" / "index.html").read_text("utf-8")
    assert "copied-answers" in index
    assert "Table S4 of the supplement" in index
    for page in (board / "site").rglob("*"):  # what leaked is not shown again
        content = page.read_text("utf-8") if page.is_file() else ""
        assert story["story_id"] not in content, page.name
        assert words not in content, page.name
    data = json.loads((board / "site" / "leaderboard_data.json").read_bytes())
    assert {name: (rank["low"], rank["high"]) for name, rank in data["ranks"].items()} == {
        "faithful": (1, 1), "forgets": (2, 2),
    }  # fmt: skip
    page = (board / "site" / "methods" / "forgets.html").read_text("utf-8")
    assert page.count("<img ") > 0
    assert "undeclared" in page


GENERATOR = """
import json, os, sys
from pathlib import Path
from fabula.models.generators.drawn.drawing import draw_scene
from fabula.models.generators.drawn.phrases import scene_of
from fabula.models.generators.drawn.png import encode_png
assert "MY_API_KEY" not in os.environ and "DATABASE_URL" not in os.environ
print("this goes to standard error")
plans, outputs = map(Path, sys.argv[1:])
for line in plans.read_text("utf-8").splitlines():
    plan = json.loads(line)
    for scene in plan["scenes"] if plan["changed_scene"] is None else ():
        file = outputs / scene["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_png(draw_scene(scene_of(scene["prompt"]), (256, 256)).canvas.image))
"""


def test_score_hidden_when_the_command_may_run_writes_scores_and_no_replies(
    sample_release: Path, evaluations: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "a secret of the maintainer")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@host/db")
    hidden = sample_release.with_name(f"{sample_release.name}-hidden")
    board, work, script = tmp_path / "board", tmp_path / "private" / "model-x", tmp_path / "generate.py"
    script.write_text(GENERATOR, "utf-8")
    (record,) = load(hidden).records
    with ModelServer(study_service) as server:
        judge = ("--judge", f"{server.url}#drawn")
        drawn = draw_method(tmp_path, [record], PLANS[0])
        common = ("--workers", 0, "--created-at", "2026-01-01T00:00:00Z", *judge)
        like = tmp_path / "like"
        fabula("evaluate", "katha", "--release", hidden, "--outputs", drawn, "--out", like, *common)
        fabula(
            "leaderboard", "init", board, "--release", hidden, "--like", like, "--hidden", "--board", "secret"
        )
        fabula(
            "leaderboard", "init", board, "--release", sample_release, "--like", evaluations["forgets"],
            "--resamples", 0,
        )  # fmt: skip
        assert list((board / "releases").iterdir()) == [board / "releases" / sample_release.name]
        command = f"{sys.executable} {script} {{plans}} {{outputs}}"
        fabula(
            "leaderboard", "submit", evaluations["forgets"], "--leaderboard", board, "--name", "model-x",
            "--generator-command", command,
        )  # fmt: skip
        score = ("leaderboard", "score-hidden", board, "model-x", "--board", "secret", "--release", hidden)
        shown = fabula(*score, "--work", work)
        assert f"not run: {sys.executable} {script} {work}" in shown
        fabula(*score, "--work", work, "--run-command", code=2)  # without a judge nothing is run
        assert not work.exists()
        fabula(*score, "--work", work, *judge, "--run-command")
    text = (board / "hidden" / "model-x.json").read_text("utf-8")
    row = json.loads(text)
    assert row["scores"]["text"]["value"] == 1.0
    assert row["coverage"] == 1.0
    assert record.story_id not in text
    assert record.questions[0].gold_answer not in text
    fabula("leaderboard", "build", board, "--hidden", hidden)
    index = (board / "site" / "index.html").read_text("utf-8")
    assert "hidden test" in index
    assert "run by the maintainer" in index
    assert record.story_id not in index


def test_submit_when_it_is_no_evaluation_says_what_is_missing(tmp_path: Path, sample_release: Path) -> None:
    done = CliRunner().invoke(
        app, ["leaderboard", "submit", str(tmp_path), "--leaderboard", str(tmp_path), "--name", "x"]
    )
    assert done.exit_code == 1
    assert "leaderboard.json" in done.stderr


def test_cost_when_asked_of_the_sample_counts_its_splits(sample_release: Path) -> None:
    document: Any = json.loads(fabula("leaderboard", "cost", sample_release, "--judges", 3, "--json"))
    rows = {row["setting"]: row for row in document["settings"]}
    assert rows["public_test"]["stories"] == 2
    assert rows["whole release"]["calls"] == 9 * rows["whole release"]["questions"]
