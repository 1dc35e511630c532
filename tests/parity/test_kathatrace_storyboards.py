"""The six published example storyboards of KathaTrace can be checked and prepared as they are."""

import shutil
from pathlib import Path

import pytest

from fabula.evaluation.judging.pictures import ImageSettings, prepare_storyboard
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.schemas.katha import StoryRecord
from fabula.testing.katha_samples import sample_bundles

pytestmark = pytest.mark.parity


def test_check_outputs_when_storyboards_are_published_finds_them_sound(
    reference: Path, tmp_path: Path
) -> None:
    folder = reference / "kathatrace_demo" / "storyboards"
    stories = sorted(path.name for path in folder.iterdir())
    assert len(stories) == 6
    shutil.copytree(folder, tmp_path / "demo")
    records = [
        StoryRecord.model_validate({**bundle["record"], "story_id": story})
        for bundle, story in zip(sample_bundles(6), stories, strict=True)
    ]
    report = check_outputs(tmp_path / "demo", records)
    assert report.issues == ()
    assert report.accounting()["stories_valid"] == 6
    for storyboard in report.valid:
        prepared = prepare_storyboard([panel.file for panel in storyboard.files], ImageSettings(max_side=256))
        assert [max(one.width, one.height) for one in prepared] == [256] * 5
