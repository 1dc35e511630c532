"""References whose crops show no face: all of them count whole."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import Item, Made, Tools
from fabula.evaluation.metrics.vectors import unpacked
from fabula.evaluation.shots import encode_crops
from fabula.evaluation.shots.settings import CropSettings
from fabula.models.vision.store import VectorStore


class Faces:
    """An encoder that finds a face in pictures of one width only."""

    card = SimpleNamespace(name="faces")

    def __init__(self, width: int) -> None:
        self.width, self.identity = width, f"faces-{width}"

    def encode(self, images: Any) -> Any:
        rows = [(1.0, 0.0) if image.width == self.width else (np.nan, np.nan) for image in images]
        return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("width", "whole", "known"),
    [(20, ["Ann"], [True, True]), (8, [], [True, False]), (3, ["Ann"], [False] * 2)],
)
def test_references_when_no_crop_has_a_face_count_whole(
    width: int, whole: list[str], known: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number in range(2):
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / f"{number}.png")
        files.append({"file": str(tmp_path / f"{number}.png")})
    story = {"script": {"Characters": {"Ann": {"tag": "realistic_human"}}}, "references": {"Ann": files}}
    boxes = {"shots": {}, "references": {"Ann": [[[0, 0, 8, 20, 0.9]], []]}}
    monkeypatch.setattr(encode_crops, "opened", lambda *_: Faces(width))
    monkeypatch.setattr(VectorStore, "of_user", VectorStore)
    settings = CropSettings(pictures=(), faces=("faces",))
    item = Item("m/01", {"story": story, "shots": [], "boxes": boxes})
    (made,) = encode_crops.run_batch([item], Tools(settings, "2026-01-01T00:00:00Z"))
    assert isinstance(made, Made)
    crops = made.fields["crops"]
    rows = unpacked(crops["references"]["Ann"]["faces"])
    assert (crops["whole_references"], (~np.isnan(rows).any(axis=1)).tolist()) == (whole, known)
    assert bool(crops["mirrors"]["Ann"]) == any(known)
