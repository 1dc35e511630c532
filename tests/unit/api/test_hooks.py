"""Hooks of a real package, as entry points name them: what they are told, and what they cannot break."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import fabula
from fabula.engine.progress import Event

PACKAGE = '''
import json
from pathlib import Path

class Log:
    """Writes every event as a line of JSON beside the run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.parent / f"{folder.name}.log"

    def __call__(self, event) -> None:
        line = {"event": event.kind, "stage": event.stage, **event.data}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\\n")

class Broken:
    def __init__(self, folder: Path) -> None:
        pass

    def __call__(self, event) -> None:
        raise SystemExit("a hook that gives up")
'''


class Kept:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two hooks on the path, one of which raises at once."""
    site = tmp_path / "site"
    about = site / "house-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "house_hooks.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    named = (
        "[fabula.hooks]\nlog = house_hooks:Log\na-broken = house_hooks:Broken\ngone = house_hooks:Nothing\n"
    )
    (about / "entry_points.txt").write_text(f"[fabula.hooks]\n{named}")
    monkeypatch.syspath_prepend(site)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_hooks_when_a_run_and_its_scores_are_made_hear_all_of_it_and_break_nothing(
    at_desk: Any, hooks: None
) -> None:
    kept, again = Kept(), {"judges": at_desk.judge, "stories": "kb25k_0001"}
    evaluation = fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/hooked", progress=kept, **again)
    warned = [event.data["message"] for event in kept.events if event.kind == "warning"]
    assert [text.split(" failed")[0] for text in warned] == ["the hook gone", "the hook a-broken"]
    assert {"item-done", "call"} & {event.kind for event in kept.events} == set()

    heard = lines(Path("runs/hooked.log"))
    kinds = [line["event"] for line in heard]
    assert kinds[0] == "run" or kinds[0] == "plan"
    assert kinds[-1] == "run-done"
    calls = [line for line in heard if line["event"] == "call"]
    replies = evaluation.to_pandas()
    assert len(calls) > 0
    assert sum(call["output_tokens"] for call in calls) >= replies["output_tokens"].sum() > 0
    assert {call["outcome"] for call in calls} == {"answered"}
    done = [line for line in heard if line["event"] == "item-done" and line["stage"] == "judge_images"]
    assert [line["status"] for line in done] == ["made"]

    with pytest.warns(UserWarning, match="the hook (gone|a-broken) failed"):
        scores = evaluation.score(resamples=0)
    told = lines(Path("runs/hooked.log"))[-1]
    assert told["event"] == "score"
    assert len(told["rows"]) == len(scores.to_pandas())


def test_mlflow_log_when_a_folder_is_named_has_runs_that_mlflow_reads(
    at_desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABULA_MLFLOW", str(tmp_path / "mlruns"))
    given = {"judges": at_desk.judge, "stories": "kb25k_0001", "progress": False}
    evaluation = fabula.evaluate("dist/mine-0.1.0", "boards/model-x", "runs/logged", **given)
    evaluation.score(resamples=0)

    (run,) = (tmp_path / "mlruns/0").glob("*/meta.yaml")
    about = yaml.safe_load(run.read_text())
    assert (about["run_name"], about["status"], about["run_id"]) == ("logged", 3, run.parent.name)
    assert (run.parent / "tags/fabula.pipeline").read_text() == "evaluate-katha"
    judges = [path for path in (run.parent / "params").iterdir() if path.name.endswith("judge_images.judges")]
    assert at_desk.judge in judges[0].read_text()
    _, calls, _ = (run.parent / "metrics/judge_images/calls").read_text().splitlines()[-1].split()
    assert float(calls) > 0
    scores = list((run.parent / "metrics/score/headline/model-x").iterdir())
    assert {"text", "image", "gap"} <= {path.name for path in scores}

    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient((tmp_path / "mlruns").as_uri())
    read = client.get_run(run.parent.name)
    assert read.info.status == "FINISHED"
    assert read.data.metrics["items/made"] >= 1
    assert read.data.tags["mlflow.runName"] == "logged"
