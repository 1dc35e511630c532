"""No text that goes into every release names a story, which could be a hidden one."""

import re
from pathlib import Path

import pytest

import fabula
from fabula.schemas.export import PUBLISHED, json_schema

RELEASES = Path(fabula.__file__).parent / "releases"
STORY_ID = re.compile(r"kb25k_\d")


@pytest.mark.parametrize("name", PUBLISHED)
def test_schema_when_described_names_no_story(name: str) -> None:
    assert STORY_ID.search(str(json_schema(name))) is None


def test_templates_when_read_name_no_story() -> None:
    templates = list(RELEASES.rglob("*.j2"))
    assert templates
    assert [path.name for path in templates if STORY_ID.search(path.read_text("utf-8"))] == []
