import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fabula.releases import PackOptions, PackResult, pack
from fabula.releases.documents import checksums, file_entries
from fabula.releases.layout import JSONL_FILES, RECORD_IDS, RELEASE, SUMS
from fabula.schemas.canonical import Json, canonical_bytes, digest, pretty_bytes
from fabula.testing.katha_samples import CREATED_AT, sample_bundles

NOT_MADE = (
    {
        "id": "zz_1",
        "stage": "screen_stories",
        "status": "rejected",
        "code": "near_duplicate",
        "reason": "nearly the same as kb25k_0005",
    },
    {
        "id": "zz_2",
        "stage": "draft_scenes",
        "status": "failed",
        "code": "timeout",
        "reason": "took longer than 60 s",
    },
)


def write_run(folder: Path, bundles: Sequence[Json], not_made: Sequence[Json] = NOT_MADE) -> Path:
    """Write what packing reads of a finished run."""
    folder.mkdir(parents=True)
    lines = [
        canonical_bytes(
            {"kind": "katha", "schema_version": "1", "id": one["record"]["story_id"], "payload": one}
        )
        for one in bundles
    ]
    (folder / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    manifest = {
        "format": 1,
        "kind": "katha",
        "created_at": CREATED_AT,
        "fabula_version": "0.1.0",
        "seed": 42,
        "settings": {"draft_scenes": {"count": 5}},
        "stages": [{"name": "draft_scenes", "version": 1, "libraries": {}}],
        "sources": [
            {"role": "stories", "name": "fables.jsonl", "path": "/home/me/fables.jsonl", "sha256": "0" * 64}
        ],
        "threshold": 0.5,
    }
    totals = {"made": len(bundles), "rejected": 1, "failed": 1, "pending": 0}
    (folder / "run.json").write_bytes(pretty_bytes(manifest))
    (folder / "report.json").write_bytes(
        pretty_bytes({"totals": totals, "stages": [], "items": list(not_made)})
    )
    return folder


def edit_json(path: Path, change: Callable[[Json], None]) -> None:
    """Change a JSON document in place."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(pretty_bytes(document))


def edit_line(path: Path, number: int, change: Callable[[Json], None]) -> None:
    """Change one line of a JSONL file in place; the line stays canonical."""
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(rows[number])
    path.write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in rows))


def reseal(folder: Path) -> None:
    """Make hashes and checksums true again, as somebody would who hides a change."""
    document = json.loads((folder / RELEASE).read_bytes())
    for name in JSONL_FILES:
        rows = [json.loads(line) for line in (folder / name).read_bytes().splitlines()]
        document["records"][name] = {row[RECORD_IDS[name]]: digest(row) for row in rows}
    document["files"] = file_entries(folder)
    (folder / RELEASE).write_bytes(pretty_bytes(document))
    (folder / SUMS).write_bytes(checksums(folder))


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 24 stories, one of them in the hidden test split."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(24))


@pytest.fixture(scope="session")
def packed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> PackResult:
    """The release of that run; not to be changed."""
    return pack(run, tmp_path_factory.mktemp("packed") / "fables-0.1.0", PackOptions("0.1.0"))


@pytest.fixture
def release(packed: PackResult, tmp_path: Path) -> Path:
    """A copy of the release, without its hidden sibling, that a test may damage."""
    return Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run from bundles, as :func:`write_run` does."""
    return lambda bundles, **more: write_run(tmp_path / "run", bundles, **more)


@pytest.fixture
def helpers() -> object:
    """The functions of this file, for tests."""

    class Helpers:
        write_run = staticmethod(write_run)
        edit_json = staticmethod(edit_json)
        edit_line = staticmethod(edit_line)
        reseal = staticmethod(reseal)

    return Helpers
