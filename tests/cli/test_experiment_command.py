"""`fabula experiment`: a whole study offline, killed and gone on with, added to, and in clumsy hands."""

import json
import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.releases.loading import Release
from fabula.testing.drawn_judge import DrawnJudge
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.endurance import rounds
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.killing import kill_after
from fabula.testing.model_server import ModelServer

pytestmark = pytest.mark.slow

KILLS = rounds(10)
STUDY = """
[study]
name = "small"
release = "release"
plans = ["scene", "transition-aware"]
seeds = [42, 123]
judges = ["{judge}"]
evaluators = ["tifa", "katha"]

[renderers.drawn]
model = "image:drawn:storyboard"
width = 256
height = 256

[compass]
plan = "transition-aware"
renderer = "drawn"
coverage = "drawn-marks"
copies = "pixels"
arms = ["base", "rerank-only", "full"]

[plants]
method = "transition-aware+drawn"
losses = ["swapped", "emotion_flattened", "none"]
"""
KEPT = ("orders.jsonl", "outputs/*/*", "outputs/*/*/*/*.png", "truth/*", "tables/*", "index.html",
        "**/judgements.jsonl", "compass/compass.json", "compass/frozen.json",
        "planted/storyboards/*.jsonl")  # fmt: skip
"""What must be the same bytes however often a study was stopped."""


def small_release(folder: Path) -> Release:
    """Write two stories that are reported on and two that Compass is tuned on."""
    bundles = sample_bundles(4)
    for bundle, split in zip(
        bundles, ("public_test", "public_test", "validation", "validation"), strict=True
    ):
        bundle["record"]["split"] = split
        for variant in bundle["variants"]:
            variant["subset"] = split
    return judged_release(folder, bundles)


def files_of(study: Path) -> dict[str, bytes]:
    return {
        path.relative_to(study).as_posix(): path.read_bytes()
        for pattern in KEPT
        for path in sorted(study.glob(pattern))
        if path.is_file()
    }


def run(study: Path, out: Path) -> tuple[object, ...]:
    return ("experiment", "run", study, "--out", out, "--created-at", "2026-01-01T00:00:00Z", "--json")


@pytest.mark.waits
@pytest.mark.endurance
def test_study_when_killed_at_random_points_ends_with_the_same_bytes_and_asks_little_twice(
    fabula_command: Any, starter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = small_release(tmp_path / "release")
    choices = random.Random(42)
    with ModelServer(DrawnJudge(release.records)) as server:
        judge = f"{server.openai_url}#one"
        study = tmp_path / "study.toml"
        study.write_text(STUDY.format(judge=judge) + f'\n[models."{judge}"]\nconcurrency = 1\n')
        assert fabula_command(*run(study, "whole")).returncode == 0
        undisturbed = Counter(exchange.asked.key for exchange in server.log)
        assert max(undisturbed.values()) <= 2, "runs share replies but for those of other folders"
        before = len(server.log)
        for _ in range(KILLS):
            code, _ = kill_after(partial(starter.start, run(study, "killed")), choices.randint(20, 250))
            assert code in (0, -signal.SIGKILL)
        done = fabula_command(*run(study, "killed"))
        assert done.returncode == 0, done.stderr
        asked = Counter(exchange.asked.key for exchange in server.log[before:])
    assert asked.keys() == undisturbed.keys()
    assert sum((asked - undisturbed).values()) <= KILLS, "a kill repeats the one call under way"
    whole, killed = files_of(tmp_path / "whole"), files_of(tmp_path / "killed")
    assert whole.keys() == killed.keys() and len(whole) > 100
    assert [name for name in whole if whole[name] != killed[name]] == []


def test_study_when_a_seed_and_a_plan_are_added_asks_only_for_what_is_new(
    fabula_command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = small_release(tmp_path / "release")
    with ModelServer(DrawnJudge(release.records)) as server:
        text = STUDY.partition("[compass]")[0].format(judge=f"{server.openai_url}#one")
        study = tmp_path / "study.toml"
        study.write_text(text.replace('"tifa", ', "").replace("[42, 123]", "[42]"))
        first = fabula_command(*run(study, "out"))
        assert first.returncode == 0, first.stderr
        before = len(server.log)
        # 2 stories of 6 questions and a moral target: 14 of the text, 28 with pictures of each of 2 methods,
        # and 2 contrastive pairs of each story and method.
        assert before == 14 + 2 * 28 + 2 * 4
        again = fabula_command(*run(study, "out"))
        assert again.returncode == 0 and len(server.log) == before
        study.write_text(text.replace('"tifa", ', "").replace('["scene"', '["direct", "scene"'))
        more = fabula_command(*run(study, "out"))
        assert more.returncode == 0, more.stderr
        assert max(Counter(exchange.asked.key for exchange in server.log).values()) == 1
    status = json.loads(fabula_command("experiment", "status", "out", "--json").stdout)
    assert {cell["method"]: (cell["made"], cell["judged"]) for cell in status["cells"]} == {
        name: (4, 4) for name in ("direct+drawn", "scene+drawn", "transition-aware+drawn")
    }


def test_dry_run_when_nothing_is_made_tells_exactly_what_the_run_then_asks(
    fabula_command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = small_release(tmp_path / "release")
    with ModelServer(DrawnJudge(release.records)) as server:
        study = tmp_path / "study.toml"
        text = STUDY.partition("[compass]")[0].format(judge=f"{server.openai_url}#one")
        study.write_text(text.replace('"tifa", ', ""))
        told = json.loads(fabula_command("experiment", "run", study, "--dry-run", "--json").stdout)
        assert not server.log and not (tmp_path / "runs").exists()
        assert fabula_command(*run(study, "out")).returncode == 0
        judged = sum(row["calls"] for row in told["rows"] if row["part"] == "judgements")
        assert len(server.log) == judged
    assert (
        told["pictures"]
        == 2 * 2 * 2 * 5
        == sum(row["calls"] for row in told["rows"] if row["part"] == "pictures")
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('plans = ["scene", "transition-aware"]', 'plans = ["scenes"]'), "there is no such plan"),
        (('plans = ["scene", "transition-aware"]', "plans = []"), "plans"),
        (('"image:drawn:storyboard"', '"openai:gpt-4.1"'), "makes no pictures"),
        (('release = "release"', 'release = "nowhere"'), "nowhere"),
        (('method = "transition-aware+drawn"', 'method = "other"'), "the methods are"),
        (('name = "small"', 'name = "small"\nseed = 3'), "seed"),
        (("[study]", "study = 3\n[other]"), "there is no section [study]"),
        (('plans = ["scene", "transition-aware"]', 'plans = ["oracle"]'), "people accepted"),
        (('renderer = "drawn"', 'renderer = "other"'), "compass names a plan or renderer"),
    ],
)
def test_study_when_something_in_it_is_wrong_says_where_and_asks_nobody(
    fabula_command: Any, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    small_release(tmp_path / "release")
    study = tmp_path / "study.toml"
    parts = STUDY.format(judge="http://127.0.0.1:1/v1#one")
    if "plans" in change[0]:  # Compass and plants would name what is no longer there
        parts = parts.partition("[compass]")[0]
    study.write_text(parts.replace(*change))
    refused = fabula_command("experiment", "run", study, "--out", tmp_path / "out")
    assert refused.returncode in (1, 2) and said in refused.stderr, refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "there is no section"), (b"\xff\xfe[study]", "cannot be read"), (b"[study", "cannot be read")],
)
def test_study_when_its_file_is_damaged_is_refused(
    fabula_command: Any, tmp_path: Path, content: bytes, said: str
) -> None:
    study = tmp_path / "study.toml"
    study.write_bytes(content)
    refused = fabula_command("experiment", "run", study, "--out", tmp_path / "out")
    assert refused.returncode == 2 and said in refused.stderr, refused.stderr
