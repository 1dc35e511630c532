"""Showing what a stage would ask, from Python."""

import asyncio
import json
from pathlib import Path

from fabula.builders.preview import Preview
from fabula.kinds.verbs import preview_story


def test_preview_when_a_loop_is_running_as_in_a_notebook_shows_the_request(tmp_path: Path) -> None:
    text = " ".join(f"The fox saw crow number {number} with a piece of cheese." for number in range(40))
    story = {"id": "s1", "title": "The Fox", "language": "en", "text": text}
    story |= {"source_collection": "mine", "rights_status": "public_domain_or_rights_compatible"}
    (tmp_path / "stories.jsonl").write_text(json.dumps(story))

    async def in_a_cell() -> list[Preview]:
        return preview_story(tmp_path / "stories.jsonl", "s1", "katha/label_story")

    (shown,) = asyncio.run(in_a_cell())
    assert shown.prompt.startswith("katha/label_story@")
    assert "The fox saw crow" in str(shown.request.messages[-1].parts[0])


def test_preview_when_shot_scripts_ask_with_the_prompt_shows_their_request(tmp_path: Path) -> None:
    text = " ".join(f"The fox saw crow number {number} with a piece of cheese." for number in range(9))
    story = {"id": "s1", "title": "The Fox", "language": "en", "text": text}
    story |= {"source_collection": "mine", "rights_status": "public_domain_or_rights_compatible"}
    (tmp_path / "stories.jsonl").write_text(json.dumps(story))
    (shown,) = preview_story(tmp_path / "stories.jsonl", "s1", "shots/place_characters")
    assert (shown.stage, shown.item) == ("place_characters", "s1")
    assert "[1] Fox" in str(shown.request.messages[-1].parts[0])
