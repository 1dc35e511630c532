import dataclasses
import json

import pytest
from pydantic import ValidationError

from fabula.errors import InputError
from fabula.kinds.verbs import load
from fabula.schemas.katha import StoryRecord, Variant
from fabula.testing.katha_samples import sample_bundles


def test_a_release_loads_as_typed_records(packed):
    release = load(packed.folder)
    assert release.version == "0.1.0"
    assert len(release) == 23
    assert all(isinstance(record, StoryRecord) for record in release)
    assert all(isinstance(variant, Variant) for variant in release.variants)
    assert {name: len(records) for name, records in release.splits.items()} == {
        "train": 16,
        "validation": 4,
        "public_test": 3,
    }
    assert list(release.splits) == ["train", "validation", "public_test"]
    assert release.by_id["kb25k_0003"].as_json() == sample_bundles(3)[2]["record"]
    assert [one.variant_id for one in release.variants_of["kb25k_0003"]] == ["kb25k_0003_v1", "kb25k_0003_v2"]
    assert release.producers[0].id == "kb25k_0001"


def test_the_hidden_folder_loads_too(packed):
    release = load(str(packed.hidden))
    assert list(release.splits) == ["hidden_test"]
    assert release.info["visibility"] == "hidden"


def test_what_is_loaded_cannot_be_changed(packed):
    release = load(packed.folder)
    with pytest.raises(ValidationError, match="frozen"):
        release.records[0].title = "another"
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.records = ()


def test_all_lines_that_cannot_be_read_are_listed(release):
    path = release / "annotations.jsonl"
    rows = path.read_bytes().splitlines(keepends=True)
    first = json.loads(rows[0])
    del first["title"]
    first["scenes"][2]["scene_index"] = "three"
    path.write_bytes(b"".join([json.dumps(first).encode() + b"\n", b"{,\n", *rows[2:], rows[2]]))
    (release / "producers.jsonl").unlink()
    with pytest.raises(InputError) as error:
        load(release)
    wheres = [problem.where.removeprefix(f"{release}/") for problem in error.value.problems]
    assert wheres == [
        "annotations.jsonl:1 $.title",
        "annotations.jsonl:1 $.scenes[2].scene_index",
        "annotations.jsonl:2 $",
        "annotations.jsonl",
        "producers.jsonl",
    ]
    assert error.value.problems[3].found == "'kb25k_0003' again"


def test_a_folder_that_is_no_release_is_refused_and_says_what_is_there(tmp_path):
    expected = r"a release folder with a readable release.json, found"
    for name, found in (
        ("file", "a file"),
        ("none", "nothing there"),
        ("", r"a folder without release\.json"),
    ):
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match=f"{expected} {found}"):
            load(tmp_path / name)
    (tmp_path / "run.json").touch()
    with pytest.raises(InputError, match=f"{expected} a run folder: `fabula release pack`"):
        load(tmp_path)


@pytest.mark.parametrize("made_with", [2, None, "1", True])
def test_a_release_of_another_format_is_refused(release, helpers, made_with):
    helpers.edit_json(release / "release.json", lambda document: document.update(format=made_with))
    with pytest.raises(InputError, match="reads up to 1"):
        load(release)
