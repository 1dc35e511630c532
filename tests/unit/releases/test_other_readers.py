"""A published version through the libraries of its users, compared with its JSONL files alone."""

import json
import os
import subprocess
import sys

import pytest

from fabula.kinds.verbs import publish
from fabula.releases.hub.fetch import fetch
from fabula.releases.hub.publish import PublishOptions
from fabula.testing.hub import TOKEN, HubServer

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


@pytest.fixture(scope="module")
def hub():
    with HubServer() as server:
        yield server


@pytest.fixture
def on_hub(hub, monkeypatch):
    """The Hub, where the client finds it through its environment."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


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
