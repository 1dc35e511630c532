"""The page about episodes keeps up with the code."""

from pathlib import Path

import pytest

import fabula
from fabula.validators.entities.view import CODES

PAGE = Path(fabula.__file__).parent / "docs" / "entities.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the suite runs against an installed wheel, which has no docs")
def test_codes_when_compared_with_the_page_stand_there_as_they_are() -> None:
    rows = [f"| `{name}` | {code.level} | {code.meaning} | {code.cure} |" for name, code in CODES.items()]
    text = PAGE.read_text("utf-8")
    assert [row for row in rows if row not in text] == []
