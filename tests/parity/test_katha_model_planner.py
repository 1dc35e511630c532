"""The six published stories through every stage of the model planner, to a release that verifies.

The model is a stand-in behind the real SDKs: this shows that the stages hold for these texts, not how well a
model drafts.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula import BuildOptions, PackOptions, build, pack, validate, verify
from fabula.builders.katha.pipeline import STAGES
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.parity]

STORIES = 6
SOURCES = {
    "Aesop’s Fables": "aesop", "Panchatantra": "panchatantra", "The Ocean of Story": "kathasaritasagara",
}  # fmt: skip
KEYS = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@pytest.fixture
def stories(reference: Path, tmp_path: Path) -> Path:
    boards = json.loads((reference / "kathatrace_demo" / "storyboards.json").read_text("utf-8"))
    path = tmp_path / "stories.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for number, board in enumerate(boards, 1):
            row = {
                "id": f"demo_{number:04}",
                "title": board["title"],
                "language": "en",
                "text": board["story"],
                "source_collection": SOURCES[board["source"]],
                "source_reference": "published storyboard",
                "rights_status": "public_domain_or_rights_compatible",
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(KathaModel(critical=0.5)) as running:
        yield running


@pytest.mark.parametrize("provider", sorted(KEYS))
def test_six_stories_when_drafted_by_a_model_become_a_release_that_verifies(
    stories: Path, server: ModelServer, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        {"google": "GEMINI_API_KEY"}.get(provider, f"{provider.upper()}_API_KEY"), "key-for-a-test"
    )
    spec = f"{provider}:stand-in"
    models: dict[str, dict[str, Any]] = {
        spec: {"base_url": getattr(server, f"{provider}_url"), "prices": {"input": 1.0, "output": 4.0}}
    }
    options = BuildOptions(model=spec, models=models, workers=0)
    report = build("katha", stories, tmp_path / "run", options)
    assert report.totals == {"made": STORIES, "rejected": 0, "failed": 0, "pending": 0}
    assert {stage.name: stage.made for stage in report.stages} == dict.fromkeys(STAGES, STORIES)
    assert {entry.asked.protocol for entry in server.log} == {provider}
    assert sum(use.calls for use in report.models) == server.count
    assert [issue for issue in validate(tmp_path / "run").issues if issue.level == "error"] == []
    release = tmp_path / "release"
    pack(
        tmp_path / "run",
        release,
        PackOptions(
            version="0.1.0",
            license="CC-BY-4.0",
            name="six",
            title="Six",
            creators=("Nobody",),
            allow_drafts=True,
            allow_stand_in=True,
        ),
    )
    assert [issue for issue in verify(release).issues if issue.level == "error"] == []
    lines = [
        json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    ]
    makers = {field["producer"] for line in lines for field in line["payload"]["producers"]}
    assert all(maker == "author" or maker.startswith(f"{spec} via katha/") for maker in makers), makers
