"""Stages that take several items at once: one process of their own, one outcome per item."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabula.engine.execute import Options
from fabula.engine.pipeline import load_stage
from fabula.engine.progress import SilentReporter
from fabula.engine.stage import Tools
from fabula.engine.worker import Task, run_items
from fabula.errors import ConfigError
from fabula.testing import toy_pipeline
from fabula.testing.toy_pipeline import HERE, run_toy, toy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"m{number} word{number}\n" for number in range(12)))
    return path


def texts(folder: Path) -> dict[str, str]:
    lines = (folder / "lines.jsonl").read_text().splitlines()
    return {line["id"]: line["text"] for line in map(json.loads, lines)}


def test_batched_stage_when_there_are_two_workers_runs_in_one_process_of_its_own(
    tmp_path: Path, source: Path
) -> None:
    run_toy(tmp_path / "run", source, Options(workers=2), toy("WORK_BATCHED"), ["work.suffix='?'"])
    assert len({text.split(" by ")[1] for text in texts(tmp_path / "run").values()}) == 1


def test_batched_stage_gives_what_the_plain_one_gives(tmp_path: Path, source: Path) -> None:
    run_toy(tmp_path / "plain", source, Options(workers=0))
    run_toy(tmp_path / "batched", source, Options(workers=1), toy("WORK_BATCHED"))
    assert texts(tmp_path / "plain") == texts(tmp_path / "batched")


@pytest.mark.parametrize(("word", "code"), [("raise", "exception"), ("crash", "crashed"), ("fail", "tired")])
def test_batched_stage_when_one_item_goes_wrong_spares_the_others(
    tmp_path: Path, source: Path, word: str, code: str
) -> None:
    source.write_text(f"{source.read_text()}bad {word}\n")
    report = run_toy(
        tmp_path / "run", source, Options(workers=1), toy("WORK_BATCHED"), ["run.threshold=0.5"],
        SilentReporter(),
    )  # fmt: skip
    assert [(item.id, item.code) for item in report.items] == [("bad", code)]
    assert report.totals["made"] == 12


def test_run_items_when_outcomes_are_lost_fails_those_items_alone() -> None:
    from fabula.engine.codec import encode
    from fabula.engine.stage import Made
    from fabula.testing.toy_pipeline import WorkSettings

    def task(name: str, word: str) -> Task:
        blob = encode(Made({"words": [word]})).blob
        assert blob is not None
        return Task(name, name, ((blob, ("words",)),))

    stage = load_stage(f"{HERE}:WORK_BATCHED")
    tools = Tools(WorkSettings(), "2026-01-01T00:00:00Z")
    done = run_items(stage, tools, [task("a", "x"), task("b", "lose")])
    assert [encoded.status for encoded in done] == ["made", "failed"]
    assert "gave 0 outcomes for 1 items" in str(done[1].reason)


def test_load_stage_when_it_has_both_functions_or_no_map_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    both = SimpleNamespace(SPEC=toy_pipeline.WORK.SPEC, run=len, run_batch=len)
    gather = SimpleNamespace(SPEC=toy_pipeline.COUNT.SPEC, run_batch=len)
    for stage in (both, gather):
        monkeypatch.setattr(toy_pipeline, "BAD", stage, raising=False)
        with pytest.raises(ConfigError, match="run_batch"):
            load_stage(f"{HERE}:BAD")
