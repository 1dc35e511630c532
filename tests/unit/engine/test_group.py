"""Items taken apart by an expand and brought back by a group."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine.execute import Options
from fabula.engine.journal import decisions
from fabula.engine.pipeline import Pipeline, load_pipeline, load_stage
from fabula.engine.progress import SilentReporter
from fabula.engine.stage import Tools
from fabula.engine.status import RunReport, run_status
from fabula.engine.worker import Task, run_items
from fabula.errors import BelowThreshold, ConfigError
from fabula.testing.toy_pipeline import HERE, grouping, run_toy, toy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("a one two three\nb four five\nc six\n")
    return path


def run(folder: Path, source: Path, options: Options | None = None, *sets: str) -> RunReport:
    return run_toy(folder, source, options, grouping(), ["run.threshold=0.1", *sets])


def lines(folder: Path) -> dict[str, dict[str, str]]:
    rows = (folder / "lines.jsonl").read_text().splitlines()
    return {row["id"]: row["words"] for row in map(json.loads, rows)}


def ran(report: RunReport) -> dict[str, tuple[int, int]]:
    return {stage.name: (stage.ran, stage.reused) for stage in report.stages}


def test_group_when_all_children_are_made_brings_their_items_back(tmp_path: Path, source: Path) -> None:
    report = run(tmp_path / "run", source)
    assert lines(tmp_path / "run") == {
        "a": {"a-01": "one!", "a-02": "two!", "a-03": "three!"},
        "b": {"b-01": "four!", "b-02": "five!"},
        "c": {"c-01": "six!"},
    }
    assert report.totals == {"made": 3, "rejected": 0, "failed": 0, "pending": 0}


def test_group_when_children_stop_holds_the_others_and_an_item_without_any_is_gone(
    tmp_path: Path, source: Path
) -> None:
    source.write_text("a one reject three\nb fail\nc none\n")
    report = run(tmp_path / "run", source)
    assert lines(tmp_path / "run") == {"a": {"a-01": "one!", "a-03": "three!"}}
    assert [(item.id, item.stage, item.status) for item in report.items] == [
        ("a-02", "spell", "rejected"), ("b-01", "spell", "failed"), ("c", "join", "rejected"),
    ]  # fmt: skip


def test_group_when_one_item_changes_runs_for_that_one_only(tmp_path: Path, source: Path) -> None:
    first = run(tmp_path / "run", source)
    assert ran(first)["join"] == (3, 0)
    assert ran(run(tmp_path / "run", source))["join"] == (0, 3)
    source.write_text("a one two three\nb four else\nc six\n")
    again = run(tmp_path / "run", source)
    assert ran(again) == {"read_lines": (3, 0), "split": (2, 4), "spell": (1, 5), "join": (1, 2)}
    assert lines(tmp_path / "run")["b"] == {"b-01": "four!", "b-02": "else!"}


def test_group_when_its_children_give_the_same_again_is_not_run(tmp_path: Path, source: Path) -> None:
    run(tmp_path / "run", source)
    assert ran(run(tmp_path / "run", source, None, "spell.ignored=1")) == {
        "read_lines": (0, 3), "split": (0, 6), "spell": (6, 0), "join": (0, 3),
    }  # fmt: skip


def test_group_when_children_are_pending_waits_for_them(tmp_path: Path, source: Path) -> None:
    only = Options(workers=0, stages=("read_lines", "split"))
    report = run(tmp_path / "run", source, only)
    assert {item.stage for item in report.items} == {"spell", "join"}
    assert not (tmp_path / "run" / "lines.jsonl").exists()
    assert run(tmp_path / "run", source).totals["made"] == 3


def test_status_when_a_setting_changes_says_what_would_run(tmp_path: Path, source: Path) -> None:
    run(tmp_path / "run", source)
    assert {row.name: row.made for row in run_status(tmp_path / "run", grouping()).stages} == {
        "read_lines": 3, "split": 6, "spell": 6, "join": 3,
    }  # fmt: skip
    changed = run_status(tmp_path / "run", grouping(), sets=("spell.suffix='?'",))
    assert {row.name: row.stale for row in changed.stages} == {
        "read_lines": 0, "split": 0, "spell": 6, "join": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "found"),
    [(("READ", "WORK", "JOIN"), "too few"), (("READ", "SPLIT", "SPELL", "JOIN", "SHORTEN"), "text")],
)
def test_pipeline_when_a_group_does_not_fit_is_refused(stages: tuple[str, ...], found: str) -> None:
    names = tuple(f"{HERE}:{name}" for name in stages)
    with pytest.raises(ConfigError, match=found):
        load_pipeline(Pipeline("wrong", names, f"{HERE}:finish"))


def test_group_when_a_child_has_the_id_of_an_item_stops(tmp_path: Path, source: Path) -> None:
    source.write_text("a one\na-01 two\n")
    with pytest.raises(ValueError, match="a-01"):
        run(tmp_path / "run", source)


# Stages that take several items at once: one process of their own, one outcome per item.


@pytest.fixture
def batched_source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"m{number} word{number}\n" for number in range(12)))
    return path


def texts(folder: Path) -> dict[str, str]:
    lines = (folder / "lines.jsonl").read_text().splitlines()
    return {line["id"]: line["text"] for line in map(json.loads, lines)}


@pytest.mark.slow
def test_batched_stage_gives_what_the_plain_one_gives(tmp_path: Path, batched_source: Path) -> None:
    run_toy(tmp_path / "plain", batched_source, Options(workers=0))
    run_toy(tmp_path / "batched", batched_source, Options(workers=1), toy("WORK_BATCHED"))
    assert texts(tmp_path / "plain") == texts(tmp_path / "batched")


@pytest.mark.slow
@pytest.mark.parametrize(("word", "code"), [("raise", "exception"), ("crash", "crashed"), ("fail", "tired")])
def test_batched_stage_when_one_item_goes_wrong_spares_the_others(
    tmp_path: Path, batched_source: Path, word: str, code: str
) -> None:
    batched_source.write_text(f"{batched_source.read_text()}bad {word}\n")
    report = run_toy(
        tmp_path / "run", batched_source, Options(workers=1), toy("WORK_BATCHED"), ["run.threshold=0.5"],
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


# What a stateful gather decided stays known, whatever became of the item since.


def test_decisions_when_items_fail_or_go_keep_what_was_decided_last(
    run: Callable, lines: Path, tmp_path: Path
) -> None:
    run()
    decided = {"a": {"number": 0}, "b": {"number": 1}, "c": {"number": 2}, "d": {"number": 3}}
    assert decisions(tmp_path / "run", "number") == decided
    lines.write_text("c cat\na fail\nd dog here\nz new\n")
    with pytest.raises(BelowThreshold):
        run()
    assert decisions(tmp_path / "run", "number") == {**decided, "z": {"number": 4}}


def test_decisions_when_every_item_fails_since_are_still_there(
    run: Callable, lines: Path, tmp_path: Path
) -> None:
    run()
    lines.write_text("a fail\nb fail\n")
    with pytest.raises(BelowThreshold):
        run()
    assert sorted(decisions(tmp_path / "run", "number")) == ["a", "b", "c", "d"]
