from pathlib import Path

import pytest

from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import write_outputs
from fabula.testing.katha_samples import sample_bundles


@pytest.fixture(scope="session")
def records() -> tuple[StoryRecord, ...]:
    """Three stories of five scenes: kb25k_0001 to kb25k_0003."""
    return tuple(StoryRecord.model_validate(bundle["record"]) for bundle in sample_bundles(3))


@pytest.fixture
def outputs(tmp_path: Path, records: tuple[StoryRecord, ...]) -> Path:
    """The sound outputs of a method called model-x."""
    return write_outputs(tmp_path / "model-x", [record.story_id for record in records])
