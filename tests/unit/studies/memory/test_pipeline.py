"""The page of a bank: every entity, what it was chosen from and why, with nothing to load from anywhere."""

import re
from pathlib import Path

import pytest

from fabula.studies.memory.pipeline import MemoryOptions, build_memory
from fabula.testing.memory_model import MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode

pytestmark = pytest.mark.slow


def page_of(folder: Path, model: MemoryModel, document: dict[str, object]) -> str:
    write_episodes(folder / "set", [document])
    with ModelServer(model) as server:
        options = MemoryOptions(
            image=f"image:{server.openai_url}#painter", agent=f"{server.openai_url}#agent", candidates=2,
            workers=0, retries=1, created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        build_memory(folder / "set", folder / "run", options)
    return (folder / "run" / "bank.html").read_text("utf-8")


def test_page_when_written_shows_every_entity_and_how_it_came_about(tmp_path: Path) -> None:
    model = MemoryModel(
        {"the old ladder": "The Garden"},
        paint=lambda key, _: "hole" if key == "green" else None,
        look=lambda name: {"clean": False, "wrong": "A pink rim."} if name == "Ben" else {},
    )
    page = page_of(tmp_path, model, written_episode())
    for name in ("Ana", "Ben", "The Kitchen", "The Garden", "the red cup", "the old ladder"):
        assert name in page
    assert page.count("<img ") == 5 + 3, "five references, and the candidates of three portraits"
    assert all(src.startswith("data:image/jpeg;base64,") for src in re.findall(r'src="([^"]+)"', page))
    assert "Try 1 on green: 2 pictures, 2 made; number 1 taken" in page and "failed holes" in page
    assert "Its edges are clean." in page and "leftovers (A pink rim.)" in page
    assert "shown by" in page and "not verified" in page and "<script" not in page and 'src="http' not in page
    assert "Asked: picture" in page
