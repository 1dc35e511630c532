"""Storyboards of methods as a data set with pictures."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.evaluation.outputs.share import share_storyboards
from fabula.evaluation.outputs.storyboards import check_methods
from fabula.kinds.verbs import pack
from fabula.releases.loading import load
from fabula.releases.options import PackOptions
from fabula.releases.pack.front_matter import parse_front_matter
from fabula.schemas.canonical import sha256_file
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.sample_history import command


@pytest.fixture
def release(tmp_path: Path) -> Path:
    run = write_run(tmp_path / "run", sample_bundles(4), ())
    return pack(run, tmp_path / "release", PackOptions("0.1.0", name="fables", allow_drafts=True)).folder


@pytest.fixture
def outputs(release: Path, tmp_path: Path) -> list[Path]:
    """Two methods, one of them with two seeds; of the other a storyboard lacks a picture."""
    records = load(release).records
    plain = draw_outputs(tmp_path / "Model Ä", records)
    next(iter(sorted((plain / records[0].story_id).iterdir()))).unlink()
    return [plain, draw_outputs(tmp_path / "seeded", records, (1, 2), side=64)]


def test_storyboards_when_shared_are_pictures_with_their_stories(
    release: Path, outputs: list[Path], tmp_path: Path
) -> None:
    args = [word for folder in outputs for word in ("--outputs", str(folder))]
    said = json.loads(
        command("export", "storyboards", release, *args, "--license", "cc-by-4.0", "--out", tmp_path / "a",
                "--json")
    )  # fmt: skip
    records = load(release).records
    scenes = {record.story_id: len(record.scenes) for record in records}
    whole, less = sum(scenes.values()), sum(scenes.values()) - scenes[records[0].story_id]
    count = len(records)
    assert {name: said[name] for name in ("methods", "storyboards", "pictures", "left out")} == {
        "methods": 2, "storyboards": 3 * count - 1, "pictures": 2 * whole + less, "left out": 1,
    }  # fmt: skip
    rows = pq.read_table(tmp_path / "a/data/storyboards/test.parquet").to_pylist()
    assert len(rows) == 2 * whole + less
    assert {(row["method"], row["seed"]) for row in rows} == {("Model Ä", None), ("seeded", 1), ("seeded", 2)}
    for row in rows:
        assert row["image"]["bytes"] == (tmp_path / "a" / row["file"]).read_bytes()
        assert row["scene"] is not None and row["image"]["path"] == row["file"]
    values = parse_front_matter((tmp_path / "a/README.md").read_text("utf-8"))
    assert values["license"] == "cc-by-4.0"
    assert values["dataset_info"][0]["splits"][0]["num_examples"] == len(rows)
    assert {"name": "image", "dtype": "image"} in values["dataset_info"][0]["features"]
    for line in (tmp_path / "a/SHA256SUMS").read_text("utf-8").splitlines():
        sha256, _, path = line.partition("  ")
        assert sha256_file(tmp_path / "a" / path) == sha256
    share_storyboards(check_methods(outputs, load(release)), load(release), tmp_path / "b", "CC-BY-4.0")
    assert (tmp_path / "b/SHA256SUMS").read_bytes() == (tmp_path / "a/SHA256SUMS").read_bytes()


def test_storyboards_when_they_cannot_be_shared_leave_nothing(
    release: Path, outputs: list[Path], tmp_path: Path
) -> None:
    loaded, out = load(release), tmp_path / "shared"
    methods = check_methods(outputs, loaded)
    with pytest.raises(ConfigError, match="not the SPDX id"):
        share_storyboards(methods, loaded, out, "mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no storyboard can be shared"):
        share_storyboards(check_methods([tmp_path / "empty"], loaded), loaded, out, "MIT")
    hidden = type(loaded)(
        loaded.path, {**loaded.info, "visibility": "hidden"}, loaded.records, loaded.variants,
        loaded.producers,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="pictures of hidden stories"):
        share_storyboards(methods, hidden, out, "MIT")
    methods[1].valid[0].files[0].file.write_bytes(b"no picture")
    with pytest.raises(InputError, match="it is no picture"):
        share_storyboards(methods, loaded, out, "MIT")
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("-")
    with pytest.raises(TargetError, match="a folder with files"):
        share_storyboards(check_methods(outputs[:1], loaded), loaded, out, "MIT")
