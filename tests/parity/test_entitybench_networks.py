"""Two published videos looked at with the real classes of networks and small random weights: plumbing."""

import json
from pathlib import Path

import pytest

from fabula.evaluation.metrics.vectors import unpacked
from fabula.testing.looking_pipeline import look
from fabula.testing.tiny_vision import tiny_settings
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

pytestmark = pytest.mark.parity

for _library in ("torch", "transformers"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: the extra metrics is missing")

MODELS = {
    "ground_entities": {"detector": "grounding-dino-swin-t", "text": "clip-vit-b-32"},
    "encode_appearances": {"encoder": "dinov2-base"},
}


@pytest.mark.parametrize("definition", ["paper", "code"])
def test_published_videos_when_looked_at_by_small_networks_have_boxes_crops_vectors_and_grids(
    definition: str, reference: Path, tmp_path: Path
) -> None:
    import torch

    torch.set_num_threads(1)
    lines = ["[take_frames]", f'grounding = "{definition}"']
    for stage, named in MODELS.items():
        lines += [f"[{stage}]", f'definition = "{definition}"']
        lines += [f'{setting} = "{name}"' for setting, name in named.items()]
        lines.append(f"[{stage}.options]")
        for name in named.values():
            given = tiny_settings(name, tmp_path / "weights" / name).items()
            pairs = [f"{key} = {json.dumps(value, default=str)}" for key, value in given]
            lines.append(f'"{name}" = {{ {", ".join(pairs)} }}')
    config = tmp_path / "fabula.toml"
    config.write_text("\n".join([*lines, "[draw_grids]", "wanted = true"]) + "\n", "utf-8")
    folder = tmp_path / "model-x" / "ep_b"
    folder.mkdir(parents=True)
    for number, video in enumerate(sorted((reference / "storyeval" / "videos").glob("*.mp4")), 1):
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
