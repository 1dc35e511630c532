"""Every metric with the real classes of the registered models and small random weights, end to end."""

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabula
from fabula.errors import MissingRequirement
from fabula.evaluation.metrics.metric import CROPS
from fabula.evaluation.outputs import layout
from fabula.evaluation.running import check_weights
from fabula.evaluation.shots import looking
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions, images_request
from fabula.evaluation.shots.scores import score_folder
from fabula.media import images
from fabula.media.images import DECODED, DecodedPictures, Picture, open_picture
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import AlignmentModel
from fabula.testing.tiny_vision import write_shot_settings

pytestmark = pytest.mark.slow

for _library in ("torch", "torchvision", "transformers", "onnx", "onnxruntime", "cv2"):
    pytest.importorskip(_library, reason=f"{_library} is not installed: the extra metrics is missing")

METRICS = ("cids", "copy-paste", "occm", "csd", "aesthetic", "inception", "clip-score")


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that says where the weights of every default model lie."""
    import torch

    monkeypatch.setenv("YOLO_OFFLINE", "1")
    torch.set_num_threads(1)
    return write_shot_settings(tmp_path)


def test_images_when_looked_at_with_small_networks_get_every_score(settings_file, tmp_path):
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
    known = {key: score.value for key, score in method.scores.items()}
    check_at_hand(shot_set, outputs, settings_file, known)


def check_at_hand(shot_set: Path, outputs: Path, settings_file: Path, known: dict[str, float | None]) -> None:
    """``fabula.metric`` of files, arrays and tensors gives what the evaluation of them gave."""
    import torch

    stages = tomllib.loads(settings_file.read_text("utf-8")).values()
    models = {model: given for stage in stages for model, given in stage["options"].items()}
    whole = read_shot_set(shot_set)[0]
    (story,) = whole.stories
    references = {key: [whole.path(image) for image in some] for key, some in story.references.items()}
    given = {
        "expected": [shot.characters for shot in story.script.shots],
        "texts": [shot.static.of("en") if shot.static else "" for shot in story.script.shots],
        "tags": {key: sheet.tag for key, sheet in story.script.characters.items()},
    }
    files = sorted((outputs / "01" / "shots").iterdir())
    arrays = [np.asarray(open_picture(file).image) for file in files]
    tensors = [torch.from_numpy(array.copy()).permute(2, 0, 1).float() / 255 for array in arrays]
    for name in METRICS:
        measure = fabula.metric(name, device="cpu", models=models)
        values = measure(files, references, **given)
        assert values and values == pytest.approx({key: known[key] for key in values})
        for pictures in (arrays, tensors) if name in ("csd", "occm") else ():
            assert measure(pictures, references, **given) == pytest.approx(values)


# Weights of an evaluation: what is missing is listed at once, and other files are looked at anew.

pytest.importorskip("torch", reason="the extra metrics is not installed")
pytest.importorskip("onnxruntime", reason="the extra metrics is not installed")


def test_weights_when_several_are_missing_are_listed_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    options = ImageOptions(metrics=("cids", "csd", "aesthetic", "inception"), device="cpu")
    request = images_request(draw_shot_set(tmp_path / "set"), [], tmp_path / "run", options)
    with pytest.raises(MissingRequirement) as told:
        check_weights(request.config)
    looking = told.value.found
    for name in (
        "grounding-dino-swin-t", "clip-vit-l-14", "arcface-r100", "adaface-ir101", "facenet-vggface2",
        "csd-vit-l", "aesthetic-v2.5", "inception-v3",
    ):  # fmt: skip
        assert name in looking
    assert "fabula models fetch vision --model grounding-dino-swin-t" in told.value.fix
    assert "--model adaface-ir101" in told.value.fix


# Judged alignment where torch cannot be imported: needed only where single characters are cut out.

FAILURES = ("ImportError", "OSError")


def evaluated(
    folder: Path, server: ModelServer, error: str, dimensions: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process whose torch raises an error when it is imported."""
    fake = folder / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text(f"raise {error}('libtorch.so: broken')\n", "utf-8")
    command = (
        "evaluate", "images", "--release", draw_shot_set(folder / "data", 1),
        "--outputs", draw_shot_outputs(folder / "model-x", 1), "--metrics", "alignment",
        "--judge", f"{server.openai_url}#tested", "--out", folder / "run", "--workers", 0,
        "--set", f"judge_alignment.dimensions={json.dumps(dimensions)}",
    )  # fmt: skip
    # Before the installed library: the path that the environment names comes first.
    env = {**os.environ, "PYTHONPATH": str(fake.parent)}
    return subprocess.run(
        [sys.executable, "-m", "fabula.cli.main", *map(str, command)],
        check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("error", FAILURES)
def test_alignment_when_no_dimension_needs_a_detector_needs_no_torch(error: str, tmp_path: Path) -> None:
    with ModelServer(AlignmentModel()) as server:
        done = evaluated(tmp_path, server, error, ["scene", "shot", "interaction"])
        assert done.returncode == 0, done.stderr
        assert server.count > 0


def test_alignment_when_a_dimension_needs_a_detector_says_that_torch_is_missing(tmp_path: Path) -> None:
    with ModelServer(AlignmentModel()) as server:
        done = evaluated(tmp_path, server, "OSError", ["scene", "action"])
        assert (done.returncode, server.count) == (3, 0), done.stderr
        assert "torch" in done.stderr and "fabula[metrics]" in done.stderr


# How often a picture is opened, by the check and by each stage that looks at it; it is decoded once.

Evaluate = Callable[..., Any]


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Where a picture is opened -> how often, for shots of the drawn method."""
    counts: Counter[str] = Counter()

    def counted(what: str) -> Callable[..., Picture]:
        def opened(source: Any, *args: Any, **more: Any) -> Picture:
            counts[what] += 1
            return open_picture(source, *args, **more)

        return opened

    monkeypatch.setattr(layout, "open_picture", counted("check"))
    monkeypatch.setattr(looking, "open_picture", counted("stages"))
    return counts


@pytest.mark.parametrize(
    ("metrics", "shots", "references"),
    [
        ("occm", 1, 1),  # the detector
        ("csd", 1, 1),  # style
        ("csd,aesthetic,inception,clip-score", 1, 1),  # all that look at whole pictures, in one stage
        ("aesthetic,inception,clip-score", 1, 0),  # references are of no use to them
        ("cids,copy-paste,occm", 2, 2),  # the detector, then crops
        ("cids,csd,aesthetic,inception,clip-score", 3, 3),
    ],
)
def test_pictures_when_looked_at_are_opened_once_by_each_stage_that_looks(
    evaluate: Evaluate, model_x: Path, asked_for: Counter[str], metrics: str, shots: int, references: int
) -> None:
    evaluate(model_x, metrics=metrics)
    # 14 pictures of shots; 3 stories of 3 characters with 2 references each
    assert asked_for["stages"] == 14 * shots + 18 * references
    assert asked_for["check"] == 14
    evaluate(model_x, metrics=metrics)
    assert asked_for["stages"] == 14 * shots + 18 * references, "a finished run looks at nothing again"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """First bytes of what is decoded -> how often; nothing is decoded yet."""
    counts: Counter[bytes] = Counter()
    load = images._load

    def counted(opened: Any, where: str) -> None:
        counts[opened.fp.getvalue()] += 1
        load(opened, where)

    monkeypatch.setattr(images, "_load", counted)
    DECODED.clear()
    return counts


def test_pictures_when_many_stages_look_are_decoded_once_in_an_evaluation(evaluate, model_x, shot_set, loads):
    evaluate(model_x, metrics="cids,csd,aesthetic,inception,clip-score")
    shots = {path.read_bytes() for path in model_x.rglob("*.png")}
    assert shots <= set(loads)
    assert set(loads.values()) == {1}


def test_results_when_nothing_is_kept_decoded_are_the_same(evaluate, model_x, tmp_path, loads, monkeypatch):
    evaluate(model_x, metrics="cids,csd", out="kept")
    assert max(loads.values()) == 1
    monkeypatch.setattr(images, "DECODED", DecodedPictures(0))
    evaluate(model_x, metrics="cids,csd", out="anew")
    assert max(loads.values()) > 3
    kept, anew = ((tmp_path / name / "images.jsonl").read_bytes() for name in ("kept", "anew"))
    assert kept == anew
