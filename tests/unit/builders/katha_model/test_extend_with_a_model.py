"""Extending a run that a model drafted asks about the new stories alone, and says the cost beforehand."""

import json
from pathlib import Path

import pytest

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.progress import SilentReporter
from fabula.errors import BudgetStop
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer

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
