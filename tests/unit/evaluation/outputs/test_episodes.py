"""Videos of episodes on disk: the right one for each shot, and a clear finding for everything else."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.errors import InputError
from fabula.evaluation.outputs.entities import (
    FATAL,
    BadCuts,
    CheckOptions,
    EpisodeOutputs,
    Span,
    check_episodes,
    read_cuts,
)
from fabula.evaluation.outputs.layout import require_shots
from fabula.releases.entities.tree import EntitySet, read_entity_set
from fabula.testing.drawn import write_video
from fabula.testing.drawn_entities import write_outputs
from fabula.testing.drawn_videos import Take, write_sound, write_takes
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

KEYS = ("1:1", "1:2", "2:1", "2:2", "2:3")
BY_HISTOGRAM = CheckOptions("histogram")


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "episodes")


@pytest.fixture
def entity_set(episodes: Path) -> EntitySet:
    return read_entity_set(episodes)[0]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return write_outputs(tmp_path / "model-x", [written_episode(), written_episode("ep_b", SECOND)])


def check_command(*args: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["outputs", "check", *map(str, args)])
    return done.exit_code, done.output


def codes(report: EpisodeOutputs) -> dict[str, int]:
    return dict(report.counts)


def invalid(report: EpisodeOutputs) -> dict[str, str | None]:
    return {
        f"{output.unit}/{shot.key}": shot.code
        for output in report.outputs
        for shot in output.shots
        if shot.code is not None
    }


def test_check_when_all_is_there_finds_nothing(outputs: Path, entity_set: EntitySet) -> None:
    report = check_episodes(outputs, entity_set)
    assert report.ok
    assert codes(report) == {}
    assert report.accounting()["shots_valid"] == 7
    assert [shot.key for shot in report.by_id["ep_a"].shots] == list(KEYS)
    assert report.summary().endswith("model-x: 7 of 7 shots in 2 episodes, 2 complete")


def test_check_when_shots_are_missing_short_or_broken_lists_them_per_episode(outputs, entity_set):
    inside = outputs / "ep_a"
    (inside / "001_001.mkv").unlink()
    write_video(inside / "001_002.mp4", 4)
    (inside / "001_002.mkv").unlink()
    (inside / "002_001.mkv").write_bytes(b"")
    (inside / "002_002.mkv").unlink()
    write_sound(inside / "002_002.mp4")
    (inside / "002_003.mkv").write_bytes((inside / "002_003.mkv").read_bytes()[:-2000])
    for path in (outputs / "ep_b").iterdir():
        path.unlink()
    (outputs / "ep_b").rmdir()
    report = check_episodes(outputs, entity_set)
    assert codes(report) == {"missing": 2, "short-shot": 1, "unreadable-video": 3}
    assert invalid(report) == {
        "ep_a/1:1": "missing", "ep_a/1:2": "too_few_frames", "ep_a/2:1": "empty", "ep_a/2:2": "no_video",
        "ep_a/2:3": "truncated", "ep_b/1:1": "missing", "ep_b/1:2": "missing",
    }  # fmt: skip
    assert [issue.message for issue in report.issues if issue.code == "missing"] == [
        "shot 1:1 is missing",
        "episode ep_b is missing",
    ]


def test_check_when_numbers_do_not_fit_the_schedule_tells_which(outputs: Path, entity_set: EntitySet) -> None:
    inside = outputs / "ep_a"
    (inside / "001_002.mkv").rename(inside / "001_003.mkv")
    (inside / "002_001.mkv").rename(inside / "002_000.mkv")
    (inside / "notes.txt").touch()
    (inside / "001_0021.mkv").touch()
    (outputs / "ep_zzz").mkdir()
    (outputs / ".hidden").touch()
    (outputs / "readme.md").touch()
    report = check_episodes(outputs, entity_set)
    assert codes(report) == {
        "missing": 1, "numbered-from-zero": 1, "unknown-shot": 1, "stray-file": 2, "unknown-episode": 1,
    }  # fmt: skip
    with pytest.raises(InputError) as stop:
        require_shots([report], FATAL, "video")
    assert ["[numbered-from-zero]" in (problem.what or "") for problem in stop.value.problems] == [True]
    unknown = next(issue for issue in report.issues if issue.code == "unknown-shot")
    assert "001_0021.mkv, 001_003.mkv" in unknown.message


def test_check_when_names_links_and_kinds_of_files_are_hostile_still_tells(outputs, entity_set, episodes):
    inside = outputs / "ep_a"
    for key in ("001_001", "001_002", "002_001"):
        (inside / f"{key}.mkv").unlink()
    (inside / "001_001.mp4").symlink_to(inside / "gone.mp4")
    (inside / "001_002.mp4").symlink_to(inside / "001_002.mp4")
    os.mkfifo(inside / "002_001.mp4")
    (inside / "002_002.mp4").mkdir()
    (inside / "a\nb\x1b[31m.mp4").touch()
    Path(os.fsdecode(os.fsencode(inside) + b"/\xff\xfe.mp4")).touch()
    (outputs / "ep_b.mp4").symlink_to("/dev/zero")
    report = check_episodes(outputs, entity_set)
    assert invalid(report) == {"ep_a/1:1": "missing", "ep_a/1:2": "missing", "ep_a/2:1": "missing"}
    assert codes(report) == {"unreadable-video": 3, "stray-file": 3, "mixed-layout": 1}
    code, told = check_command(outputs, "--release", episodes)
    assert code == 1
    assert "ep_a/a\\nb\\x1b[31m.mp4" in told
    assert "\\udcff" in told


def film(folder: Path, frames: int = 12, name: str = "ep_a") -> Path:
    folder.mkdir(exist_ok=True)
    write_takes(folder / f"{name}.mp4", [Take(frames, look) for look in (10, 20, 30, 40, 50)])
    return folder


def test_check_when_an_episode_is_one_video_with_a_cut_list_takes_its_spans(tmp_path, entity_set):
    folder = film(tmp_path / "film")
    (folder / "ep_a.cuts.csv").write_text(
        "shot,start,stop\n1:1,0,12\n1:2,12,24\n2:1,24,27\n2:2,36,48\n9:9,48,60\n"
    )
    report = check_episodes(folder, entity_set)
    spans = {shot.key: shot.span for shot in report.by_id["ep_a"].shots}
    assert spans["1:2"] == Span(12, 24)
    assert invalid(report)["ep_a/2:1"] == "too_few_frames"
    assert invalid(report)["ep_a/2:3"] == "missing"
    assert codes(report) == {"unknown-shot": 1, "short-shot": 1, "missing": 2}


def test_check_when_an_episode_is_one_video_without_list_finds_its_cuts(tmp_path, entity_set):
    folder = film(tmp_path / "film")
    report = check_episodes(folder, entity_set, options=BY_HISTOGRAM)
    spans = [shot.span for shot in report.by_id["ep_a"].shots]
    assert spans == [Span(0, 12), Span(12, 24), Span(24, 36), Span(36, 48), Span(48, 60)]
    assert report.details()["found"]["ep_a"]["by"].startswith("histogram@")


def test_check_when_other_numbers_of_shots_are_found_matches_none_and_tells(tmp_path, entity_set):
    folder = tmp_path / "film"
    folder.mkdir()
    write_takes(folder / "ep_a.mp4", [Take(12, 10), Take(12, 20)])
    report = check_episodes(folder, entity_set, options=BY_HISTOGRAM)
    assert {code for key, code in invalid(report).items() if key.startswith("ep_a")} == {"misaligned"}
    assert codes(report)["wrong-count"] == 1
    assert report.details()["found"]["ep_a"]["spans"] == [[0, 12], [12, 24]]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.cuts.json", '{"1:1": [0, 5], "1:1": [5, 10]}', "twice"),
        ("a.cuts.json", "[1, 2]", "expected"),
        ("a.cuts.json", '{"1:1": [0, true]}', "no number of a frame"),
        ("a.cuts.json", '{"1:1": [0, 1.5]}', "no number of a frame"),
        ("a.cuts.json", '{"1:1": [-1, 5]}', "no number of a frame"),
        ("a.cuts.json", "[" * 100_000, "deep|recursion"),
        ("a.cuts.csv", "shot,start,stop\n1:1,0,6\n1:2,5,10\n", "frames in common"),
        ("a.cuts.csv", "shot,start,stop\n1:1,7,7\n", "ends at frame 7"),
        ("a.cuts.csv", "shot,start,stop\n1:1,0,61\n", "has 60 frames"),
        ("a.cuts.csv", "shot,start,stop\n1:1,0,6\n1:1,6,9\n", "twice"),
        ("a.cuts.csv", "shot,start\n1:1,0\n", "columns"),
        ("a.cuts.csv", "shot,start,stop\n1:1,0\n", "3 values"),
        ("a.cuts.csv", "", "columns"),
        ("a.cuts.csv", 'shot,start,stop\n"1:1,0,5', "quot|EOF|end"),
    ],
)
def test_cut_list_when_it_says_what_cannot_be_is_refused(tmp_path, name, text, told):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadCuts, match=told):
        read_cuts(path, 60)
