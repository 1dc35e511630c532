"""Bad input to shot scripts and shot images, each with the real command: refused or told, nothing lost."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.drawn_shots import draw_reference, draw_shot_outputs, draw_shot_set
from fabula.testing.table_detector import SETTINGS

Fabula = Callable[..., subprocess.CompletedProcess[str]]
TABLE = [part for text in SETTINGS for part in ("--set", text)]


@pytest.fixture
def shot_set(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "data", 2)


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return draw_shot_outputs(tmp_path / "model-x", 2)


def change(shot_set: Path, edit: Callable[[Any], object]) -> None:
    path = shot_set / "ViStory/01/story.json"
    script = json.loads(path.read_text("utf-8"))
    edit(script)
    path.write_text(json.dumps(script, ensure_ascii=False), "utf-8")


def crowd(shot_set: Path) -> None:
    for number in range(60):
        file = shot_set / f"ViStory/01/image/Mira/{number:02d}.png"
        file.write_bytes(draw_reference("Mira", number))


def one_name(shot_set: Path) -> None:
    path = shot_set / "ViStory/01/story.json"
    path.write_text(path.read_text("utf-8").replace('"The Fox": {', '"Mira": {'), "utf-8")


def chinese_only(script: Any) -> None:
    for shot in script["Shots"]:
        for value in shot.values():
            if isinstance(value, dict):
                value.pop("en")


def twice(script: Any) -> None:
    script["Shots"].insert(2, script["Shots"][1])


SPOILT: dict[str, tuple[Callable[[Path], object], int]] = {
    "[no-reference]": (lambda place: [one.unlink() for one in place.glob("ViStory/01/image/Mira/*")], 0),
    "[many-references] expected 1 to 10 images, found 60": (crowd, 0),
    "[not_a_picture]": (lambda place: (place / "ViStory/01/image/Mira/00.png").write_text("no picture"), 1),
    "[repeated-key] 'Mira' occurs twice": (one_name, 1),
    "[repeated-name] 'Mira' is the name of 'Mira', too": (
        lambda place: change(place, lambda script: script["Characters"]["The Fox"].update(name_en="Mira")), 0,
    ),
    "[onstage-unknown] 'Ghost' is no character": (
        lambda place: change(
            place,
            lambda script: script["Shots"][0]["Characters Appearing"].update(en=["Ghost"]),
        ), 1,
    ),
    "[shot-order] expected 1 to 6, found [2] more than once": (lambda place: change(place, twice), 1),
    "[one-language] the list in en is missing": (lambda place: change(place, chinese_only), 0),
}  # fmt: skip


@pytest.mark.parametrize("told", SPOILT)
def test_set_when_spoilt_is_imported_as_far_as_it_goes_and_told(
    fabula_command: Fabula, shot_set: Path, tmp_path: Path, told: str
) -> None:
    spoil, code = SPOILT[told]
    spoil(shot_set)
    done = fabula_command("import", "vistory", shot_set, "--out", tmp_path / "run")
    assert (done.returncode, told in done.stdout) == (code, True), done.stdout + done.stderr
    assert (tmp_path / "run/ViStory/02/story.json").is_file()


def evaluate(
    fabula_command: Fabula, shot_set: Path, outputs: Path, *args: object, **env: str
) -> subprocess.CompletedProcess[str]:
    return fabula_command(
        "evaluate", "images", "--release", shot_set, "--outputs", outputs, "--out", outputs.parent / "run",
        "--workers", "0", *args, env=env or None,
    )  # fmt: skip


def test_device_when_it_is_not_there_is_refused_before_the_first_picture(
    fabula_command: Fabula, shot_set: Path, outputs: Path
) -> None:
    torch = pytest.importorskip("torch", reason="the extra metrics is not installed")
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    done = evaluate(fabula_command, shot_set, outputs, "--metrics", "csd", "--device", "cuda")
    assert done.returncode == 2
    assert "device: this machine has no cuda; it has: cpu" in done.stderr
    assert not (outputs.parent / "run").exists()


def test_weights_when_missing_or_damaged_say_what_is_needed(
    fabula_command: Fabula, shot_set: Path, outputs: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the extra metrics is not installed")
    args = ("--metrics", "csd", "--device", "cpu")
    home = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    missing = evaluate(fabula_command, shot_set, outputs, *args, **home)
    assert missing.returncode == 3, missing.stderr
    assert "weights of pytorch_model.bin of tomg-group-umd/CSD-ViT-L, for csd-vit-l" in missing.stderr
    assert not (outputs.parent / "run").exists()
    (tmp_path / "csd.pth").write_bytes(b"\x80\x02" + bytes(range(256)) * 8)
    given = f'encode_pictures.options={{ "csd-vit-l" = {{ local = "{tmp_path / "csd.pth"}" }} }}'
    damaged = evaluate(fabula_command, shot_set, outputs, *args, "--set", given, **home)
    assert damaged.returncode == 3
    assert f"{tmp_path / 'csd.pth'}, which is damaged, or holds more than tensors" in damaged.stderr
    assert "weights_only" not in damaged.stderr


def test_extra_when_not_installed_lists_all_that_is_missing(
    fabula_command: Fabula, shot_set: Path, outputs: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "known = util.find_spec\n"
        "GONE = {'torch', 'torchvision', 'transformers', 'insightface', 'onnxruntime', 'cv2'}\n"
        "util.find_spec = lambda name, *more: None if name in GONE else known(name, *more)\n"
    )
    bare = {"PYTHONPATH": str(tmp_path / "bare")}
    done = evaluate(fabula_command, shot_set, outputs, "--metrics", "all", "--device", "cpu", **bare)
    assert done.returncode == 3, done.stderr
    for name in ("torch for grounding-dino-swin-t", "torch for inception-v3", "a judge for alignment"):
        assert name in done.stderr
    assert 'pip install "fabula[metrics]"' in done.stderr and not (tmp_path / "run").exists()


def test_set_when_spoilt_is_told_of_before_anything_is_looked_at(
    fabula_command: Fabula, shot_set: Path, outputs: Path
) -> None:
    (shot_set / "ViStory/01/image/Mira/00.png").write_text("no picture")
    done = evaluate(fabula_command, shot_set, outputs, "--metrics", "occm", "--device", "cpu", *TABLE)
    assert done.returncode == 0
    assert "the set: 1 unreadable-picture; fabula validate lists them" in done.stderr
    dry = evaluate(
        fabula_command,
        shot_set,
        outputs,
        "--metrics",
        "occm",
        "--device",
        "cpu",
        *TABLE,
        "--dry-run",
        "--json",
    )
    plan = json.loads(dry.stdout)
    assert plan["budget"]["errors"] == {"unreadable-picture": 1}
    assert plan["vision"]
    assert all(entry["measured"] == [] for entry in plan["vision"])  # a detector of ours that nobody measured


def test_outputs_when_there_are_two_timestamps_ask_which(
    fabula_command: Fabula, shot_set: Path, outputs: Path, tmp_path: Path
) -> None:
    for stamp in ("20250101_101010", "20250202_101010"):
        draw_shot_outputs(tmp_path / "stamped" / stamp, 2)
    args = ("--metrics", "occm", "--device", "cpu", *TABLE)
    asked = evaluate(fabula_command, shot_set, tmp_path / "stamped", *args)
    assert asked.returncode == 2 and "choose with --timestamp, or latest" in asked.stderr
    chosen = evaluate(fabula_command, shot_set, tmp_path / "stamped", *args, "--timestamp", "latest")
    assert chosen.returncode == 0, chosen.stderr


def test_method_when_it_has_nothing_for_a_story_is_counted_not_scored_as_zero(
    fabula_command: Fabula, shot_set: Path, outputs: Path
) -> None:
    for file in sorted(outputs.glob("02/shots/*"), reverse=True):
        file.unlink()
    done = evaluate(fabula_command, shot_set, outputs, "--metrics", "occm", "--device", "cpu", *TABLE)
    assert done.returncode == 0 and "model-x: 5 of 10 shots looked at" in done.stdout
    scored = json.loads(fabula_command("score", outputs.parent / "run", "--json").stdout)["methods"][0]
    assert scored["accounting"]["stories_without_shot"] == 1
    assert scored["scores"]["occm"]["value"] == 100
    assert scored["scores"]["occm"]["counts"]["stories_counted"] == 1
