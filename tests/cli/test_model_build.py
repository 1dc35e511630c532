"""fabula build katha with a model: what it will cost, what it did cost, where it stops, how it goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.slow

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
PRICED = "prices = {input = 1.0, output = 2.0}\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(KathaModel()) as server:
        yield server


@pytest.fixture
def build(fabula_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Build from the first two sample stories, with the working folder elsewhere than the run."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def run(*options: object) -> Any:
        return fabula_command("build", "katha", STORIES, "--limit", 2, "--workers", 0, *options)

    return run


def spec_of(server: ModelServer, name: str = "local") -> str:
    return f"{server.openai_url}#{name}"


def test_dry_run_when_no_folder_is_named_asks_nothing_and_writes_nothing(build, server: ModelServer) -> None:
    done = build("--planner", "model", "--model", spec_of(server), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "draft_scenes" in done.stdout and "price of" in done.stdout
    plan = json.loads(build("--model", spec_of(server), "--dry-run", "--json").stdout)
    repairs = [stage["calls"] for stage in plan["stages"] if stage["apart"] == "repairs"]
    assert repairs == [2], "1.2 of each story, told apart from its nine"
    assert plan["calls"] == 2 * 9 + 2 and plan["cost"] is None
    assert not server.log and not list(Path.cwd().iterdir())


def test_dry_run_when_asked_for_a_sample_drafts_so_many_and_goes_by_them(
    build, server: ModelServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = build("--model", spec_of(server), "--dry-run", "--sample", 1, "--out", run, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["stages"] and all(stage["calibrated"] for stage in plan["stages"])
    sampled = len(server.log)
    assert sampled > 0 and plan["calls"] > 0
    assert build("--model", spec_of(server), "--out", run).returncode == 0
    keys = [exchange.asked.key for exchange in server.log]
    assert len(keys) > sampled and len(set(keys)) == len(keys)


def test_build_when_a_model_is_named_lets_it_draft_and_asks_nothing_twice(
    build, server: ModelServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = build("--model", spec_of(server), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "calls" in done.stderr, "what it will cost is said before"
    text = (run / "records.jsonl").read_text("utf-8")
    assert "compatible:local via katha/draft_scenes@" in text
    assert "127.0.0.1" not in text, "where a server is stays out of the records"
    asked = len(server.log)
    records = (run / "records.jsonl").read_bytes()
    assert build("--model", spec_of(server), "--out", run).returncode == 0
    assert len(server.log) == asked
    assert (run / "records.jsonl").read_bytes() == records


def test_build_when_rules_are_wanted_and_a_model_is_named_refuses(build, server: ModelServer) -> None:
    done = build("--planner", "rules", "--model", spec_of(server), "--out", "run")
    assert done.returncode == 2
    assert "--planner rules" in done.stderr


def test_build_when_the_limit_is_reached_stops_and_goes_on_with_a_higher_one(
    build, fabula_command, server: ModelServer, tmp_path: Path
) -> None:
    Path("fabula.toml").write_text(f'[models."{spec_of(server)}"]\n{PRICED}')
    run = tmp_path / "run"
    nothing = build("--model", spec_of(server), "--max-cost", 0, "--out", run)
    assert nothing.returncode == 4, nothing.stderr
    assert "--max-cost" in nothing.stderr and not server.log
    some = build("--model", spec_of(server), "--max-cost", 0.03, "--out", run)
    assert some.returncode == 4, some.stderr
    usages = [exchange.answer.tokens(exchange.asked) for exchange in server.log if exchange.answer]
    paid = sum(usage.input_tokens * 1.0 + usage.output_tokens * 2.0 for usage in usages) / 1_000_000
    assert 0 < paid <= 0.03
    stopped = len(server.log)
    assert fabula_command("run", "retry", run, "--max-cost", 0.001).returncode == 4
    assert len(server.log) == stopped
    done = fabula_command("run", "retry", run, "--max-cost", 9)
    assert done.returncode == 0 and "limit is 9 USD" in done.stderr
    keys = [exchange.asked.key for exchange in server.log]
    assert len(set(keys)) == len(keys)


def test_retry_when_a_reply_was_of_no_use_asks_once_more_each_time(build, tmp_path: Path) -> None:
    model, well = KathaModel(), False

    def answer(asked: Asked) -> Any:
        return model(asked) if well else {"scenes": "none"}

    with ModelServer(answer) as server:
        options = (
            "--model",
            spec_of(server),
            "--set",
            "run.threshold=0",
            "--out",
            tmp_path / "run",
            "--json",
        )
        assert json.loads(build(*options).stdout)["totals"]["failed"] == 2
        asked = len(server.log)
        assert ran(build(*options), "assess_story") == 0
        assert len(server.log) == asked, "a reply that was paid for is taken from the journal"
        planned = build(*options, "--retry-failed", "--dry-run")
        first = json.loads(planned.stdout)["stages"][0]
        assert (first["stage"], first["calls"]) == ("assess_story", 2), planned.stdout + planned.stderr
        assert ran(build(*options, "--retry-failed"), "assess_story") == 2
        assert len(server.log) == 2 * asked, "two questions, and a repair of each"
        well = True
        done = build(*options, "--retry-failed")
        assert json.loads(done.stdout)["totals"]["made"] == 2, done.stderr + done.stdout
        assert run_attempts(tmp_path / "run") == 3


def run_attempts(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_bytes())["run"]["attempts"]


def ran(done: Any, name: str) -> int:
    stages = json.loads(done.stdout)["stages"]
    return next(stage["ran"] for stage in stages if stage["name"] == name)
