"""VBench's result files: which video each value belongs to, and what is wrong with them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.errors import InputError
from fabula.evaluation.entities.quality import match_results, read_results, write_results
from fabula.schemas.canonical import sha256_file


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """Two episodes with shots of the same names; the bytes are what tells them apart."""
    for name in ("run1/001_001", "run1/001_002", "run2/001_001", "run2/002_001 take two"):
        path = tmp_path / "videos" / f"{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "videos"


def written(file: Path, **dimensions: dict[str, Any]) -> Path:
    """A file as VBench writes it; its summary is a number that nothing follows from."""
    content = {
        name: [0.123, [{"video_path": path, "video_results": value} for path, value in values.items()]]
        for name, values in dimensions.items()
    }
    file.write_text(json.dumps(content, indent=4))
    return file


def test_match_when_videos_are_named_as_vbench_and_the_public_evaluator_do_finds_each(videos, tmp_path):
    first = written(
        tmp_path / "a_eval_results.json",
        motion_smoothness={"/out/vbench_batch_run1/001_001.mp4": 0.9, "x/run1/001_002.mp4": 0.8},
        dynamic_degree={"/out/run2/001_001.mp4": True, "C:\\out\\run1\\001_001.mp4": False},
    )
    second = written(
        tmp_path / "b_eval_results.json",
        imaging_quality={"frames/run2/002_001_take_two": 61.5, "elsewhere/001_002.mp4": 40},
        background_consistency={"x/run1/001_001.mp4": 0.9},
    )
    matched = match_results([first, second], [videos])
    by_name = {video["name"]: video["values"] for video in matched.document["videos"].values()}
    assert by_name == {
        "run1/001_001.mp4": {"motion_smoothness": 0.9, "dynamic_degree": 0.0},
        "run1/001_002.mp4": {"motion_smoothness": 0.8, "imaging_quality": 40.0},
        "run2/001_001.mp4": {"dynamic_degree": 1.0},
        "run2/002_001 take two.mp4": {"imaging_quality": 61.5},
    }
    assert (matched.values, matched.strangers, matched.without) == (6, (), ())
    assert matched.others == ("background_consistency",)
    write_results(tmp_path / "vbench.json", matched)
    found = read_results(tmp_path / "vbench.json")
    assert found.measures == ("motion_smoothness", "dynamic_degree", "imaging_quality")
    assert found.videos[sha256_file(videos / "run2" / "001_001.mp4")] == {"dynamic_degree": 1.0}
    assert found.sha256 == sha256_file(tmp_path / "vbench.json")


def test_match_when_a_name_is_nobodys_or_several_tells_it_and_guesses_nothing(videos, tmp_path):
    file = written(
        tmp_path / "r.json",
        temporal_flickering={"a/run1/001_001.mp4": 0.9, "a/run9/001_001.mp4": 0.8, "a/run1/007_001.mp4": 0.7},
    )
    matched = match_results([file], [videos])
    assert matched.strangers == (
        "temporal_flickering of a/run9/001_001.mp4: several videos have that name",
        "temporal_flickering of a/run1/007_001.mp4: there is no video of that name",
    )
    assert matched.without == ("run1/001_002.mp4", "run2/001_001.mp4", "run2/002_001 take two.mp4")
    again = written(tmp_path / "s.json", temporal_flickering={"b/run1/001_001.mp4": 0.91})
    assert match_results([file, again], [videos]).strangers[-1] == (
        "temporal_flickering of b/run1/001_001.mp4: another value than 0.9 before"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "an object of dimensions"),
        ("{", "an object of dimensions"),
        ('{"motion_smoothness": 0.9}', "summary, .results of videos"),
        ('{"motion_smoothness": [0.9, [{"video_path": "a"}]]}', "motion_smoothness.1..0."),
        ('{"motion_smoothness": [0.9, [{"video_path": "a", "video_results": NaN}]]}', "nan is no number"),
        ('{"motion_smoothness": [0.9, [{"video_path": "a", "video_results": true}]]}', "True is no number"),
        ('{"motion_smoothness": [0.9, [{"video_path": 3, "video_results": 0.1}]]}', "the path 3"),
    ],
)
def test_match_when_a_file_is_none_of_vbench_says_where(videos, tmp_path, content, said):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(InputError, match=said):
        match_results([tmp_path / "r.json"], [videos])


def test_import_when_called_writes_the_values_and_tells_what_was_not_used(videos, tmp_path):
    file = written(tmp_path / "r.json", imaging_quality={"a/run1/001_001.mp4": 50, "a/run1/009_009.mp4": 60})
    out = tmp_path / "vbench.json"
    command = ["import", "vbench-results", str(file), "--videos", str(videos), "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "1 value of 1 video: imaging_quality" in done.output
    assert "not used: imaging_quality of a/run1/009_009.mp4: there is no video of that name" in done.output
    assert "no result: run1/001_002.mp4" in done.output
    assert read_results(out).measures == ("imaging_quality",)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2 and "the file is there already" in again.output
    out.unlink()
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).output)["values"] == 1
