"""What a stateful gather decided stays known, whatever became of the item since."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine.journal import decisions
from fabula.engine.lock import hold
from fabula.errors import BelowThreshold, RunError


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


def test_decisions_when_somebody_works_on_the_run_can_be_read(run: Callable, tmp_path: Path) -> None:
    run()
    with hold(tmp_path / "run"):
        assert decisions(tmp_path / "run", "count")["a"] == {"count": 1}


def test_decisions_when_the_stage_never_ran_are_none(run: Callable, tmp_path: Path) -> None:
    run(stages=("read_lines", "work"))
    assert decisions(tmp_path / "run", "number") == {}
    with pytest.raises(RunError, match=r"no journal\.sqlite"):
        decisions(tmp_path, "number")
