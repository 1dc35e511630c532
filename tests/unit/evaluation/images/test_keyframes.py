"""One video per story becomes pictures of shots: matched by order, listed, corrected by a person."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.outputs.shots import check_shots
from fabula.evaluation.shots.keyframes import Finding, Keyframes, take_keyframes
from fabula.media.images import open_picture
from fabula.media.video import frames_at
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.drawn_videos import Take, write_takes

COLOURS = Finding("histogram")
TAKE = 12
SHOTS = 4


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "set", stories=3, shots=SHOTS, references=1)


def film(path: Path, shots: int, first: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_takes(path, [Take(TAKE, 100 * first + number) for number in range(shots)])
    return path


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """Story 1 has as many shots as its script, story 2 one less, story 3 one more."""
    folder = tmp_path / "videos"
    film(folder / "01.mp4", SHOTS, 1)
    film(folder / "story_02.mkv", SHOTS - 1, 2)
    film(folder / "03" / "any name.mp4", SHOTS + 1, 3)
    return folder


def stories(taken: Keyframes) -> dict[str, Any]:
    return taken.as_json()["stories"]


def same(file: Path, video: Path, frame: int) -> bool:
    (shown,) = frames_at(video, [frame])
    return open_picture(file).image.tobytes() == shown.image.tobytes()


def test_keyframes_when_videos_are_there_matches_by_order_and_lists_the_rest(tmp_path, release, videos):
    out = tmp_path / "outputs" / "method"
    taken = take_keyframes(videos, release, out, COLOURS)
    assert not taken.complete
    assert {key: (one["missing"], one["surplus"]) for key, one in stories(taken).items()} == {
        "01": ([], []), "02": ([4], []), "03": ([], [5]),
    }  # fmt: skip
    # Shot k of twelve frames has frames 12 (k - 1) to 12 k - 1; its middle is the sixth: 12 (k - 1) + 5.
    for shot in range(1, SHOTS + 1):
        assert same(out / "01" / "shots" / f"shot_{shot:02d}.png", videos / "01.mp4", TAKE * (shot - 1) + 5)
    assert sorted(file.name for file in (out / "02" / "shots").iterdir()) == [
        f"shot_{number:02d}.png" for number in (1, 2, 3)
    ]
    lines = list(taken.lines())
    assert lines[0] == "story 02: 3 shots found, 4 in the script; missing: 4; surplus: none"
    assert lines[1] == "story 03: 5 shots found, 4 in the script; missing: none; surplus: 5"
    assert lines[2].startswith("11 of 12 shots have a keyframe in ")


def test_keyframes_when_written_are_outputs_that_an_evaluation_reads(tmp_path, release, videos):
    taken = take_keyframes(videos, release, tmp_path / "method", COLOURS)
    checked = check_shots(taken.folder, read_shot_set(release)[0])
    assert [(issue.code, issue.where) for issue in checked.issues] == [("missing", "02")]
    assert checked.accounting()["shots_valid"] == 11


def corrected(out: Path, **changes: dict[str, Any]) -> Path:
    review = json.loads((out / "keyframes.json").read_text("utf-8"))
    for key, change in changes.items():
        story = review["stories"][key.removeprefix("story_")]
        story["reviewed"] = True
        for number, match in change.items():
            story["shots"][int(number.removeprefix("shot_")) - 1] |= match
    (out / "keyframes.json").write_text(json.dumps(review), "utf-8")
    return out / "keyframes.json"


@pytest.mark.slow
def test_keyframes_when_a_person_corrects_the_file_follow_it(tmp_path, release, videos):
    out = tmp_path / "method"
    take_keyframes(videos, release, out, COLOURS)
    # In story 2 the third shot is missing, not the fourth; in story 3 the second one found is surplus, and
    # the last shot of the script is best seen in frame 50.
    corrected(
        out,
        story_02={"shot_3": {"found": None}, "shot_4": {"found": 3}},
        story_03={"shot_2": {"found": 3}, "shot_3": {"found": 4}, "shot_4": {"frame": 50}},
    )
    taken = take_keyframes(videos, release, out, COLOURS)
    assert taken.complete
    assert stories(taken)["02"]["missing"] == [3]
    assert stories(taken)["03"]["surplus"] == [2, 5]
    assert not (out / "02" / "shots" / "shot_03.png").exists()
    assert same(out / "02" / "shots" / "shot_04.png", videos / "story_02.mkv", 2 * TAKE + 5)
    assert same(out / "03" / "shots" / "shot_02.png", videos / "03" / "any name.mp4", 2 * TAKE + 5)
    assert same(out / "03" / "shots" / "shot_04.png", videos / "03" / "any name.mp4", 50)
    once_more = take_keyframes(videos, release, out, Finding("histogram", 0.9))
    assert once_more.review == taken.review


@pytest.mark.slow
def test_keyframes_when_a_video_is_of_no_story_say_that_it_is_left_out(tmp_path, release, videos):
    for name in ("77.mp4", "01_final_2.mp4"):
        (videos / name).write_bytes((videos / "01.mp4").read_bytes())
    told: list[str] = []
    taken = take_keyframes(videos, release, tmp_path / "method", COLOURS, progress=told.append)
    assert [line.split(":")[0] for line in told[:2]] == ["01_final_2.mp4", "77.mp4"]
    assert told[0].endswith("left out: its name is the number of no story of the set, such as 01.mp4")
    assert stories(taken)["01"]["found"] == SHOTS


@pytest.mark.slow
def test_keyframes_when_videos_are_missing_or_broken_name_them_and_go_on(tmp_path, release, videos):
    (videos / "01.mp4").write_bytes(b"")
    (videos / "story_02.mkv").unlink()
    taken = take_keyframes(videos, release, tmp_path / "method", COLOURS)
    told = stories(taken)
    assert [told[key]["problem"] for key in ("01", "02", "03")] == ["empty", "missing", None]
    assert told["01"]["missing"] == [1, 2, 3, 4]
    assert len(list((tmp_path / "method" / "03" / "shots").iterdir())) == SHOTS
    film(videos / "01.mp4", SHOTS, 1)
    assert stories(take_keyframes(videos, release, tmp_path / "method", COLOURS))["01"]["problem"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"shot_1": {"found": 9}}, "expected a shot of the video, 1 to 4, or null, found 9"),
        ({"shot_1": {"frame": 48}}, "expected a frame of the video, 0 to 47, or null, found 48"),
        ({"shot_2": {"shot": 1}}, "expected shots [1, 2, 3, 4], each once, found shots [1, 1, 3, 4]"),
        ({"shot_1": {"frame": "first"}}, "this is no review file of keyframes: "),
    ],
)
def test_keyframes_when_correction_is_wrong_says_where(tmp_path, release, videos, change, found):
    out = tmp_path / "method"
    take_keyframes(videos, release, out, COLOURS)
    before = (out / "01" / "shots" / "shot_01.png").read_bytes()
    corrected(out, story_01=change)
    with pytest.raises(InputError) as caught:
        take_keyframes(videos, release, out, COLOURS)
    assert found in str(caught.value)
    assert (out / "01" / "shots" / "shot_01.png").read_bytes() == before


@pytest.mark.slow
def test_keyframes_when_reviewed_video_is_another_now_refuses(tmp_path, release, videos):
    out = tmp_path / "method"
    take_keyframes(videos, release, out, COLOURS)
    corrected(out, story_01={"shot_1": {"frame": 3}})
    film(videos / "01.mp4", SHOTS, 7)
    with pytest.raises(InputError, match="the video that was reviewed, found another one"):
        take_keyframes(videos, release, out, COLOURS)
    (videos / "01.mp4").unlink()
    with pytest.raises(InputError, match="the video that was reviewed, found none"):
        take_keyframes(videos, release, out, COLOURS)
    assert (out / "01" / "shots" / "shot_01.png").exists()


@pytest.mark.slow
def test_keyframes_when_stopped_midway_go_on_there(tmp_path: Path, release: Path, videos: Path) -> None:
    out, told = tmp_path / "method", []

    def stop(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_keyframes(videos, release, out, COLOURS, progress=stop)
    assert told == ["story 01: 4 shots", "story 02: 3 shots"]
    told.clear()
    taken = take_keyframes(videos, release, out, COLOURS, progress=told.append)
    assert told == ["story 03: 5 shots"]
    assert {key: one["found"] for key, one in stories(taken).items()} == {"01": 4, "02": 3, "03": 5}
