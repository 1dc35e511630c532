"""A whole build whose questions go out in batches: its files are those of a build that asks one by one."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha, build_request
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.batches.books import Batching, batches_in
from fabula.engine.calls import model_uses
from fabula.engine.execute import execute
from fabula.engine.hooks import SilentReporter
from fabula.engine.journal import NAME as JOURNAL
from fabula.errors import BudgetStop
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.slow

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
PROVIDERS = ("openai", "google", "anthropic")


def files_of(run: Path) -> dict[str, bytes]:
    """Return the outputs of a run; report.json counts what was sent, and run.json stands for itself."""
    own = ("report.json", "run.lock")
    return {
        path.name: path.read_bytes()
        for path in run.iterdir()
        if path.is_file() and path.name not in own and not path.name.startswith((JOURNAL, "."))
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_build_when_in_batches_has_the_files_of_one_that_asks_singly(tmp_path, provider, monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "planted-key-0123456789abcdef0123456789")
    model = f"{provider}:drafts"
    with ModelServer(KathaModel()) as server:
        address = server.openai_url if provider == "openai" else server.url
        given = {model: {"base_url": address, "prices": {"input": 1.0, "output": 2.0}}}
        options = BuildOptions(
            planner="model", model=model, models=given, workers=0, limit=3,
            created_at="2026-01-01T00:00:00Z", batch=True, max_cost=10.0,
        )  # fmt: skip
        batched = build_request([STORIES], tmp_path / "batched", options)
        assert batched.options.batching == replace(Batching(), on=True, clock=batched.options.batching.clock)
        quick = replace(batched.options.batching, first_look=0.001, longest_look=0.004)
        execute(replace(batched, options=replace(batched.options, batching=quick)))
        execute(build_request([STORIES], tmp_path / "single", replace(options, batch=False)))
        asked = Counter(entry.asked.key for entry in server.log if entry.asked.protocol != "batches")
    assert files_of(tmp_path / "batched") == files_of(tmp_path / "single")
    assert set(asked.values()) == {2}, "once in a batch, and once by the other build"
    batches = batches_in(tmp_path / "batched" / JOURNAL)
    assert len({stage for batch in batches for stage in batch.stages}) > 3
    costs = [sum(use.cost for use in model_uses(tmp_path / name / JOURNAL)) for name in ("batched", "single")]
    assert costs[0] == pytest.approx(costs[1] / 2)


# Extending a run that a model drafted asks about the new stories alone, and says the cost beforehand.

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
CREATED, ADDED = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"
PRICES = {"input": 1.0, "output": 4.0}


class Plans(SilentReporter):
    """Keeps what is told of the calls to come."""

    def __init__(self) -> None:
        self.told: list[dict] = []

    def emit(self, event) -> None:
        if event.kind == "plan":
            self.told.append(dict(event.data))


def test_extend_when_a_model_drafts_asks_about_new_stories_alone(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    lines = SAMPLES.read_text("utf-8").splitlines(keepends=True)
    old, new, run = tmp_path / "old.jsonl", tmp_path / "new.jsonl", tmp_path / "run"
    old.write_text("".join(lines[:2]), "utf-8")
    new.write_text("".join(lines[2:4]), "utf-8")
    titles = [json.loads(line)["text"][:40] for line in lines[:2]]
    plans = Plans()
    with ModelServer(KathaModel()) as server:
        models = {"openai:tested": {"base_url": server.openai_url, "prices": PRICES}}
        build_katha(
            old, run, BuildOptions(model="openai:tested", models=models, workers=0, created_at=CREATED)
        )
        before, asked = (run / "records.jsonl").read_bytes().splitlines(), len(server.log)
        with pytest.raises(BudgetStop):
            extend_katha(run, new, ExtendOptions(created_at=ADDED, workers=0, max_cost=0.02))
        assert (run / "records.jsonl").read_bytes().splitlines() == before
        report = extend_katha(run, new, ExtendOptions(workers=0, max_cost=1), reporter=plans)
        calls = [entry.asked for entry in server.log[asked:]]
    assert (len(report.added), report.added_at) == (2, ADDED)
    assert set(before) <= set((run / "records.jsonl").read_bytes().splitlines())
    assert calls
    assert not [call for call in calls if any(title in str(call.messages) for title in titles)]
    assert len({call.key for call in calls}) == len(calls)
    (plan,) = plans.told
    assert 0 < plan["calls"] <= len(calls)
    assert plan["cost"] > 0
    assert plan["max_cost"] == 1
