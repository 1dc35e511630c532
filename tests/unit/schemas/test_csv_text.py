"""CSV that a spreadsheet does not compute, and that our readers read back as it was."""

import csv
import io
import re
from pathlib import Path

import pytest

import fabula
from fabula.schemas.canonical import csv_text, without_guard
from fabula.schemas.csv_table import BadCsv, CsvTable

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://127.0.0.1")', "-")


@pytest.mark.parametrize("text", [*FORMULAS, "plain", "'quoted'", "'=", "", "1.5", "東京&𠮷"])
def test_csv_when_a_cell_is_text_is_never_computed_and_reads_back(text: str) -> None:
    (name,), (cell, number) = csv.reader(io.StringIO(csv_text((text,), [(text, -1.5)]), newline=""))
    assert name == cell and not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert number == "-1.5"
    assert without_guard(cell) == text.replace("\r", "\n") or text == "'="


def test_csv_when_cells_are_of_other_kinds_writes_them_plainly() -> None:
    assert csv_text(("a", "b", "c", "d"), [(None, True, 2, "\ud842")]) == "a,b,c,d\n,true,2,?\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("title,text,title\na,b,c\n", 1, "columns are there twice: 'title'"),
        ("title, text ,text\na,b,c\n", 1, "columns are there twice: 'text'"),
        ("title;text\na;b\n", 1, "semicolons separate its columns; save it with commas"),
        ("title\ttext\na\tb\n", 1, "tabs separate its columns; save it with commas"),
        ("sep=;\ntitle;text\na;b\n", 1, "semicolons separate its columns"),
        ('a,b\n"x\ny",1\n"z"z,2\n', 4, "this is no CSV"),
        ("a,b,\n1,2,\n3,4,5\n", 3, "a cell stands under a column without a name"),
        ("a,b\n1,2\n\n3\n", 4, "there are 1 cells, and 2 columns"),
    ],
)
def test_table_when_it_is_not_as_it_must_be_says_where_and_why(text, line, reason) -> None:
    with pytest.raises(BadCsv, match=re.escape(reason)) as error:
        list(CsvTable(text).named())
    assert error.value.line == line


def test_table_when_cells_hold_line_ends_and_separators_keeps_them_and_the_lines() -> None:
    table = CsvTable('a,b,\r\n"x\r\ny","1;2,3",\r\n\r\nz\u2028z,"",\r\n')
    assert list(table.named()) == [
        (2, {"a": "x\r\ny", "b": "1;2,3"}), (5, {"a": "z\u2028z", "b": ""}),
    ]  # fmt: skip
    assert list(CsvTable("a;b\n1,5;2\n", ",;").named()) == [(2, {"a": "1,5", "b": "2"})]
    assert list(CsvTable("\n\na;b\n1;2\n", ",;").named()) == [(4, {"a": "1", "b": "2"})]
    assert CsvTable("").columns == ()


def test_csv_when_any_reader_takes_it_is_read_in_one_place() -> None:
    root = Path(fabula.__file__).parent
    rooms = [
        path.parent for path in root.glob("*/__init__.py") if path.parent.name not in ("tests", "benchmarks")
    ]
    own = re.compile(r"csv\.(?:reader|DictReader)\(")
    readers = [path for room in rooms for path in room.rglob("*.py") if own.search(path.read_text("utf-8"))]
    assert [path.relative_to(root).as_posix() for path in readers] == ["schemas/csv_table.py"]
