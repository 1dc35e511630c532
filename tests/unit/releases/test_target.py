"""Places that a release cannot be put in."""

import shutil
from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.releases.target import staged


def test_copy_that_fails_for_many_files_when_reported_names_the_reason_once(tmp_path: Path) -> None:
    why = "[Errno 28] No space left on device: 'a' -> 'b'"
    failed = shutil.Error([("a", f"draft/{name}", why) for name in ("x.jsonl", "y.jsonl", "z.jsonl")])
    with pytest.raises(TargetError) as error, staged(tmp_path / "out"):
        raise failed
    assert error.value.found == "No space left on device (x.jsonl, and 2 more)"
    assert not list(tmp_path.iterdir())
