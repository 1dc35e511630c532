"""The page: self-contained, escaped, the same for the same document."""

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from fabula.evaluation.report.page import render_page
from fabula.testing.report_documents import HOSTILE, made_report

VOID = {"meta", "link", "img", "input", "br", "wbr"}


class Reader(HTMLParser):
    """Collects tags, attributes and texts; checks that tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, one, value in self.attributes if one == name]


@pytest.fixture
def page(tmp_path) -> str:
    return render_page(made_report(tmp_path), {"JSON": "a b.json"})


@pytest.fixture
def hostile(tmp_path) -> str:
    return render_page(made_report(tmp_path, HOSTILE))


def test_page_when_rendered_is_balanced_and_has_unique_ids(page, hostile) -> None:
    for text in (page, hostile):
        read = Reader(text)
        assert read.open == []
        ids = read.values("id")
        assert len(ids) == len(set(ids))
        known = set(ids)
        for named in read.values("aria-labelledby"):
            assert set(named.split()) <= known
        assert {link[1:] for link in read.values("href") if link.startswith("#")} <= known


def test_page_when_rendered_refers_to_nothing_outside(page) -> None:
    read = Reader(page)
    assert all(source.startswith("data:image/jpeg;base64,") for source in read.values("src"))
    links = [link for link in read.values("href") if not link.startswith("#")]
    assert links == ["data:,", "a%20b.json"]
    assert not re.search(r"url\(|@import|https?://", page.replace("http-equiv", ""))


def test_page_when_text_is_hostile_gains_no_element_attribute_or_handler(page, hostile) -> None:
    plain, attacked = Reader(page), Reader(hostile)
    assert attacked.tags["script"] == plain.tags["script"] == 1
    assert attacked.tags["img"] == plain.tags["img"]
    assert {name for _, name, _ in attacked.attributes} == {name for _, name, _ in plain.attributes}
    assert not [name for _, name, _ in attacked.attributes if name.startswith("on")]
    told = "".join(attacked.texts)
    assert HOSTILE[0] in told and HOSTILE[1] in told and HOSTILE[2] in told  # shown as they are
    assert "[U+202E]" in told and "[U+0000]" in told and "[U+D800]" in told
    assert not set("\u202e\u2066\x00\x1b") & set(hostile)
    hostile.encode("utf-8")


def test_page_when_stories_are_of_any_script_isolates_their_direction(hostile) -> None:
    assert f'<bdi dir="auto">{HOSTILE[4]}</bdi>' in hostile


def test_page_when_read_by_a_browser_may_run_its_own_style_and_script_only(page) -> None:
    policy = next(value for value in Reader(page).values("content") if "default-src" in value)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        expected = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{expected}'" in policy
    assert not Reader(page).values("style")


def test_page_when_rendered_twice_is_the_same(tmp_path) -> None:
    assert render_page(made_report(tmp_path)) == render_page(made_report(tmp_path))


def test_page_when_a_value_is_missing_says_why(page) -> None:
    told = "".join(Reader(page).texts)
    assert "no valid question" in told and "picture not available" not in told
    assert "picture not available" in render_page(made_report(None))


def test_page_when_parts_are_missing_is_rendered_without_them() -> None:
    bare = made_report().model_copy(
        update={
            "plots": (), "details": (), "comparisons": (), "accounting": (), "cases": None,
            "agreement": (), "cost": None, "definitions": (), "warnings": (), "reading": (),
        }
    )  # fmt: skip
    read = Reader(render_page(bare))
    assert read.open == [] and "form" not in read.tags
