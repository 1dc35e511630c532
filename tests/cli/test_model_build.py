"""fabula build stories with a model: what it will cost, what it did cost, where it stops, how it goes on."""

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.engine.status import read_report
from fabula.evaluation.archive.archive import read_archive
from fabula.releases.loading import Release
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, write_outputs
from fabula.testing.drawn_judge import DrawnJudge
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.endurance import rounds
from fabula.testing.katha_model import KathaModel
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.killing import kill_after
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

pytestmark = pytest.mark.slow

STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
PRICED = "prices = {input = 1.0, output = 2.0}\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(KathaModel()) as server:
        yield server


@pytest.fixture
def build(fabula_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Build from the first two sample stories, with the working folder elsewhere than the run."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def run(*options: object) -> Any:
        return fabula_command("build", "katha", STORIES, "--limit", 2, "--workers", 0, *options)

    return run


def spec_of(server: ModelServer, name: str = "local") -> str:
    return f"{server.openai_url}#{name}"


def test_dry_run_when_no_folder_is_named_asks_nothing_and_writes_nothing(build, server: ModelServer) -> None:
    done = build("--planner", "model", "--model", spec_of(server), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "draft_scenes" in done.stdout and "price of" in done.stdout
    plan = json.loads(build("--model", spec_of(server), "--dry-run", "--json").stdout)
    repairs = [stage["calls"] for stage in plan["stages"] if stage["apart"] == "repairs"]
    assert repairs == [2], "1.2 of each story, told apart from its nine"
    assert plan["calls"] == 2 * 9 + 2 and plan["cost"] is None
    assert not server.log and not list(Path.cwd().iterdir())


def test_dry_run_when_asked_for_a_sample_drafts_so_many_and_goes_by_them(build, server, tmp_path):
    run = tmp_path / "run"
    done = build("--model", spec_of(server), "--dry-run", "--sample", 1, "--out", run, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["stages"] and all(stage["calibrated"] for stage in plan["stages"])
    sampled = len(server.log)
    assert sampled > 0 and plan["calls"] > 0
    assert build("--model", spec_of(server), "--out", run).returncode == 0
    keys = [exchange.asked.key for exchange in server.log]
    assert len(keys) > sampled and len(set(keys)) == len(keys)


def test_build_when_a_model_is_named_lets_it_draft_and_asks_nothing_twice(build, server, tmp_path):
    run = tmp_path / "run"
    done = build("--model", spec_of(server), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "calls" in done.stderr, "what it will cost is said before"
    text = (run / "records.jsonl").read_text("utf-8")
    assert "compatible:local via katha/draft_scenes@" in text
    assert "127.0.0.1" not in text, "where a server is stays out of the records"
    asked = len(server.log)
    records = (run / "records.jsonl").read_bytes()
    assert build("--model", spec_of(server), "--out", run).returncode == 0
    assert len(server.log) == asked
    assert (run / "records.jsonl").read_bytes() == records


def test_build_when_the_limit_is_reached_stops_and_goes_on_with_a_higher_one(
    build, fabula_command, server: ModelServer, tmp_path: Path
) -> None:
    Path("fabula.toml").write_text(f'[models."{spec_of(server)}"]\n{PRICED}')
    run = tmp_path / "run"
    nothing = build("--model", spec_of(server), "--max-cost", 0, "--out", run)
    assert nothing.returncode == 4, nothing.stderr
    assert "--max-cost" in nothing.stderr and not server.log
    some = build("--model", spec_of(server), "--max-cost", 0.03, "--out", run)
    assert some.returncode == 4, some.stderr
    usages = [exchange.answer.tokens(exchange.asked) for exchange in server.log if exchange.answer]
    paid = sum(usage.input_tokens * 1.0 + usage.output_tokens * 2.0 for usage in usages) / 1_000_000
    assert 0 < paid <= 0.03
    stopped = len(server.log)
    assert fabula_command("run", "retry", run, "--max-cost", 0.001).returncode == 4
    assert len(server.log) == stopped
    done = fabula_command("run", "retry", run, "--max-cost", 9)
    assert done.returncode == 0 and "limit is 9 USD" in done.stderr
    keys = [exchange.asked.key for exchange in server.log]
    assert len(set(keys)) == len(keys)


def test_retry_when_a_reply_was_of_no_use_asks_once_more_each_time(build, tmp_path: Path) -> None:
    model, well = KathaModel(), False

    def answer(asked: Asked) -> Any:
        return model(asked) if well else {"scenes": "none"}

    with ModelServer(answer) as server:
        options = (
            "--model",
            spec_of(server),
            "--set",
            "run.threshold=0",
            "--out",
            tmp_path / "run",
            "--json",
        )
        assert json.loads(build(*options).stdout)["totals"]["failed"] == 2
        asked = len(server.log)
        assert ran(build(*options), "assess_story") == 0
        assert len(server.log) == asked, "a reply that was paid for is taken from the journal"
        planned = build(*options, "--retry-failed", "--dry-run")
        first = json.loads(planned.stdout)["stages"][0]
        assert (first["stage"], first["calls"]) == ("assess_story", 2), planned.stdout + planned.stderr
        assert ran(build(*options, "--retry-failed"), "assess_story") == 2
        assert len(server.log) == 2 * asked, "two questions, and a repair of each"
        well = True
        done = build(*options, "--retry-failed")
        assert json.loads(done.stdout)["totals"]["made"] == 2, done.stderr + done.stdout
        assert run_attempts(tmp_path / "run") == 3


def run_attempts(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_bytes())["run"]["attempts"]


def ran(done: Any, name: str) -> int:
    stages = json.loads(done.stdout)["stages"]
    return next(stage["ran"] for stage in stages if stage["name"] == name)


# -- Killing `fabula evaluate episodes` at any moment: nothing is asked or looked for twice that was kept

pytest.importorskip("av")

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


# -- `fabula experiment`: a whole study offline, killed and gone on with, added to, and in clumsy hands

KILLS_EXPERIMENT_COMMAND = rounds(10)
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
        # One picture may be judged in the evaluation, for Compass and among the plants.
        assert max(undisturbed.values()) <= 3, "runs share replies but for those of other folders"
        before = len(server.log)
        for _ in range(KILLS_EXPERIMENT_COMMAND):
            code, _ = kill_after(partial(starter.start, run(study, "killed")), choices.randint(20, 250))
            assert code in (0, -signal.SIGKILL)
        done = fabula_command(*run(study, "killed"))
        assert done.returncode == 0, done.stderr
        asked = Counter(exchange.asked.key for exchange in server.log[before:])
    assert asked.keys() == undisturbed.keys()
    assert sum((asked - undisturbed).values()) <= KILLS_EXPERIMENT_COMMAND, (
        "a kill repeats the one call under way"
    )
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
