import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.errors import InputError
from fabula.kinds.verbs import load, publish
from fabula.releases.hub.fetch import fetch
from fabula.releases.hub.publish import PublishOptions
from fabula.releases.loading import load as load_stories
from fabula.schemas.canonical import digest, sha256_file
from fabula.schemas.katha import StoryRecord, Variant
from fabula.schemas.paths import ANNOTATIONS, VARIANTS
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.sample_history import CREATED, VERSIONS, go_on
from fabula.validators.katha.dataset import iter_bundles


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
        load_stories(release)
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


# A published version through the libraries of its users, compared with its JSONL files alone.

READ = """
import json, sys
import datasets

datasets.disable_progress_bars()
repo, tag, cache = sys.argv[1:]
found = {}
for config in datasets.get_dataset_config_names(repo, revision=tag):
    loaded = datasets.load_dataset(repo, config, revision=tag, cache_dir=cache)
    found[config] = {split: list(rows) for split, rows in loaded.items()}
print(json.dumps(found))
"""

DESCRIBE = """
import json, sys
import mlcroissant

def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value

path = sys.argv[1]
found = {}
for name in [one.name for one in mlcroissant.Dataset(path).metadata.record_sets]:
    rows = mlcroissant.Dataset(path).records(name)
    found[name] = [{key.partition("/")[2]: plain(value) for key, value in row.items()} for row in rows]
print(json.dumps(found))
"""

SPLITS = {"train": "train", "validation": "validation", "public_test": "test"}


def expected(folder):
    """Return table -> split -> rows, made from the JSONL files alone."""
    tables = {name: {} for name in ("stories", "scenes", "transitions", "questions", "variants")}
    splits = {}
    for record in map(json.loads, (folder / "annotations.jsonl").read_bytes().splitlines()):
        splits[record["story_id"]] = split = SPLITS[record["split"]]
        for part in ("scenes", "transitions", "questions"):
            tables[part].setdefault(split, []).extend(record.pop(part))
        story = {**record, **record.pop("evidence_status"), **record.pop("provenance")}
        tables["stories"].setdefault(split, []).append(
            {name: value for name, value in story.items() if name not in ("evidence_status", "provenance")}
        )
    for variant in map(json.loads, (folder / "contrastive_variants.jsonl").read_bytes().splitlines()):
        tables["variants"].setdefault(splits[variant["base_story_id"]], []).append(variant)
    return tables


def run(program, *args, **environment):
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *map(str, args)],
        capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the Hub's client, uploading
def test_version_when_published_is_what_datasets_and_mlcroissant_read(on_hub, packed, tmp_path):
    publish(packed.folder, PublishOptions("user/fables"))
    fetched = fetch("user/fables@0.1.0").folder
    for name in ("annotations.jsonl", "contrastive_variants.jsonl"):
        assert (fetched / name).read_bytes() == (packed.folder / name).read_bytes()
    wanted = expected(fetched)
    assert {name: sum(map(len, splits.values())) for name, splits in wanted.items()} == {
        "stories": 23, "scenes": 115, "transitions": 92, "questions": 138, "variants": 46,
    }  # fmt: skip
    loaded = run(READ, "user/fables", "0.1.0", tmp_path / "cache", HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1")
    assert {name: loaded[name] for name in wanted} == wanted

    described = run(DESCRIBE, fetched / "croissant_metadata.json", HF_HUB_OFFLINE="1")
    assert set(described) == set(wanted)
    for name, splits in wanted.items():
        rows = [row for split in sorted(splits) for row in splits[split]]  # it reads files in order of names
        assert described[name] == rows, name


# The kept history of the sample benchmark is what its commands make now.

HISTORY = Path(fabula.__file__).parent / "releases" / "history"
SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
CURE = "the history has drifted: run make history"


def kept(version: str, name: str = "release.json") -> dict:
    return json.loads((HISTORY / version / name).read_bytes())


def hashes(run: Path) -> dict[str, dict[str, str]]:
    """Record and variant hashes of the public stories of a run, as its release.json will have them."""
    found: dict[str, dict[str, str]] = {ANNOTATIONS: {}, VARIANTS: {}}
    for bundle in iter_bundles(run):
        bundle["record"]["provenance"]["dataset_license"] = "CC-BY-4.0"
        if bundle["record"]["split"] != "hidden_test":
            found[ANNOTATIONS][bundle["record"]["story_id"]] = digest(bundle["record"])
            found[VARIANTS].update((one["variant_id"], digest(one)) for one in bundle["variants"])
    return found


@pytest.mark.slow
def test_history_when_made_again_has_the_same_records(tmp_path) -> None:
    run = tmp_path / "run"
    options = BuildOptions(records=SAMPLES / "gold.jsonl", created_at=CREATED, workers=0)
    build_katha(SAMPLES / "stories.jsonl", run, options)
    for version in VERSIONS:
        wanted = {name: kept(version)["records"][name] for name in (ANNOTATIONS, VARIANTS)}
        assert hashes(run) == wanted, CURE
        if version == VERSIONS[0]:
            go_on(run)


def test_history_when_read_chains_its_versions() -> None:
    first, second, changes = kept("0.1.0"), kept("0.2.0"), kept("0.2.0", "changes.json")
    assert (first["version"], second["version"]) == VERSIONS
    sha256 = sha256_file(HISTORY / "0.1.0" / "release.json")
    assert second["previous"] == changes["previous"] == {"version": "0.1.0", "sha256": sha256}, CURE
    assert first["canary"] == second["canary"]
    assert set(first["commitments"]["values"]) == set(second["commitments"]["values"])
    gone = [entry["id"] for entry in changes["gone"]]
    assert gone == [entry["id"] for entry in second["withdrawn"]["stories"]]
    before, after = (set(release["records"][ANNOTATIONS]) for release in (first, second))
    assert (before - after, after - before) == (set(gone), set(changes["added"][ANNOTATIONS]))
    same = {
        story
        for story in before & after
        if first["records"][ANNOTATIONS][story] == second["records"][ANNOTATIONS][story]
    }
    assert len(before & after) - len(same) == 1
