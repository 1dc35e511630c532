"""SAM 2 in the place of the key's colour: real classes with small random weights, plumbing only."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import ConfigError, MissingRequirement
from fabula.generation.memory.bank import read_bank
from fabula.generation.memory.pipeline import MemoryOptions, build_memory, memory_request
from fabula.models.vision.registry import open_vision
from fabula.models.vision.segmenters import LAYOUTS, SAM2_SOURCE, load_sam2
from fabula.models.vision.types import Points, Segmenter
from fabula.models.vision.weights import Place
from fabula.testing.tiny_vision import tiny_settings
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode

if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "transformers")):
    pytest.skip("the extra metrics is missing", allow_module_level=True)
NAME = "sam2.1-hiera-tiny"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    local = tiny_settings(NAME, tmp_path_factory.mktemp("sam2"))["local"]
    assert isinstance(local, Path)
    return local


def test_segmenter_when_points_differ_gives_masks_of_the_pictures_size(weights: Path) -> None:
    model = open_vision(NAME, Place(), {"local": str(weights)}, "segmenter")
    assert isinstance(model, Segmenter)
    rng = np.random.default_rng(3)
    pictures = [Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
                for height, width in ((90, 60), (64, 128))]  # fmt: skip
    masks = model.segment(pictures, [LAYOUTS["character"], LAYOUTS["object"]])
    assert [(mask.shape, mask.dtype) for mask in masks] == [((90, 60), bool), ((64, 128), bool)]
    again = load_sam2(Place(), weights).segment(pictures[:1], [LAYOUTS["character"]])
    assert np.array_equal(again[0], masks[0]), "loaded again it is the same"
    other = model.segment(pictures[:1], [Points(((0.1, 0.1),))])
    assert other[0].shape == (90, 60)
    assert model.segment([], []) == []


def test_segmenter_when_no_folder_is_named_says_what_is_needed() -> None:
    with pytest.raises(MissingRequirement, match="no folder with them is named"):
        load_sam2(Place())
    assert SAM2_SOURCE.revision == "", "no commit is claimed that nobody looked at"


def test_bank_when_a_segmenter_is_named_is_cut_by_it_and_says_so(weights: Path, tmp_path: Path) -> None:
    write_episodes(tmp_path / "set", [written_episode("ep_a", SHOTS[:1])])
    sets: dict[str, object] = {
        "draw_references.portrait": [128, 160], "draw_references.square": [128, 128],
    }  # fmt: skip
    config = tmp_path / "fabula.toml"
    config.write_text(f'[draw_references]\noptions."{NAME}".local = "{weights}"\n', "utf-8")
    given: dict[str, Any] = {
        "image": "image:drawn:faithful", "segmenter": NAME, "candidates": 1, "retries": 0, "device": "cpu",
        "workers": 0, "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    build_memory(tmp_path / "set", tmp_path / "run", MemoryOptions(settings=sets, config=config, **given))
    ana = read_bank(tmp_path / "run").entry("ep_a", "character", "Ana")
    assert ana is not None and str(ana.record.segmenter).startswith(f"{NAME}@")
    # Random weights cut out anything: what counts is that it was checked, and kept as it is.
    assert ana.record.status in ("verified", "unverified") and ana.record.checks
    with Image.open(ana.folder / "cutout.png") as cut:
        assert cut.mode == "RGBA" and cut.size == (128, 160)


def test_request_when_there_is_no_such_segmenter_says_so(tmp_path: Path) -> None:
    write_episodes(tmp_path / "set", [written_episode("ep_a", SHOTS[:1])])
    with pytest.raises(ConfigError, match="there is no such model"):
        memory_request(
            tmp_path / "set", tmp_path / "run",
            MemoryOptions(image="image:drawn:faithful", segmenter="sam99", device="cpu"),
        )  # fmt: skip
