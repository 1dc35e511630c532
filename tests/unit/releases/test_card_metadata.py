"""What front matter and card of a release say for the Hub: sizes, columns, and what the author knows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.releases.parquet import parse_front_matter
from fabula.releases.shots.imports import import_set
from fabula.schemas.layout import RELEASE
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.sample_history import command

KNOWN = PackOptions(
    "0.1.0", repo="user/fables", arxiv=("2401.01234", "cs.CV/0101001v2"),
    annotations_creators=("expert-generated", "machine-generated"),
    source_datasets=("original", "extended|user/tales"), task_ids=("visual-question-answering",),
    allow_drafts=True,
)  # fmt: skip


def front(folder: Path) -> dict:
    return parse_front_matter((folder / "README.md").read_text("utf-8"))


def test_front_matter_when_packed_has_columns_and_sizes_of_every_table(packed: PackResult) -> None:
    import pyarrow.parquet as pq

    values = front(packed.folder)
    assert values["version"] == "0.1.0"
    assert [one["config_name"] for one in values["dataset_info"]] == [
        one["config_name"] for one in values["configs"]
    ]
    for info in values["dataset_info"]:
        paths = sorted((packed.folder / "data" / info["config_name"]).iterdir())
        assert info["download_size"] == sum(path.stat().st_size for path in paths)
        counts = {path.stem: pq.read_metadata(path).num_rows for path in paths}
        assert {split["name"]: split["num_examples"] for split in info["splits"]} == counts
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])
        names = [feature["name"] for feature in info["features"]]
        assert names == pq.read_schema(paths[0]).names
    scenes = next(info for info in values["dataset_info"] if info["config_name"] == "scenes")
    kinds = {one["name"]: one.get("dtype") or f"list of {one['sequence']}" for one in scenes["features"]}
    assert (kinds["scene_index"], kinds["characters"]) == ("int64", "list of string")


@pytest.mark.slow
def test_card_when_the_author_says_more_states_it_and_verifies(run: Path, tmp_path: Path) -> None:
    folder = pack(run, tmp_path / "fables", KNOWN).folder
    values, card = front(folder), (folder / "README.md").read_text("utf-8")
    assert values["annotations_creators"] == ["expert-generated", "machine-generated"]
    assert values["source_datasets"] == ["original", "extended|user/tales"]
    assert values["task_ids"] == ["visual-question-answering"]
    assert 'stories = load_dataset("user/fables", "stories", revision="0.1.0")' in card
    assert "- <https://arxiv.org/abs/2401.01234>\n- <https://arxiv.org/abs/cs.CV/0101001v2>\n" in card
    report = verify(folder, readers=False)
    assert report.ok and report.documents == "bytes", report.issues
    about = json.loads((folder / RELEASE).read_bytes())["about"]
    assert about["repo"] == "user/fables" and about["arxiv"] == ["2401.01234", "cs.CV/0101001v2"]

    options = PackOptions("0.1.1", since=folder, allow_drafts=True)
    again = command("release", "pack", run, "--version", options.version, "--since", folder,
                    "--out", tmp_path / "next", "--allow-drafts", "--json")  # fmt: skip
    assert json.loads(again)["version"] == "0.1.1"
    later = front(tmp_path / "next")
    assert {name: later[name] for name in ("source_datasets", "task_ids")} == {
        name: values[name] for name in ("source_datasets", "task_ids")
    }
    assert 'revision="0.1.1"' in (tmp_path / "next/README.md").read_text("utf-8")


def test_card_when_the_author_says_nothing_says_who_annotated_only_where_machines_did(
    packed: PackResult, tmp_path: Path
) -> None:
    assert front(packed.folder)["annotations_creators"] == ["machine-generated"]
    assert not {"source_datasets", "task_ids"} & front(packed.folder).keys()
    assert "## Papers" not in (packed.folder / "README.md").read_text("utf-8")
    import_set(draw_shot_set(tmp_path / "data"), tmp_path / "run", "2026-01-01T00:00:00Z")
    given = pack(
        tmp_path / "run", tmp_path / "dist", PackOptions("0.1.0", license="MIT", allow_drafts=True)
    ).folder
    assert "annotations_creators" not in front(given)  # who made what was given, nobody knows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repo": "mine"}, "--repo: expected OWNER/NAME"),
        ({"repo": "user/a--b"}, "--repo: expected OWNER/NAME"),
        ({"repo": "user/mine.git"}, "--repo: expected OWNER/NAME"),
        ({"arxiv": ("https://arxiv.org/abs/2401.01234",)}, "--arxiv: expected an arXiv id"),
        ({"annotations_creators": ("people",)}, "--annotations-creators: expected one of crowdsourced, "),
        ({"source_datasets": ("two words",)}, "--source-dataset: expected original"),
        ({"task_ids": ("VQA",)}, "--task-id: expected an id in small letters"),
    ],
)
def test_options_when_they_have_a_wrong_form_say_what_to_give(change: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(KNOWN, **change).checked()
