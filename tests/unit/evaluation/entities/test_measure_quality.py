"""The stage that measures a shot's picture quality, through real networks with random weights."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.engine.stage import Item, Made, Tools
from fabula.evaluation.entities.archived import QUALITY
from fabula.evaluation.entities.measure_quality import _results, measure_quality
from fabula.evaluation.entities.quality import (
    MODELS,
    QualitySettings,
    match_results,
    write_results,
)
from fabula.models.vision.needs import with_weights
from fabula.schemas.canonical import canonical_bytes, sha256_file
from fabula.testing.drawn_videos import Take, draw_takes, write_frames, write_sound
from fabula.testing.tiny_vision import tiny_settings

pytest.importorskip("av", reason="the extra video is not installed")

pytestmark = pytest.mark.slow

TABLE = "fabula.testing.table_detector:"
STAND_INS = {
    "imaging_quality": f"{TABLE}load_brightness",
    "motion_smoothness": f"{TABLE}load_still_flow",
    "dynamic_degree": f"{TABLE}load_still_flow",
}
"""In the place of RAFT, which is slow, and of MUSIQ, which is in an extra of its own."""


@pytest.fixture(autouse=True)
def anew() -> None:
    _results.cache_clear()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names = {name for models in MODELS.values() for name in models.values()} - {"musiq-spaq"}
    folder = tmp_path_factory.mktemp("weights")
    made = {name: tiny_settings(name, folder / name) for name in sorted(names)}
    return {name: {key: str(value) if isinstance(value, Path) else value for key, value in one.items()}
            for name, one in made.items()}  # fmt: skip


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "001_002.mp4"
    return write_frames(path, draw_takes([Take(9, 3, pan=2)], (160, 90)), fps=24)


def settings_of(weights: dict[str, Any], **chosen: Any) -> QualitySettings:
    return with_weights(
        QualitySettings(**{"options": weights, "models": STAND_INS, "batch": 4, "wanted": True, **chosen})
    )


def shot_of(file: Path | None, start: int | None = None, stop: int | None = None, code: Any = None) -> Item:
    sha256 = None if file is None or not file.exists() else sha256_file(file)
    video = {"file": None if file is None else str(file), "sha256": sha256, "start": start, "stop": stop}
    return Item("m/e/001_002", {"shot": {"key": "1:2", "video": video, "code": code}})


def quality_of(item: Item, settings: QualitySettings) -> Any:
    made = measure_quality(item, Tools(settings=settings, created_at="2026-01-01T00:00:00Z"))
    assert isinstance(made, Made) and canonical_bytes(made.fields["quality"])
    return made.fields["quality"]


def decoded(file: Path) -> list[Any]:
    import av

    with av.open(str(file)) as container:
        return [frame.to_image() for frame in container.decode(video=0)]


def test_measure_when_defined_by_the_paper_equals_the_libraries_on_the_decoded_frames(film, weights):
    from fabula.models.vision.registry import open_vision
    from fabula.models.vision.weights import Place

    found = quality_of(shot_of(film), settings_of(weights, definition="paper"))
    assert found["definition"] == "paper" and found["why"] == {}
    assert list(found["values"]) == list(QUALITY) and None not in found["values"].values()
    frames = decoded(film)
    rows = open_vision("dinov2-base", Place(), weights["dinov2-base"]).encode(frames)
    rated = open_vision("laion-b-32", Place(), weights["laion-b-32"]).predict(frames)
    arrays = [np.asarray(frame, dtype=np.float64) for frame in frames]
    values = found["values"]
    assert values["subject_consistency"] == pytest.approx(
        np.mean([a @ b for a, b in pairwise(rows)]), abs=1e-5
    )
    differences = [np.abs(a - b).mean() / 255 for a, b in pairwise(arrays)]
    assert values["temporal_flickering"] == pytest.approx(1 - np.mean(differences), abs=1e-6)
    assert values["aesthetic_quality"] == pytest.approx(rated.mean() / 10, abs=1e-5)
    assert values["imaging_quality"] == pytest.approx(1 + 9 * np.mean(arrays) / 255, abs=1e-4)
    blended = [np.abs((arrays[i] + arrays[i + 2]) / 2 - arrays[i + 1]).mean() / 255 for i in range(0, 7, 2)]
    assert values["motion_smoothness"] == pytest.approx(1 - np.mean(blended), abs=1e-6)
    assert values["dynamic_degree"] == 0
    assert found["models"].keys() == set(QUALITY) - {"temporal_flickering"}, "that one takes no model"


def test_measure_when_defined_by_vbench_leaves_motion_smoothness_to_its_own_results(film, weights):
    found = quality_of(shot_of(film), settings_of(weights, definition="vbench"))
    lacking = [name for name in QUALITY if found["values"][name] is None]
    assert lacking == ["motion_smoothness"] and "AMT-S" in found["why"]["motion_smoothness"]
    assert found["values"]["dynamic_degree"] in (0.0, 1.0)
    assert found["models"]["subject_consistency"].startswith("dino-b-16@")


def test_measure_when_a_shot_is_part_of_a_film_takes_its_frames_alone(tmp_path, weights):
    takes = [Take(6, 3, pan=2), Take(8, 4, pan=1), Take(6, 5)]
    whole = write_frames(tmp_path / "film.mp4", draw_takes(takes, (160, 90)), fps=24)
    chosen = settings_of(weights, definition="paper", measures=["temporal_flickering", "imaging_quality"])
    found = quality_of(shot_of(whole, 6, 14), chosen)["values"]
    arrays = [np.asarray(frame, dtype=np.float64) for frame in decoded(whole)[6:14]]
    differences = [np.abs(a - b).mean() / 255 for a, b in pairwise(arrays)]
    assert found["temporal_flickering"] == pytest.approx(1 - np.mean(differences), abs=1e-6)
    assert found["imaging_quality"] == pytest.approx(1 + 9 * np.mean(arrays) / 255, abs=1e-4)


def odd(film: Path, folder: Path) -> Iterator[tuple[str, Path, str]]:
    torn = folder / "torn.mp4"
    torn.write_bytes(film.read_bytes()[:2000])
    yield "torn", torn, "truncated"
    yield "sound", write_sound(folder / "sound.mp4"), "no_video"
    yield "gone", folder / "gone.mp4", "missing"


def test_measure_when_a_video_cannot_be_decoded_gives_reasons_without_a_path(film, tmp_path, weights):
    chosen = settings_of(weights, definition="vbench", measures=["temporal_flickering", "imaging_quality"])
    for _, file, code in odd(film, tmp_path):
        found = quality_of(shot_of(file), chosen)
        assert set(found["values"].values()) == {None} and found["why"].keys() == set(QUALITY)
        assert found["why"]["temporal_flickering"].startswith(f"{code}: expected")
        assert found["why"]["aesthetic_quality"].startswith("left out")
        assert str(tmp_path) not in str(found)


def test_measure_when_run_again_asks_raft_nothing(tmp_path, weights, monkeypatch):
    from fabula.models.vision.flow import RaftFlow

    small = write_frames(tmp_path / "small.mp4", draw_takes([Take(3, 3, pan=2)], (70, 58)), fps=24)
    measures = ["motion_smoothness", "dynamic_degree"]
    chosen = settings_of(weights, definition="paper", models={}, measures=measures)
    first = quality_of(shot_of(small), chosen)
    assert 0 < first["values"]["motion_smoothness"] < 1, "70 x 58 is padded to 128 x 128"
    assert first["models"]["dynamic_degree"].startswith("raft-large@")
    monkeypatch.setattr(RaftFlow, "flows", lambda *_: pytest.fail("it was asked again"))
    again = quality_of(shot_of(small), chosen.model_copy(update={"moving": 1e-9}))
    assert again["values"]["motion_smoothness"] == first["values"]["motion_smoothness"]
    assert again["values"]["dynamic_degree"] == 1


@pytest.fixture
def results(film: Path, tmp_path: Path) -> Path:
    def rows(value: Any) -> list[Any]:
        return [0.0, [{"video_path": f"/their/{film.parent.name}/{film.name}", "video_results": value}]]

    source = tmp_path / "results_eval_results.json"
    source.write_bytes(canonical_bytes({"motion_smoothness": rows(0.987), "dynamic_degree": rows(True)}))
    write_results(tmp_path / "vbench.json", match_results([source], [film.parent]))
    return tmp_path / "vbench.json"


def test_measure_when_results_of_vbench_are_given_takes_them_and_measures_the_rest(
    film: Path, results: Path, weights: dict[str, Any], tmp_path: Path
) -> None:
    chosen = settings_of(weights, definition="vbench", results=str(results))
    assert chosen.taken == ("motion_smoothness", "dynamic_degree")
    assert STAND_INS["dynamic_degree"] not in chosen.looking()
    found = quality_of(shot_of(film), chosen)
    assert (found["values"]["motion_smoothness"], found["values"]["dynamic_degree"]) == (0.987, 1.0)
    assert found["why"] == {} and found["models"]["motion_smoothness"].startswith("VBench's own results")
    other = write_frames(tmp_path / "other.mp4", draw_takes([Take(5, 9)]), fps=24)
    found = quality_of(shot_of(other), chosen)
    assert found["values"]["dynamic_degree"] is None and found["values"]["temporal_flickering"] is not None
    assert found["why"]["dynamic_degree"] == "the file of VBench's results has no value for this video"
