"""The documentation keeps up with the code, and speaks only of the project."""

import re
from pathlib import Path

import pytest

import fabula
from fabula.validators.codes import CODES, rule_table
from fabula.validators.events.rules import CODES as SUITE_CODES

ROOT = Path(fabula.__file__).parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the suite runs against an installed wheel, which has no docs"
)


def test_rules_page_when_compared_holds_the_tables_of_the_code() -> None:
    page = (DOCS / "rules.md").read_text("utf-8")
    for codes in (CODES, SUITE_CODES):
        assert rule_table(codes) in page, "write validators.codes.rule_table(codes) there"


def test_links_when_followed_exist() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_tests_when_named_in_docs_exist() -> None:
    named = {
        match
        for page in DOCS.rglob("*.md")
        for match in re.findall(r"tests/[\w/.]+\w", page.read_text("utf-8"))
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
