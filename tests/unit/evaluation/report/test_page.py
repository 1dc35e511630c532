"""The files of a report: a page that is self-contained and escaped, JSON and CSV beside it."""

import base64
import csv
import hashlib
import io
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.evaluation.report.formats import render_page, scores_csv, verdicts_csv, write_report
from fabula.evaluation.report.model import ReportDocument
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


def test_report_when_written_leaves_page_json_and_csv_beside_each_other(tmp_path: Path) -> None:
    written = write_report(made_report(tmp_path / "pics"), tmp_path / "deep" / "mine.html")
    names = sorted(path.name for path in (tmp_path / "deep").iterdir())
    assert names == ["mine.csv", "mine.html", "mine.json", "mine_verdicts.csv"]
    assert {path.name for path in written.files.values()} == set(names)
    assert any("Gap +29.0 [+26.0, +32.0]" in line for line in written.lines())
    assert written.as_json()["headline"]["sdxl + planner"]["stg"]["value"] == 0.29


def test_report_when_read_back_from_json_is_the_same_without_pictures(tmp_path: Path) -> None:
    document = made_report(tmp_path / "pics")
    write_report(document, tmp_path / "mine.html")
    stored = (tmp_path / "mine.json").read_text("utf-8")
    assert ReportDocument.model_validate_json(stored).as_json() == document.as_json()
    assert "data:image" not in stored


def test_report_when_written_again_has_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b", "a"):
        write_report(made_report(tmp_path / "pics", HOSTILE), tmp_path / folder / "mine.html")
    for name in ("mine.html", "mine.json", "mine.csv", "mine_verdicts.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("content", ['{"kind": "run"}', "no json", "[]"])
def test_report_when_its_json_would_replace_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(TargetError, match="not an earlier report"):
        write_report(made_report(), tmp_path / "report.html")
    assert (tmp_path / "report.json").read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_scores_csv_when_read_has_every_number_with_its_interval() -> None:
    rows = list(csv.DictReader(io.StringIO(scores_csv(made_report()))))
    one = next(row for row in rows if row["table"] == "headline" and row["measure"] == "stg")
    assert [float(one[name]) for name in ("value", "low", "high", "denominator")] == pytest.approx(
        [0.29, 0.26, 0.32, 480]
    )
    assert any(row["status"] == "undefined" and row["reason"] == "no valid question" for row in rows)
    assert {"headline", "by_dimension", "comparison", "outcomes", "agreement", "cost"} <= {
        row["table"] for row in rows
    }


def test_csv_when_text_looks_like_a_formula_is_text_for_a_spreadsheet() -> None:
    texts = ("=HYPERLINK(1)", "+1", "@x", "-2", 'quote " and, comma\nnew line \x00')
    rows = list(csv.DictReader(io.StringIO(verdicts_csv(made_report(None, texts)))))
    answers = {row["answer"] for row in rows}
    assert answers == {"'=HYPERLINK(1)", "'+1", "'@x", "'-2", 'quote " and, comma\nnew line '}
    assert {row["correct"] for row in rows} == {"true", "false", ""}
