"""Files with weights: taken from the cache where they are pinned, checked by hash, named where missing."""

import hashlib
from pathlib import Path

import pytest

from fabula.errors import MissingRequirement
from fabula.models.vision.stored import Source
from fabula.models.vision.weights import fetch_file, revision_of

COMMIT = "0" * 40


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of huggingface_hub with one file of one repository, and no network."""
    from huggingface_hub import constants

    folder = tmp_path / "hub" / "models--some--repo"
    file = folder / "snapshots" / COMMIT / "face.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return file


def test_fetch_when_the_file_is_cached_and_pinned_takes_it(cached: Path) -> None:
    right = hashlib.sha256(b"weights").hexdigest()
    for source in (
        Source("some/repo", COMMIT, "face.onnx"),
        Source("some/repo", file="face.onnx", sha256=right),
    ):
        assert fetch_file(source).read_bytes() == b"weights"
        assert revision_of(source, None) in (COMMIT, right)


def test_fetch_when_the_content_is_another_says_so(cached: Path) -> None:
    source = Source("some/repo", file="face.onnx", sha256="1" * 64)
    with pytest.raises(MissingRequirement, match="another SHA-256 than 111111111111"):
        fetch_file(source)
    with pytest.raises(MissingRequirement, match="another SHA-256"):
        fetch_file(source, cached)


def test_fetch_when_nothing_is_there_names_file_and_place(cached: Path, tmp_path: Path) -> None:
    for source in (
        Source("some/repo", file="none.onnx", sha256="1" * 64),
        Source("some/other", COMMIT, "none.onnx"),
    ):
        with pytest.raises(MissingRequirement, match=r"fetch none\.onnx of some/"):
            fetch_file(source)
    with pytest.raises(MissingRequirement, match="no file"):
        fetch_file(Source("some/repo", file="x"), tmp_path / "x")
