"""Weights of an evaluation: what is missing is listed at once, and other files are looked at anew."""

from pathlib import Path

import pytest

from fabula.errors import MissingRequirement
from fabula.evaluation.looking import check_weights
from fabula.evaluation.shots.requests import ImageOptions, images_request
from fabula.testing.drawn_shots import draw_shot_set

pytest.importorskip("torch", reason="the extra metrics is not installed")
pytest.importorskip("insightface", reason="the extra metrics is not installed")


def test_weights_when_several_are_missing_are_listed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    options = ImageOptions(metrics=("cids", "csd", "aesthetic", "inception"), device="cpu")
    request = images_request(draw_shot_set(tmp_path / "set"), [], tmp_path / "run", options)
    with pytest.raises(MissingRequirement) as told:
        check_weights(request.config)
    found = told.value.found
    for name in (
        "grounding-dino-swin-t", "clip-vit-l-14", "arcface-r100", "adaface-ir101", "facenet-vggface2",
        "csd-vit-l", "aesthetic-v2.5", "inception-v3",
    ):  # fmt: skip
        assert f"for {name}" in found
    for file in ("adaface_ir_101.onnx", "20180402-114759-vggface2.onnx", "aesthetic_predictor_v2_5.pth"):
        assert file in found
    assert "fetch it with: fabula models fetch vision --model adaface-ir101" in found


def test_settings_when_a_file_of_weights_is_replaced_are_others(tmp_path: Path) -> None:
    file = tmp_path / "csd.pth"
    folder = draw_shot_set(tmp_path / "set")

    def settings() -> object:
        options = ImageOptions(
            metrics=("csd",), device="cpu",
            settings=(f'encode_pictures.options={{ "csd-vit-l" = {{ local = "{file}" }} }}',),
        )  # fmt: skip
        return images_request(folder, [], tmp_path / "run", options).config.stages["encode_pictures"]

    absent = settings()
    file.write_bytes(b"one")
    first, again = settings(), settings()
    file.write_bytes(b"two")
    other = settings()
    assert first == again
    assert len({repr(one) for one in (absent, first, other)}) == 3
