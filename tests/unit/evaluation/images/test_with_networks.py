"""Every metric with the real classes of the registered models and small random weights, end to end."""

import json
from pathlib import Path

import pytest

from fabula.evaluation.metrics.metric import CROPS
from fabula.evaluation.metrics.registry import needs
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.evaluation.shots.score import score_folder
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.tiny_vision import tiny_settings

for _library in ("torch", "torchvision", "transformers", "onnx", "onnxruntime", "insightface", "cv2"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: the extra metrics is missing")

METRICS = ("cids", "copy-paste", "occm", "csd", "aesthetic", "inception", "clip-score")


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that says where the weights of every default model lie."""
    import torch

    monkeypatch.setenv("YOLO_OFFLINE", "1")
    torch.set_num_threads(1)
    lines = []
    for stage in dict.fromkeys(need.stage for need in needs()):
        lines.append(f"[{stage}.options]")
        models = [need.model for need in needs() if need.stage == stage]
        for named in models:
            for name in [named] if isinstance(named, str) else named:
                if f'"{name}" =' not in "".join(lines[lines.index(f"[{stage}.options]") :]):
                    given = tiny_settings(name, tmp_path / "weights" / name).items()
                    pairs = [f"{key} = {json.dumps(_plain(value))}" for key, value in given]
                    lines.append(f'"{name}" = {{ {", ".join(pairs)} }}')
    path = tmp_path / "fabula.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def test_images_when_looked_at_with_small_networks_get_every_score(
    settings_file: Path, tmp_path: Path
) -> None:
    shot_set, outputs = draw_shot_set(tmp_path / "data", 1), draw_shot_outputs(tmp_path / "model-x", 1)
    options = ImageOptions(metrics=METRICS, config=settings_file, device="cpu", workers=0)
    report = EVALUATING.evaluate(shot_set, [outputs], tmp_path / "run", options)
    assert report.totals["failed"] == 0
    (method,) = score_folder(tmp_path / "run", Definitions(resamples=0)).methods
    for name in ("occm", "csd_cross", "csd_self", "aesthetic", "inception", "clip_score"):
        assert method.scores[name].value is not None
    told = json.loads((tmp_path / "run/evaluation.json").read_text())["protocol"]["models"]
    assert set(told) == {"detector", "characters", "style", "aesthetic", "inception", "clip"}
    assert all(name in told["characters"] for name in (*CROPS[1].model, "clip-vit-l-14"))
