"""VBench's own code beside ours, on the same frames and weights; needs the vbench 0.1.5 wheel, unpacked.

The folder that holds it is named by FABULA_VBENCH. Libraries that it wants besides OpenCV and tqdm are stubs:
one hands out the frames that PyAV decodes, CLIP's tower is that of transformers.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabula.engine.stage import Item, Made, Tools
from fabula.evaluation.entities.measure_quality import measure_quality
from fabula.evaluation.entities.quality import Motion, QualitySettings
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames
from fabula.testing.tiny_vision import tiny_settings

FOLDER = os.environ.get("FABULA_VBENCH", "")
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="FABULA_VBENCH does not name a folder with VBench's code"),
    pytest.mark.filterwarnings("ignore"),
]
LOSSLESS = Encoder(codec="libx264rgb", options={"qp": "0"}, pixels="rgb24")


class Dictionary(dict[str, Any]):
    """What easydict makes of a dictionary, as far as RAFT needs it."""

    __getattr__ = dict.__getitem__


class Reader:
    """A video as decord reads it, decoded by PyAV."""

    def __init__(self, path: str, **_: Any) -> None:
        import av

        with av.open(path) as container:
            self.frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])

    def __len__(self) -> int:
        return len(self.frames)

    def get_batch(self, indices: Any) -> Any:
        return SimpleNamespace(asnumpy=lambda: self.frames[list(indices)])


@pytest.fixture
def vbench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a module of VBench."""
    stubs = {
        "easydict": {"EasyDict": Dictionary}, "clip": {},
        "decord": {"VideoReader": Reader, "cpu": None, "bridge": SimpleNamespace(set_bridge=lambda _: None)},
    }  # fmt: skip
    for name, content in stubs.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    yield lambda name: importlib.import_module(f"vbench.{name}")
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "vbench":
            del sys.modules[name]


@pytest.fixture
def film(tmp_path: Path) -> Path:
    takes = draw_takes([Take(13, 3, pan=6)], (180, 132))  # 180 is no multiple of 8: edges are repeated
    return write_frames(tmp_path / "001_001.mp4", takes, LOSSLESS, fps=24)


def ours(film: Path, measure: str, options: dict[str, Any]) -> float:
    settings = QualitySettings(wanted=True, definition="vbench", measures=(measure,), options=options)
    video = {"file": str(film), "sha256": "", "start": None, "stop": None}
    item = Item("m/e/001_001", {"shot": {"video": video, "code": None}})
    made = measure_quality(item, Tools(settings=settings, created_at=""))
    assert isinstance(made, Made)
    value = made.fields["quality"]["values"][measure]
    assert value is not None, made.fields["quality"]["why"]
    return float(value)


def test_flickering_when_vbench_measures_it_is_the_same(vbench: Any, film: Path) -> None:
    theirs = vbench("temporal_flickering").cal_score(str(film))
    assert ours(film, "temporal_flickering", {}) == pytest.approx(theirs, abs=1e-7)


NAMES = {
    r"feature_encoder": "fnet",
    r"context_encoder": "cnet",
    r"motion_encoder": "encoder",
    r"recurrent_block\.convgru(\d)\.conv(\w)": r"gru.conv\2\1",
    r"mask_predictor\.convrelu\.0": "update_block.mask.0",
    r"mask_predictor\.conv": "update_block.mask.2",
    r"convcorr(\d)\.0": r"convc\1",
    r"convflow(\d)\.0": r"convf\1",
    r"encoder\.conv\.0": "encoder.conv",
    r"net\.convnormrelu\.0": "net.conv1",
    r"net\.convnormrelu\.1": "net.norm1",
    r"convnormrelu(\d)\.0": r"conv\1",
    r"convnormrelu(\d)\.1": r"norm\1",
    r"(fnet|cnet)\.conv\.": r"\1.conv2.",
}
"""Names of layers of torchvision's RAFT, and what VBench's copy of the authors' code calls them."""


def renamed(name: str) -> str:
    for own, theirs in NAMES.items():
        name = re.sub(own, theirs, name)
    return name


def test_dynamic_degree_when_vbench_measures_it_is_the_same(vbench, film, tmp_path, monkeypatch):
    import torch

    settings = tiny_settings("raft-large", tmp_path / "raft")
    state = {renamed(name): value for name, value in torch.load(settings["local"], weights_only=True).items()}
    theirs = vbench("dynamic_degree").DynamicDegree.__new__(vbench("dynamic_degree").DynamicDegree)
    raft = vbench("dynamic_degree").RAFT(
        Dictionary(small=False, mixed_precision=False, alternate_corr=False, dropout=0.0)
    )
    shared = raft.state_dict()
    assert state.keys() <= shared.keys()
    shared |= state
    for name in raft.state_dict():  # the norm of a shortcut has a second name there
        if ".norm3." in name:
            shared[name] = shared[name.replace("norm3", "downsample.1")]
    raft.load_state_dict(shared)
    theirs.model, theirs.device = raft.eval(), "cpu"
    scores: list[float] = []
    check = theirs.check_move
    theirs.check_move = lambda values: scores.extend(values) or check(values)
    moves = theirs.infer(str(film))
    seen: list[float] = []
    values = Motion.values
    monkeypatch.setattr(Motion, "values", lambda *given: seen.extend((row := values(*given))[:, 0]) or row)
    options = {"raft-large": {"local": str(settings["local"]), "updates": 20}}
    assert ours(film, "dynamic_degree", options) == float(moves)
    assert seen == pytest.approx(scores, rel=1e-5) and len(seen) == 4


def test_aesthetic_quality_when_vbench_measures_it_is_the_same(vbench, film, tmp_path):
    import torch
    from transformers import CLIPVisionModelWithProjection

    settings = tiny_settings("laion-l-14", tmp_path / "laion")
    tower = CLIPVisionModelWithProjection.from_pretrained(settings["local"]).eval()
    head = torch.nn.Linear(16, 1)
    head.load_state_dict(torch.load(settings["head"], weights_only=True))

    class Clip(torch.nn.Module):
        def encode_image(self, pixels: Any) -> Any:
            return tower(pixel_values=pixels).image_embeds

    module = vbench("aesthetic_quality")
    theirs, _ = module.laion_aesthetic(head, Clip(), [str(film)], "cpu")
    options = {"laion-l-14": {name: str(path) for name, path in settings.items()}}
    assert ours(film, "aesthetic_quality", options) == pytest.approx(theirs, abs=1e-6)


def test_subject_consistency_when_vbench_measures_it_is_the_same(vbench, film, tmp_path):
    from fabula.models.vision.dino import load_dino
    from fabula.models.vision.weights import Place

    settings = tiny_settings("dino-b-16", tmp_path / "dino")
    network = load_dino(Place(), settings["local"])._network
    theirs, (video,) = vbench("subject_consistency").subject_consistency(
        network.forward, [str(film)], "cpu", read_frame=False
    )
    options = {"dino-b-16": {"local": str(settings["local"])}}
    value = ours(film, "subject_consistency", options)
    assert value == pytest.approx(video["video_results"], abs=1e-5) == pytest.approx(theirs, abs=1e-5)
