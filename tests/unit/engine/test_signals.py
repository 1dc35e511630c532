"""Stopping on request, without processes."""

import os
import signal

import pytest

from fabula.engine.signals import Stopper, stop_on_signals


def test_stopper_when_a_signal_comes_tells_only_when_asked_and_only_once() -> None:
    told: list[str] = []
    stopper = Stopper(lambda: told.append("stopping"))
    with stop_on_signals(stopper):
        assert not stopper()
        os.kill(os.getpid(), signal.SIGINT)
        assert told == [], "a handler must not write: it may have interrupted a write"
        assert stopper()
        assert stopper()
    assert told == ["stopping"]


def test_stopper_when_a_second_signal_comes_stops_at_once() -> None:
    stopper = Stopper()
    with stop_on_signals(stopper), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
