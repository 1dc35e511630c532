"""What the parity tests share."""

import json
import shutil
from pathlib import Path

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.releases.loading import Release
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer

CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture
def demo(reference: Path, tmp_path: Path) -> tuple[Release, Path]:
    """A release of the six stories as the scripted model drafts them, and the published storyboards.

    The folders of the storyboards have the ids of the release. Rules alone reject these stories: they have
    two or three sentences each, and rules begin no scene inside a sentence.
    """
    boards = json.loads((reference / "kathatrace_demo" / "storyboards.json").read_text("utf-8"))
    stories, shown = tmp_path / "stories.jsonl", tmp_path / "published"
    rows = []
    for number, board in enumerate(boards, 1):
        story_id = f"demo_{number:04}"
        rows.append(
            {
                "id": story_id, "title": board["title"], "language": "en", "text": board["story"],
                "source_collection": "aesop", "rights_status": "public_domain_or_rights_compatible",
            }
        )  # fmt: skip
        shutil.copytree(reference / "kathatrace_demo" / "storyboards" / board["id"], shown / story_id)
    stories.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    with ModelServer(KathaModel()) as server:
        options = BuildOptions(model=f"{server.openai_url}#stand-in", workers=0, created_at=CREATED)
        build_katha(stories, tmp_path / "build", options)
    bundles = [
        json.loads(line)["payload"]
        for line in (tmp_path / "build" / "records.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    return judged_release(tmp_path / "release", bundles), shown
