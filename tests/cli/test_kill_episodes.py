"""Killing `fabula evaluate episodes` at any moment: nothing is asked or looked for twice that was kept."""

import json
import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.status import read_report
from fabula.evaluation.archive.archive import read_archive
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, write_outputs
from fabula.testing.endurance import rounds
from fabula.testing.killing import kill_after
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

pytest.importorskip("av")

pytestmark = pytest.mark.slow
KILLS = rounds(25)
EPISODES = (written_episode("ep_a", SHOTS[:3]),)
RATED = "fabula.testing.table_detector:load_brightness"
MEASURED = (
    "measure_quality.measures=['temporal_flickering', 'aesthetic_quality']",
    f"measure_quality.models={{aesthetic_quality = '{RATED}'}}",
)
GROUNDER = "fabula.testing.drawn_entities:load_truth_grounder"
BY_SHOT = (
    "measure_quality", "take_frames", "ground_entities", "encode_appearances", "draw_grids",
    "judge_fidelity", "judge_actions",
)  # fmt: skip


def command_for(folder: Path, out: Path, judge: str) -> tuple[object, ...]:
    log = f"ground_entities.options={{'{GROUNDER}' = {{log = '{folder / 'log'}'}}}}"
    sets = [part for text in (*SETTINGS, *MEASURED, log) for part in ("--set", text)]
    return (
        "evaluate", "episodes", "--release", folder / "set", "--outputs", folder / "good", "--judge", judge,
        "--out", out, "--created-at", "2026-01-01T00:00:00Z", "--device", "cpu", "--workers", "0", "--json",
        *sets,
    )  # fmt: skip


@pytest.mark.waits
@pytest.mark.endurance
def test_evaluation_when_killed_at_random_points_ends_as_if_undisturbed_and_repeats_one_item_at_most(
    fabula_command: Any, starter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_episodes(tmp_path / "set", EPISODES)
    write_outputs(tmp_path / "good", EPISODES, frames=6)
    choices, out, done = random.Random(42), tmp_path / "run", Counter[str]()
    with ModelServer(episode_judge.answer) as server:
        judge = f"{server.openai_url}#one"
        Path("fabula.toml").write_text(f'[models."{judge}"]\nconcurrency = 1\n')
        server.latency = 0.01
        command = command_for(tmp_path, out, judge)
        for _ in range(KILLS):
            code, told = kill_after(partial(starter.start, command), choices.randint(10, 45))
            assert code in (0, -signal.SIGKILL)
            done.update({event["stage"]: event["done"] for event in told if event["event"] == "progress"})
        assert fabula_command(*command).returncode == 0
        asked = Counter(exchange.asked.key for exchange in server.log)
        grounded = Counter((tmp_path / "log").read_text().split())
        assert sum(asked.values()) - len(asked) <= KILLS, "a kill repeats the call that was under way, if any"
        assert len(grounded) == 3 and sum(grounded.values()) - 3 <= KILLS
        ran = {stage.name: stage.ran for stage in read_report(out).stages}
        assert done["measure_quality"] == 3, "else the kills came before there was anything to keep"
        assert all(ran[name] <= 3 - done[name] for name in BY_SHOT), "what was told as done stays done"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        whole = tmp_path / "whole"
        assert fabula_command(*command_for(tmp_path, whole, judge)).returncode == 0
    for name in ("episodes.jsonl", "judgements.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert read_archive(out).manifest.protocol == read_archive(whole).manifest.protocol
    assert json.loads((out / "report.json").read_text())["totals"]["made"] == 1
