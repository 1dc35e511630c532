"""What an evaluation of episodes keeps is not looked for again: by a second method, or another threshold."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.engine.report import RunReport
from fabula.evaluation.entities.looking.settings import GroundSettings
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.models.vision.needs import opened
from fabula.schemas.plain_files import json_lines
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import SETTINGS, Fault, TruthGrounder, write_outputs
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

pytest.importorskip("av")
EPISODES = (written_episode("ep_a", SHOTS[:3]),)
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
    write_episodes(tmp_path / "set", EPISODES)
    write_outputs(tmp_path / "good", EPISODES, frames=6)
    write_outputs(tmp_path / "poor", EPISODES, FAULTS, frames=6)

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


def test_method_when_added_is_looked_at_alone_and_shares_what_is_the_same(
    evaluate: Evaluate, server: ModelServer, detector: TruthGrounder
) -> None:
    evaluate("good")
    looked, before = detector.seen, server.count
    # Six frames of a shot; 3 + 3 + 3 entities are scheduled in the three shots.
    assert looked == 6 * 9
    ran = evaluate("good", "poor")
    assert [ran[name] for name in LOOKING] == [3, 3, 3, 3], "shots of the second method, none of the first"
    assert detector.seen - looked == 6 * 3, "only one of its shots looks otherwise"
    assert server.count > before and max(asked(server).values()) == 1


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
