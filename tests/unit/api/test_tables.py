"""Results as tables: what is escaped, what is missing, and replies whose fields have no one type."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fabula.api.frames import judgement_table
from fabula.errors import ConfigError, InputError, MissingRequirement
from fabula.evaluation.report.formats import long_table
from fabula.evaluation.report.model import CountRow, CountTable
from fabula.tables.grid import SHOWN, Grid
from fabula.tables.tabular import Tabular

JUDGE = {"spec": "compatible:toy", "provider": "compatible", "model": "toy", "reported_model": None}


class Made(Tabular):
    """A result of one table."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = rows

    def grids(self) -> list[Grid]:
        return [Grid("made", "Made & <sold>", ("what", "50%_of"), self.rows, "a_note")]


def archive(folder: Path, *parsed: object, **more: object) -> Path:
    rows = [
        {
            "schema_version": "1", "protocol": "katha", "kind": "question", "method": "x", "unit": "s1",
            "seed": None, "item": f"q{number}", "condition": "image", "judge": JUDGE, "vote": 0,
            "prompt": "p@1", "outcome": "answered" if value is not None else "refused", "reason": None,
            "raw": "...", "parsed": value, "input_tokens": 5, "output_tokens": 2, "cost": None,
            "time": "2026-01-01T00:00:00Z", **more,
        }
        for number, value in enumerate(parsed)
    ]  # fmt: skip
    (folder / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_table_when_texts_are_hostile_is_shown_and_printed_as_text() -> None:
    made = Made(("<script>alert(1)</script>\u202e", 1.0), ("a_b & 5 %", None))
    page = made._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\\u202e" in page
    assert "http" not in page
    latex = made.to_latex()
    assert r"a\_b \& 5 \% & -- \\" in latex
    assert r"\caption{Made \& $<$sold$>$. a\_note}" in latex
    assert r"\begin{tabular}{lr}" in latex


def test_table_when_it_is_long_shows_its_first_rows_and_says_how_many_more() -> None:
    page = Made(*((str(number), number) for number in range(SHOWN + 5)))._repr_html_()
    assert page.count("<tr>") == SHOWN + 1
    assert "... and 5 more rows" in page


def test_frames_when_made_have_a_row_each_and_say_what_tables_there_are() -> None:
    made = Made(("a", 1), ("b", None))
    assert made.to_pandas()["50%_of"].sum() == 1
    assert made.to_polars().rows() == [("a", 1), ("b", None)]
    with pytest.raises(ConfigError, match="use one of: made"):
        made.to_pandas("sold")
    assert Made().to_pandas().shape == (0, 2)


def test_frame_when_polars_is_not_there_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)  # as import finds it where it is absent
    with pytest.raises(MissingRequirement, match="pip install polars"):
        Made(("a", 1)).to_polars()


def test_plot_when_there_are_no_numbers_says_so() -> None:
    assert "<svg" in Made(("a", 1), ("b", 2)).plot()._repr_html_()
    with pytest.raises(ConfigError, match="no numbers"):
        Made(("a", None)).plot()


def test_replies_when_fields_differ_in_type_are_json_text_and_none_is_lost(tmp_path: Path) -> None:
    table = judgement_table(archive(tmp_path, {"score": 3}, {"score": "high"}, None, {"other": [1]}))
    assert table["parsed_score"].to_pylist() == ["3", '"high"', None, None]
    assert table["parsed_other"].to_pylist() == [None, None, None, "[1]"]
    assert table["outcome"].to_pylist() == ["answered", "answered", "refused", "answered"]


def test_replies_when_they_look_like_times_stay_texts(tmp_path: Path) -> None:
    table = judgement_table(archive(tmp_path, {"answer": "2020-01-01"}, {"answer": "2020-01-02"}))
    assert table["parsed_answer"].to_pylist() == ["2020-01-01", "2020-01-02"]
    assert table["attempt"].to_pylist() == [1, 1]


def test_replies_when_nothing_could_be_read_are_rows_all_the_same(tmp_path: Path) -> None:
    table = judgement_table(archive(tmp_path, None, None))
    assert table.num_rows == 2
    assert [name for name in table.column_names if name.startswith("parsed")] == []


@pytest.mark.parametrize("text", ["", "{}\n", "not json\n", '{"kind": "question"}\n[1]\n'])
def test_replies_when_a_file_is_none_of_an_archive_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "judgements.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"judgements\.jsonl"):
        judgement_table(tmp_path)
    with pytest.raises(InputError, match=r"judgements\.jsonl"):
        judgement_table(tmp_path / "none")


def test_numbers_when_values_are_texts_too_stay_numbers() -> None:
    rows = (CountRow(label="a", values={"n": 3, "name": "x"}), CountRow(label="b", values={"n": None}))
    table = CountTable(name="counts", title="Counts", columns={"n": "N", "name": "Name"}, rows=rows)
    frame = long_table([table]).to_pylist()
    assert [(row["measure"], row["value"], row["text"]) for row in frame] == [
        ("n", 3.0, None), ("name", None, "x"), ("n", None, None),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="no such table"):
        long_table([table], "scores")
