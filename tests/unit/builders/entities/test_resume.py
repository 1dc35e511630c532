"""A build that was stopped in the middle of a video goes on at the shot, whatever was being done to it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fabula.builders.entities import detect_people, embed_tracklets, measure_quality
from fabula.engine.execute import execute
from fabula.engine.report import RunReport
from fabula.engine.stage import Item
from fabula.errors import Interrupted
from fabula.testing.drawn_episode import write_episode
from fabula.testing.people_pipeline import people_request

pytest.importorskip("av")
SHOTS = ("A1", "B2", "AB3", "C1", "A2", "B3")
BEFORE = 4
"""Shots that are done when the build is stopped."""
DETECTOR, ENCODER = (
    "fabula.testing.table_detector:load_table_detector",
    "fabula.testing.table_detector:load_colour_encoder",
)


@pytest.mark.parametrize("stage", [measure_quality, detect_people, embed_tracklets])
def test_build_when_stopped_in_a_video_goes_on_at_the_shot(
    stage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video, _ = write_episode(tmp_path, SHOTS)
    sets = (
        f"detect_people.people='{DETECTOR}'", "detect_people.faces='none'",
        f"embed_tracklets.body='{ENCODER}'", "embed_tracklets.face='none'",
    )  # fmt: skip
    whole = execute(people_request(tmp_path / "whole", [video], sets))
    name = stage.SPEC.name
    looked: list[str] = []
    real: Callable[..., Any] = stage.run_batch

    def counted(items: Sequence[Item], tools: Any) -> Any:
        if len(looked) == BEFORE and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        looked.extend(item.id for item in items)
        return real(items, tools)

    stopped: list[bool] = []
    monkeypatch.setattr(stage, "run_batch", counted)
    with pytest.raises(Interrupted):
        execute(people_request(tmp_path / "run", [video], sets))
    assert len(looked) == BEFORE
    report = execute(people_request(tmp_path / "run", [video], sets))
    assert sorted(looked) == [f"film__shot{number:04d}" for number in range(1, len(SHOTS) + 1)]
    assert counts(report, name) == (len(SHOTS) - BEFORE, BEFORE)
    assert counts(report, "detect_shots") == (0, 1)
    assert whole.totals == report.totals
    assert (tmp_path / "whole/cast.jsonl").read_bytes() == (tmp_path / "run/cast.jsonl").read_bytes()


def counts(report: RunReport, name: str) -> tuple[int, int]:
    """Items of a stage that were run, and that were there."""
    stage = next(one for one in report.stages if one.name == name)
    return stage.ran, stage.reused
