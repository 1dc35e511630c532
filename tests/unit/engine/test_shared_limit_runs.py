"""Runs in processes of their own share the limits of a key, as the service counts it; kills included."""

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.endurance import rounds
from fabula.testing.model_server import ModelServer
from fabula.testing.toy_models import reply_to

PER_SECOND = 20
PROGRAM = """
import sys
from pathlib import Path
from fabula.engine.execute import Options, execute
from fabula.testing.toy_models import model_request
folder, source, model, minute, share = sys.argv[1:6]
options = Options(workers=0, limit_share=float(share))
limits = {"requests_per_minute": float(minute), "concurrency": 8}
execute(model_request(Path(folder), (Path(source), model), options, settings=limits))
"""


@pytest.fixture
def start(starter: Any) -> Callable[..., Any]:
    """Start a run in a process of its own."""

    def start_run(folder: Path, source: Path, server: ModelServer, share: float = 1.0) -> Any:
        given = (folder, source, f"{server.openai_url}#toy", 60 * PER_SECOND, share)
        return starter.start(given, code=PROGRAM)

    return start_run


def written(folder: Path, items: int) -> Path:
    source = folder / f"{items}.txt"
    source.write_text("".join(f"{folder.name}{number:04} cat {number}\n" for number in range(items)))
    return source


def rate_of(server: ModelServer) -> float:
    """Requests a second as the server counts them, from the first to the last; half a second is left out for
    how much later than others one may have come in."""
    times = [exchange.asked.at for exchange in server.log]
    return (len(times) - 1) / (times[-1] - times[0] + 0.5)


def test_runs_when_two_go_on_at_once_never_exceed_the_limit_that_they_share(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    source = written(tmp_path, 20)
    with ModelServer(reply_to) as server:
        runs = [start(tmp_path / name, source, server) for name in ("a", "b")]
        assert [run.wait() for run in runs] == [0, 0]
        assert server.count == 40
        assert rate_of(server) <= PER_SECOND
    assert (tmp_path / "a" / "lines.jsonl").read_bytes() == (tmp_path / "b" / "lines.jsonl").read_bytes()


def test_run_when_it_has_a_share_keeps_to_that_and_says_nothing_of_it_in_its_manifest(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    source = written(tmp_path, 8)
    with ModelServer(reply_to) as server:
        assert start(tmp_path / "a", source, server, share=0.25).wait() == 0
        assert rate_of(server) <= PER_SECOND / 4
    assert "limit_share" not in json.loads((tmp_path / "a" / "run.json").read_text())["models"]


@pytest.mark.waits
@pytest.mark.endurance
def test_runs_when_they_are_killed_go_on_within_the_limit(tmp_path: Path, start: Callable[..., Any]) -> None:
    kills, choices, source = rounds(60), random.Random(7), written(tmp_path, 25)
    with ModelServer(reply_to) as server:
        runs = {name: start(tmp_path / name, source, server) for name in ("a0", "b0")}
        done = 0
        while done < kills:
            seen = server.count
            server.wait_for(seen + choices.randint(1, 12), timeout=5)
            time.sleep(choices.random() * 0.05)
            name = choices.choice(list(runs))
            run = runs.pop(name)
            run.send_signal(signal.SIGKILL)
            killed = run.wait() == -signal.SIGKILL
            done += killed
            following = name if killed else f"{name[0]}{int(name[1:]) + 1}"
            runs[following] = start(tmp_path / following, source, server)
        assert [run.wait() for run in runs.values()] == [0, 0]
        assert rate_of(server) <= PER_SECOND
    first, second = ((tmp_path / name / "lines.jsonl").read_bytes() for name in runs)
    assert first == second
