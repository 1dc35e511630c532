"""Frames of generated videos, as judges get them."""

import io
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.evaluation.events.settings import prepare_video
from fabula.evaluation.judging.pictures import (
    ImageSettings,
    foreign_chunks,
    keep_pictures,
    kept_picture,
    prepare_storyboard,
)
from fabula.evaluation.outputs.videos import frame_count
from fabula.media.images import MediaProblem
from fabula.schemas.canonical import sha256_bytes
from fabula.testing.drawn import write_storyboard, write_video


@pytest.mark.parametrize(
    ("frames", "count"),
    # floor(K / 4) between 4 and 32; the lengths from 16 to 313 are those of Table 5.
    [
        (1, 4),
        (16, 4),
        (19, 4),
        (20, 5),
        (49, 12),
        (80, 20),
        (93, 23),
        (120, 30),
        (127, 31),
        (128, 32),
        (313, 32),
    ],
)
def test_frame_count_when_worked_by_hand_agrees(frames: int, count: int) -> None:
    assert frame_count(frames) == count


def test_prepare_video_when_sound_gives_frames_as_eq_2_says(tmp_path: Path) -> None:
    video = prepare_video(write_video(tmp_path / "one.mp4", 25), ImageSettings(max_side=32))
    # 25 frames: floor(25 / 4) = 6; i * 24 // 5
    assert video.indices == (0, 4, 9, 14, 19, 24)
    assert video.times == tuple(Fraction(index, 8) for index in video.indices)
    assert video.info.frames == 25
    assert {(one.width, one.height) for one in video.pictures} == {(32, 24)}
    assert len({one.sha256 for one in video.pictures}) == 6


@pytest.mark.parametrize("frames", [1, 3])
def test_prepare_video_when_shorter_than_four_frames_names_the_problem(tmp_path: Path, frames: int) -> None:
    with pytest.raises(MediaProblem) as raised:
        prepare_video(write_video(tmp_path / "short.mp4", frames), ImageSettings())
    assert raised.value.code == "too_few_frames"


# Pictures for judges: decoded and encoded once, kept under the hash of their bytes.


def test_prepare_storyboard_when_settings_differ_follows_them(tmp_path: Path) -> None:
    files = write_storyboard(tmp_path)
    for settings, size, kind in (
        (ImageSettings(), (64, 48), "image/jpeg"),
        (ImageSettings(max_side=32, format="png"), (32, 24), "image/png"),
        (ImageSettings(max_side=None), (64, 48), "image/jpeg"),
    ):
        prepared = prepare_storyboard(files, settings)
        assert len(prepared) == 5
        for one in prepared:
            assert ((one.width, one.height), one.media_type) == (size, kind)
            assert Image.open(io.BytesIO(one.data)).size == size
            assert one.sha256 == sha256_bytes(one.data)
            assert foreign_chunks(one.data) == ()
        assert prepared == prepare_storyboard(files, settings)


def test_prepare_storyboard_when_files_are_unusable_lists_all_of_them(tmp_path: Path) -> None:
    files = write_storyboard(tmp_path)
    files[1].write_bytes(b"")
    files[3].unlink()
    with pytest.raises(InputError) as raised:
        prepare_storyboard(files, ImageSettings())
    assert [getattr(problem, "code", None) for problem in raised.value.problems] == ["empty", "missing"]


def test_kept_picture_when_kept_comes_back_the_same(tmp_path: Path) -> None:
    prepared = prepare_storyboard(write_storyboard(tmp_path / "story"), ImageSettings())
    store = tmp_path / "images"
    names = keep_pictures(prepared, store)
    assert keep_pictures(prepared, store) == names
    assert sorted(path.name for path in store.iterdir()) == sorted(set(names))
    for name, one in zip(names, prepared, strict=True):
        assert kept_picture(store, name) == one.part


def test_kept_picture_when_changed_or_lost_refuses(tmp_path: Path) -> None:
    prepared = prepare_storyboard(write_storyboard(tmp_path / "story"), ImageSettings())
    names = keep_pictures(prepared, tmp_path)
    (tmp_path / names[0]).write_bytes(b"other")
    (tmp_path / names[1]).unlink()
    for name in names[:2]:
        with pytest.raises(InputError, match="the file that its name says"):
            kept_picture(tmp_path, name)
