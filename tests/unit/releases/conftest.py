import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.engine.status import ItemReport
from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult, checksums, file_entries
from fabula.schemas.canonical import Json, canonical_bytes, digest, pretty_bytes
from fabula.schemas.paths import JSONL_FILES, RECORD_IDS, RELEASE, SUMS
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.katha_folders import settle, write_run
from fabula.testing.katha_samples import sample_bundles

NOT_MADE = (
    ItemReport("zz_1", "screen_stories", "rejected", "near_duplicate", "nearly the same as kb25k_0005",
               "The story is nearly the same as another one."),
    ItemReport("zz_2", "draft_scenes", "failed", "timeout", "took longer than 60 s",
               "The stage could not do its work on the item."),
)  # fmt: skip


def tree(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of everything under a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def lines_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


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
    return write_run(tmp_path_factory.mktemp("runs") / "run", sample_bundles(24), NOT_MADE)


@pytest.fixture(scope="session")
def packed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> PackResult:
    """The release of that run; not to be changed."""
    return pack(
        run, tmp_path_factory.mktemp("packed") / "fables-0.1.0", PackOptions("0.1.0", allow_drafts=True)
    )


@pytest.fixture
def release(packed: PackResult, tmp_path: Path) -> Path:
    """A copy of the release, without its hidden sibling, that a test may damage."""
    return Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run from bundles, as :func:`write_run` does, by default with two items that were not made."""
    return lambda bundles, **more: write_run(tmp_path / "run", bundles, **{"not_made": NOT_MADE, **more})


@pytest.fixture
def on_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A Hub that the client finds through its environment."""
    with HubServer() as server:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def helpers() -> object:
    """The functions of this file, for tests."""

    class Helpers:
        write_run = staticmethod(lambda folder, bundles: write_run(folder, bundles, NOT_MADE))
        settle = staticmethod(settle)
        edit_json = staticmethod(edit_json)
        edit_line = staticmethod(edit_line)
        reseal = staticmethod(reseal)

    return Helpers
