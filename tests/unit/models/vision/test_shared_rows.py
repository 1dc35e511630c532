"""Vectors that machines share through a folder or any file system of fsspec: encoded once, bit for bit."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fabula.errors import ConfigError, TargetError
from fabula.models.vision.shared_rows import SharedRows
from fabula.models.vision.store import VectorStore
from fabula.models.vision.types import Rows
from fabula.schemas.shared_files import VECTORS, SharedFiles

KEYS = [bytes([number]) * 32 for number in range(5)]


def rows_at(address: str) -> SharedRows:
    return SharedRows(SharedFiles(address, VECTORS))


def make(things: Sequence[int]) -> Rows:
    return np.array([[thing + 0.1, 1 / 3] for thing in things], dtype=np.float32)


def refuse(_: Sequence[int]) -> Rows:
    raise AssertionError("made again")


@pytest.mark.parametrize("place", ["folder", "file", "memory"])
def test_store_when_another_machine_has_made_the_rows_takes_them_bit_for_bit(
    place: str, tmp_path: Path
) -> None:
    address = {
        "folder": str(tmp_path / "shared"), "file": f"file://{tmp_path}/shared", "memory": "memory://shared",
    }[place]  # fmt: skip
    with VectorStore(tmp_path / "one", shared=rows_at(address)) as first:
        made = first.kept(KEYS, range(5), make)
    with VectorStore(tmp_path / "two", shared=rows_at(address)) as second:
        assert second.kept(KEYS, range(5), refuse).tobytes() == made.tobytes()
        assert second.counts.made == 0
    with VectorStore(tmp_path / "two") as alone:
        assert alone.kept(KEYS, range(5), refuse).tobytes() == made.tobytes(), "kept here since"


def test_store_when_a_shared_row_is_cut_or_changed_makes_it_again(tmp_path: Path) -> None:
    shared = rows_at(str(tmp_path))
    shared.write(dict(zip(KEYS, make(range(5)), strict=True)))
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].write_bytes(bytes(len(files[1].read_bytes())))
    files[2].write_bytes(b"")
    assert sorted(shared.read(KEYS)) == KEYS[3:]
    with VectorStore(shared=shared) as store:
        store.kept(KEYS, range(5), make)
        assert store.counts.made == 3
    assert sorted(shared.read(KEYS)) == KEYS


def test_store_when_the_environment_names_a_place_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VECTORS, str(tmp_path / "shared"))
    with VectorStore.of_user() as store:
        store.kept(KEYS, range(5), make)
    assert sum(path.is_file() for path in (tmp_path / "shared").rglob("*")) == 5


def test_shared_rows_when_the_place_cannot_be_used_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        rows_at("nosuch://bucket")
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetError, match=VECTORS):
        rows_at(str(tmp_path / "file")).write({KEYS[0]: make([1])[0]})
