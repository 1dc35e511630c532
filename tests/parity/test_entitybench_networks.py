"""Two published videos looked at with the real classes of networks and small random weights: plumbing."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fabula.evaluation.entities.archived import QUALITY
from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.metrics.catalogue import METRICS
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.evaluation.entities.scores.scores import score_folder
from fabula.evaluation.metrics.vectors import unpacked
from fabula.evaluation.report.formats import write_report
from fabula.kinds.evaluations import make_report
from fabula.media.video import walk_frames
from fabula.schemas.plain_files import json_lines
from fabula.testing import episode_judge
from fabula.testing.drawn_entities import LOSSLESS
from fabula.testing.drawn_videos import write_frames
from fabula.testing.model_server import ModelServer
from fabula.testing.stage_pipelines import look
from fabula.testing.tiny_vision import write_settings
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

pytestmark = [pytest.mark.slow, pytest.mark.parity]

for _library in ("torch", "transformers", "torchvision"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: the extra metrics is missing")

GROUNDING = {"detector": "grounding-dino-swin-t", "text": "clip-vit-b-32"}
MEASURES = [name for name in QUALITY if name != "imaging_quality" or find_spec("pyiqa")]
"""MUSIQ is in an extra of its own."""
MEASURING = ["dinov2-base", "raft-large", "laion-b-32", *(["musiq-spaq"] if find_spec("pyiqa") else [])]
SHOTS = tuple((1, f"Ben holds the red cup in The Garden, {when}.", SECOND[1][2]) for when in ("now", "then"))
UNKNOWN = {"Ben": "the bear", "The Garden": "The Forest", "the red cup": "the honey jar"}
"""Names that the scripted judge does not know: it gives these the same middling reply, whatever it sees."""


def published(reference: Path) -> list[Path]:
    return sorted((reference / "storyeval" / "videos").glob("*.mp4"))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.mark.parametrize("definition", ["paper", "code"])
def test_published_videos_when_looked_at_by_small_networks_have_boxes_crops_vectors_and_grids(
    definition: str, reference: Path, tmp_path: Path
) -> None:
    defined = f'definition = "{definition}"'
    named = "\n".join([defined, *(f'{setting} = "{name}"' for setting, name in GROUNDING.items())])
    config = write_settings(
        tmp_path,
        {
            "take_frames": (f'grounding = "{definition}"', ()),
            "ground_entities": (named, [*GROUNDING.values()]),
            "encode_appearances": (f'{defined}\nencoder = "dinov2-base"', ["dinov2-base"]),
            "draw_grids": ("wanted = true", ()),
        },
        threshold=0.01,
    )
    folder = tmp_path / "model-x" / "ep_b"
    folder.mkdir(parents=True)
    for number, video in enumerate(published(reference), 1):
        (folder / f"001_{number:03d}.mp4").symlink_to(video)
    episodes = write_episodes(tmp_path / "episodes", [written_episode("ep_b", SECOND)])
    shots = look(tmp_path / "run", episodes, [tmp_path / "model-x"], config=config)
    assert [shot["frames"]["invalid"] for shot in shots] == [None, None]
    for shot in shots:
        assert len(shot["frames"]["ground"]) == 5
        assert len(shot["frames"]["pictures"]) == (9 if definition == "paper" else 7)
        assert shot["grid"]["width"] == 1112
        entities = shot["grounded"]["entities"]
        assert set(shot["vectors"]["crops"]) == {key for key, each in entities.items() if each["canonical"]}
        for table in (*shot["vectors"]["crops"].values(), shot["vectors"]["first"]):
            assert unpacked(table).shape == (1, 32)
        assert any(each["canonical"] for each in entities.values())
    assert shots[0]["grounded"]["models"]["text"].startswith("clip-vit-b-32@")
    assert shots[0]["vectors"]["model"].startswith("dinov2-base@")


def write_excerpts(folder: Path, videos: Sequence[Path]) -> Path:
    """Write five consecutive frames of each video, made small, as shots of a method's episode."""
    (folder / "ep_b").mkdir(parents=True)
    for number, video in enumerate(videos, 1):
        small = [np.asarray(each.image.resize((192, 108))) for each in walk_frames(video, range(60, 65))]
        write_frames(folder / "ep_b" / f"001_{number:03d}.mkv", small, LOSSLESS)
    return folder


def test_published_videos_when_evaluated_with_small_networks_have_numbers_of_all_three_pillars(
    reference: Path, tmp_path: Path
) -> None:
    outputs = write_excerpts(tmp_path / "model-x", published(reference))
    text = json.dumps(written_episode("ep_b", SHOTS))
    for known, name in UNKNOWN.items():
        text = text.replace(known, name)
    episodes = write_episodes(tmp_path / "episodes", [json.loads(text)])
    config = write_settings(
        tmp_path,
        {
            "measure_quality": (f"measures = {json.dumps(MEASURES)}", MEASURING),
            "ground_entities": ("present_from = -1", [*GROUNDING.values()]),
            "encode_appearances": ("", ["dinov2-base"]),
        },
        threshold=0.01,
    )
    with ModelServer(episode_judge.answer) as server:
        options = EpisodeOptions(
            judges=[f"{server.openai_url}#judge"], config=config, device="cpu", workers=0,
            created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        report = EVALUATING.evaluate(episodes, [outputs], tmp_path / "run", options)
    assert report.totals["made"] == 1
    (line,) = json_lines(tmp_path / "run" / "episodes.jsonl")
    for shot in line["shots"]:
        assert shot["quality"]["models"].keys() == {*MEASURES} - {"temporal_flickering"}
        assert {each["status"] for each in shot["grounded"]["entities"].values()} == {"present"}
        assert unpacked(shot["vectors"]["last"]).shape == (1, 32)
    numbers = score_folder(tmp_path / "run", Definitions(resamples=0)).methods[0].numbers
    lacking = {each.name for each in METRICS if numbers[each.name].value is None}
    assert lacking == {*QUALITY} - {*MEASURES}
    assert numbers["intra_face_fidelity"].value == numbers["llm_scene_mean_score"].value == pytest.approx(0.6)
    assert 0 < numbers["motion_smoothness"].value < 1
    protocol = json.loads((tmp_path / "run" / "evaluation.json").read_text("utf-8"))["protocol"]
    assert protocol["definitions"]["ground_entities.box_threshold"] == 0.01
    write_report(make_report(tmp_path / "run"), tmp_path / "page.html")
    assert "Episodes of model-x" in (tmp_path / "page.html").read_text("utf-8")
