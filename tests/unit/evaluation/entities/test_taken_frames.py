"""Shots of episodes with their frames: which are taken, and that they are the drawn ones."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fabula.engine.execute import STORE
from fabula.engine.status import RunReport
from fabula.errors import ConfigError, InputError
from fabula.evaluation.entities.episodes import chosen_episodes
from fabula.evaluation.entities.looking import (
    EpisodeSelection,
    GroundSettings,
    frames_of,
    looking_budget,
)
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.models.vision.needs import opened
from fabula.releases.entities.tree import read_entity_set
from fabula.schemas.plain_files import json_lines
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, Fault, TruthGrounder, draw_frame, write_outputs
from fabula.testing.drawn_videos import Take, write_takes
from fabula.testing.model_server import ModelServer
from fabula.testing.stage_pipelines import look
from fabula.testing.written_episodes import SECOND, SHOTS, write_episodes, written_episode

EPISODES = [written_episode(), written_episode("ep_b", SECOND)]


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "episodes", EPISODES)


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return write_outputs(tmp_path / "model-x", EPISODES)


@pytest.mark.parametrize(
    ("definition", "frames", "ground", "grid"),
    [
        ("code", 81, (1, 20, 40, 59, 79), (1, 20, 40, 59, 79)),
        ("code", 49, (1, 12, 24, 35, 47), (1, 12, 24, 35, 47)),
        ("code", 5, (1, 2, 3, 4), (1, 2, 3, 4, 4)),
        ("paper", 81, (0, 20, 40, 60, 80), (0, 16, 32, 48, 64, 80)),
        ("paper", 5, (0, 1, 2, 3, 4), (0, 1, 2, 3, 4)),
        ("paper", 6, (0, 1, 2, 3, 5), (0, 1, 2, 3, 4, 5)),
    ],
)
def test_frames_when_worked_by_hand_agree(definition, frames, ground, grid):
    choice = frames_of(definition, frames)  # type: ignore[arg-type]
    assert (choice.ground, choice.grid) == (ground, grid)
    assert choice.grounded == tuple(sorted({*ground, *grid}))


def test_budget_when_of_two_episodes_counts_from_the_schedule_alone(episodes: Path) -> None:
    # ep_a schedules 3 + 3 + 3 + 2 + 4 = 15 entities in 5 shots, ep_b 2 + 3 in 2 shots.
    entity_set, _ = read_entity_set(episodes)
    code, paper = looking_budget(entity_set, "code"), looking_budget(entity_set, "paper")
    assert (code.shots, code.frames, code.queries, code.appearances) == (7, 35, 100, 20)
    assert (paper.frames, paper.queries, paper.boundaries) == (63, 180, 14)


@pytest.mark.slow
def test_shots_when_looked_at_hold_script_entities_and_the_drawn_pixels(tmp_path, episodes, outputs):
    lines = look(tmp_path / "run", episodes, [outputs], ["take_frames.grounding='code'"])
    assert [line["id"] for line in lines][:3] == [
        "model-x/ep_a/001_001", "model-x/ep_a/001_002", "model-x/ep_a/002_001",
    ]  # fmt: skip
    shot, frames = lines[4]["shot"], lines[4]["frames"]
    assert (shot["key"], shot["index"], shot["cut"], shot["method"]) == ("2:3", 4, False, "model-x")
    assert [entity["key"] for entity in shot["entities"]] == [
        "character:Ana", "character:Ben", "location:The Garden", "object:the red cup",
    ]  # fmt: skip
    assert shot["entities"][0]["description"].startswith("Woman of forty")
    # 12 frames: start 1, end 10, step 9/4; 1, 3.25, 5.5, 7.75, 10
    assert frames["ground"] == frames["grid"] == [1, 3, 5, 7, 10]
    assert sorted(map(int, frames["pictures"])) == [0, 1, 3, 5, 7, 10, 11]
    assert (frames["count"], frames["fps"], frames["width"], frames["height"]) == (12, "25", 320, 180)
    for index, name in frames["pictures"].items():
        with Image.open(tmp_path / "run" / STORE / name) as image:
            drawn = draw_frame(["Ana", "Ben", "The Garden", "the red cup"], int(index))
            assert (np.asarray(image) == drawn).all()


def break_one(folder: Path) -> None:
    (folder / "001_001.mkv").write_bytes(b"no video")


def drop_one(folder: Path) -> None:
    (folder / "001_001.mkv").unlink()


def damage_one(folder: Path) -> None:
    path = folder / "001_001.mkv"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "codes"), [(break_one, {"not_a_video"}), (drop_one, {"missing"}), (damage_one, {"damaged"})]
)
def test_shots_when_a_video_cannot_be_used_say_why_and_leave_the_others(
    spoil: Callable[[Path], None], codes: set[str], tmp_path: Path, episodes: Path, outputs: Path
) -> None:
    spoil(outputs / "ep_a")
    lines = look(tmp_path / "run", episodes, [outputs])
    assert {lines[0]["frames"]["invalid"]} == codes
    assert lines[0]["frames"]["pictures"] == {}
    assert [line["frames"]["invalid"] for line in lines[1:]] == [None] * 6
    assert str(tmp_path) not in str(lines[0]["frames"])


def test_shots_when_an_episode_is_one_video_are_cut_out_of_it(tmp_path: Path, episodes: Path) -> None:
    folder = tmp_path / "film"
    folder.mkdir()
    write_takes(folder / "ep_a.mp4", [Take(12, look_at) for look_at in (10, 20, 30, 40, 50)])
    (folder / "ep_a.cuts.json").write_text('{"1:1": [0, 12], "2:3": [50, 59]}')
    lines = look(tmp_path / "run", episodes, [folder], ["load_episodes.episodes='ep_a'"])
    assert [line["frames"]["invalid"] for line in lines] == [None, "missing", "missing", "missing", None]
    assert lines[4]["frames"]["ground"] == [0, 2, 4, 6, 8]
    assert (lines[4]["frames"]["first"], lines[4]["frames"]["last"]) == (0, 8)


def test_selection_when_given_takes_ids_tiers_and_limits(episodes: Path) -> None:
    entity_set, _ = read_entity_set(episodes)
    chosen = chosen_episodes(entity_set, EpisodeSelection(tier="hard"))
    assert list(chosen.by_id) == ["ep_b"]
    assert list(chosen_episodes(entity_set, EpisodeSelection(limit=1)).by_id) == ["ep_a"]
    for given in ({"episodes": "x"}, {"tier": "x"}, {"tier": "hard", "episodes": "ep_a"}):
        wrong = EpisodeSelection.model_validate(given)
        with pytest.raises(ConfigError):
            chosen_episodes(entity_set, wrong)


def test_episodes_when_no_video_can_be_matched_are_refused(tmp_path, episodes, outputs):
    (outputs / "ep_a" / "001_001.mkv").rename(outputs / "ep_a" / "000_001.mkv")
    with pytest.raises(InputError, match="numbered-from-zero"):
        look(tmp_path / "run", episodes, [outputs])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is called like"):
        look(tmp_path / "run2", episodes, [tmp_path / "empty"])


# What an evaluation of episodes keeps is not looked for again: by a second method, or another threshold.

pytest.importorskip("av")
KEPT_EPISODES = (written_episode("ep_a", SHOTS[:3]),)
FAULTS: dict[str, dict[str, Fault]] = {"ep_a/1:2": {"Ben": "faded"}}
LOOKING = ("take_frames", "ground_entities", "encode_appearances", "draw_grids")
Evaluate = Callable[..., Counter[str]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(episode_judge.answer) as running:
        yield running


@pytest.fixture
def detector() -> TruthGrounder:
    """The detector that stages in this process use."""
    name = SETTINGS[0].partition("=")[2]
    grounder = opened(name, GroundSettings(), "grounder")
    assert isinstance(grounder, TruthGrounder)
    grounder.seen = 0
    return grounder


@pytest.fixture
def evaluate(tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    """Evaluate methods into one folder; returns how many items each stage ran for."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    write_episodes(tmp_path / "set", KEPT_EPISODES)
    write_outputs(tmp_path / "good", KEPT_EPISODES, frames=6)
    write_outputs(tmp_path / "poor", KEPT_EPISODES, FAULTS, frames=6)

    def run(*methods: str, sets: tuple[str, ...] = (), judge: str = "openai:one") -> Counter[str]:
        options = EpisodeOptions(
            judges=[judge], models={judge: {"base_url": server.openai_url}}, settings=(*SETTINGS, *sets),
            device="cpu", workers=0, created_at="2026-01-01T00:00:00Z", pillars="2,3",
        )  # fmt: skip
        folders = [tmp_path / method for method in methods]
        report: RunReport = EVALUATING.evaluate(tmp_path / "set", folders, tmp_path / "run", options)
        return Counter({stage.name: stage.ran for stage in report.stages})

    return run


def asked(server: ModelServer) -> Counter[str]:
    return Counter(exchange.asked.key for exchange in server.log)


@pytest.mark.slow
def test_method_when_added_is_looked_at_alone_and_shares_what_is_the_same(evaluate, server, detector):
    evaluate("good")
    looked, before = detector.seen, server.count
    # Six frames of a shot; 3 + 3 + 3 entities are scheduled in the three shots.
    assert looked == 6 * 9
    ran = evaluate("good", "poor")
    assert [ran[name] for name in LOOKING] == [3, 3, 3, 3], "shots of the second method, none of the first"
    assert detector.seen - looked == 6 * 3, "only one of its shots looks otherwise"
    assert server.count > before and max(asked(server).values()) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was judged in another way, and is kept in")
def test_thresholds_when_changed_use_frames_boxes_crops_and_vectors_again(
    evaluate: Evaluate, server: ModelServer, detector: TruthGrounder, tmp_path: Path
) -> None:
    evaluate("poor")
    looked, before = detector.seen, server.count
    pictures = {path.name for path in (tmp_path / "run" / "store").iterdir()}
    ran = evaluate("poor", sets=("ground_entities.present_from=0.05",))
    assert (ran["take_frames"], ran["ground_entities"]) == (0, 3)
    row = next(iter(json_lines(tmp_path / "run" / "episodes.jsonl")))
    assert row["shots"][1]["grounded"]["entities"]["character:Ben"]["status"] == "present"
    assert detector.seen == looked
    # Ben is asked about once more, now without a doubt; his score is still low, so the gate holds him back.
    assert server.count == before + 1
    ran = evaluate("poor", sets=("ground_entities.present_from=0.05", "gate_appearances.least=0.1"))
    assert sum(ran[name] for name in (*LOOKING, "judge_fidelity", "judge_actions")) == 0
    assert ran["gate_appearances"] == 1 and detector.seen == looked
    assert server.count == before + 2, "one pair more"
    assert max(asked(server).values()) == 1
    assert {path.name for path in (tmp_path / "run" / "store").iterdir()} == pictures
