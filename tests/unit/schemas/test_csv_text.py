"""CSV that a spreadsheet does not compute, and that our readers read back as it was."""

import csv
import io

import pytest

from fabula.schemas.canonical import csv_text, without_guard

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://127.0.0.1")', "-")


@pytest.mark.parametrize("text", [*FORMULAS, "plain", "'quoted'", "'=", "", "1.5", "東京&𠮷"])
def test_csv_when_a_cell_is_text_is_never_computed_and_reads_back(text: str) -> None:
    (name,), (cell, number) = csv.reader(io.StringIO(csv_text((text,), [(text, -1.5)]), newline=""))
    assert name == cell and not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert number == "-1.5"
    assert without_guard(cell) == text.replace("\r", "\n") or text == "'="


def test_csv_when_cells_are_of_other_kinds_writes_them_plainly() -> None:
    assert csv_text(("a", "b", "c", "d"), [(None, True, 2, "\ud842")]) == "a,b,c,d\n,true,2,?\n"
