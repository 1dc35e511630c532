"""Reporters: JSON lines for scripts, plain lines for logs, a bar on a terminal."""

import io
import json

import pytest

from fabula.engine.progress import Event, JsonReporter, PlainReporter, RichReporter, choose_reporter

PROBLEM = {"item": "a", "status": "failed", "code": "crashed", "reason": "[bold]"}
EVENTS = [
    Event("run", data={"folder": "x", "pipeline": "toy", "stages": ["work"], "workers": 0}),
    Event("stage", stage="work", data={"items": 100}),
    *(Event("progress", stage="work", data={"done": done, "total": 100}) for done in range(1, 101)),
    Event(
        "item", stage="work", data={"item": "a", "status": "failed", "code": "crashed", "reason": "[bold]"}
    ),
    Event("stage-done", stage="work", data={"made": 99, "rejected": 0, "failed": 1, "ran": 100, "reused": 0}),
    Event("stopping"),
    Event("outputs", data={"written": True}),
    Event("run-done", data={"totals": {"made": 99}}),
]


def test_json_reporter_when_told_writes_one_object_a_line() -> None:
    stream = io.StringIO()
    reporter = JsonReporter(stream)
    for event in EVENTS:
        reporter.emit(event)
    reporter.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == len(EVENTS)
    assert lines[0]["event"] == "run"
    assert lines[-5] == {"event": "item", "stage": "work", **PROBLEM}


def test_plain_reporter_when_told_writes_few_lines_without_control_characters() -> None:
    stream = io.StringIO()
    reporter = PlainReporter(stream)
    for event in EVENTS:
        reporter.emit(event)
    reporter.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "work: 10 of 100"
    assert lines[9:] == [
        "  work: a failed (crashed): [bold]",
        "work: 99 made, 1 failed (100 run, 0 reused)",
        "stopping: finishing what is in flight; once more to stop at once",
        "outputs written",
    ]
    assert "\x1b" not in stream.getvalue()


def test_rich_reporter_when_told_shows_texts_as_they_are() -> None:
    stream = io.StringIO()
    reporter = RichReporter(stream)
    for event in EVENTS:
        reporter.emit(event)
    reporter.close()
    assert "work: a failed (crashed): [bold]" in stream.getvalue()
    assert "outputs written" in stream.getvalue()


def test_choose_reporter_when_stream_is_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    assert isinstance(choose_reporter(stream=stream), PlainReporter)
    assert isinstance(choose_reporter(as_json=True, stream=stream), JsonReporter)
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert isinstance(choose_reporter(stream=stream), RichReporter)
    assert isinstance(choose_reporter(as_json=True, stream=stream), JsonReporter)
