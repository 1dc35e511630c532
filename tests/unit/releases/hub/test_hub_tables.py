"""What the libraries of users move when they read one table of a published release."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabula.kinds.verbs import pack, publish
from fabula.releases.options import PackOptions
from fabula.releases.shots.imports import import_set, with_provenance, write_facts
from fabula.releases.shots.tree import read_shot_set
from fabula.schemas.canonical import sha256_file
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.hub import TOKEN

REPO = "user/scripts"
PICTURES = "data/reference_images/test.parquet"
LOAD = """
import hashlib, json, sys
import datasets

datasets.disable_progress_bars()
repo, tag, config, streaming, cache = sys.argv[1:]
rows = datasets.load_dataset(
    repo, config, split="test", revision=tag, streaming=streaming == "yes", cache_dir=cache
)
image = rows.features.get("image")
if image is not None:
    rows = rows.cast_column("image", datasets.Image(decode=False))
found = [dict(row) for row in rows]
for row in found:
    if image is not None:
        row["image"] = hashlib.sha256(row["image"]["bytes"]).hexdigest()
print(json.dumps({"image": str(image), "rows": found}))
"""


@pytest.fixture
def published(client: Any, tmp_path: Path) -> Path:
    """A release of shot scripts with reference images on the Hub; its folder."""
    source = draw_shot_set(tmp_path / "data")
    shot_set, _ = read_shot_set(source)
    images = [one.model_copy(update={"rights": "CC0-1.0"}) for one in with_provenance(shot_set)]
    write_facts(shot_set.folder, (), images)
    import_set(source, tmp_path / "run", "2026-01-01T00:00:00Z")
    folder = pack(tmp_path / "run", tmp_path / "dist", PackOptions("0.1.0", license="CC-BY-4.0")).folder
    publish(folder, client.to(REPO))
    client.hub.forget()
    return folder


def read(client: Any, config: str, cache: Path, *, streaming: bool = False) -> Any:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, REPO, "0.1.0", config, "yes" if streaming else "no", str(cache)],
        capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "HF_ENDPOINT": client.hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0",
             "HF_HOME": str(cache), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def moved(client: Any, folder: Path) -> dict[str, int]:
    """Path of a file of the release -> bytes of it that were asked for."""
    names = {sha256_file(path): path.relative_to(folder).as_posix()
             for path in folder.rglob("*.parquet")}  # fmt: skip
    sums: dict[str, int] = {}
    for one in client.hub.log:
        if one.route == "lfs-download":
            name = names[one.path.rpartition("/")[2]]
            sums[name] = sums.get(name, 0) + one.sent
    return sums


def test_table_when_it_has_no_pictures_moves_none_and_theirs_moves_them(
    client: Any, published: Path, tmp_path: Path
) -> None:
    loaded = read(client, "references", tmp_path / "one")
    size = (published / "data/references/test.parquet").stat().st_size
    assert moved(client, published) == {"data/references/test.parquet": size}
    assert sum(one.sent for one in client.hub.log) < size + 200_000  # card and listings
    assert len(loaded["rows"]) == 12 and loaded["image"] == "None"

    client.hub.forget()
    pictures = read(client, "reference_images", tmp_path / "two", streaming=True)
    assert set(moved(client, published)) == {PICTURES}
    assert pictures["image"].startswith("Image(")
    assert [row["image"] for row in pictures["rows"]] == [row["sha256"] for row in loaded["rows"]]
