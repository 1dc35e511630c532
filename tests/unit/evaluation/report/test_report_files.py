"""The files of a report: page, JSON and CSV."""

import csv
import io
from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.evaluation.report.model import ReportDocument
from fabula.evaluation.report.writing import scores_csv, verdicts_csv, write_report
from fabula.testing.report_documents import HOSTILE, made_report


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


@pytest.mark.parametrize("name", ["page.txt", "page", "report.json"])
def test_report_when_the_page_is_no_html_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TargetError, match=r"does not end in \.html"):
        write_report(made_report(), tmp_path / name)


@pytest.mark.parametrize("content", ['{"kind": "run"}', "no json", "[]"])
def test_report_when_its_json_would_replace_a_file_of_another_kind_is_refused(
    tmp_path: Path, content: str
) -> None:
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
