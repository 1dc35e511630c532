"""Stopping on request, without processes."""

import os
import signal
from collections.abc import Iterator

import pytest

from fabula.engine.lock import Stopper, stop_on_signals


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


@pytest.fixture
def hangups() -> Iterator[None]:
    """Hears hangups again afterwards: the last one that was heard leaves them ignored."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_stopper_when_hung_up_several_times_stops_in_order(hangups: None) -> None:
    stopper = Stopper()
    with stop_on_signals(stopper):
        for _ in range(3):  # a shell sends it to its jobs, and the terminal to whom it belongs to
            os.kill(os.getpid(), signal.SIGHUP)
        assert stopper()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGHUP)  # would end us, had the first not been heard


def test_stopper_when_hangups_were_ignored_before_hears_none_and_leaves_them_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stopper = Stopper()
        with stop_on_signals(stopper):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stopper()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
