"""One byte form per value, digests over it, and files that are never half written."""

import csv
import io
import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabula
from fabula.schemas.canonical import (
    canonical_bytes,
    canonical_text,
    csv_text,
    sha256_bytes,
    sha256_file,
    without_guard,
    write_atomic,
)
from fabula.schemas.paths import (
    format_path,
    get_at,
    parse_path,
    parse_quoted,
    quoted_path,
    replace_at,
    value_at,
    with_value,
)
from fabula.schemas.plain_files import BadCsv, CsvTable, below, by_name, composed
from fabula.schemas.text import (
    contains_phrase,
    is_language_tag,
    is_part_id,
    is_story_id,
    normalize_answer,
    normalize_text,
    primary_language,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def test_canonical_text_when_keys_are_in_any_order_is_sorted_compact_and_unicode() -> None:
    assert (
        canonical_text({"b": [1, 2.5, None], "a": "\u72d0\n", "A": True})
        == '{"A":true,"a":"\u72d0\\n","b":[1,2.5,null]}'
    )


@given(JSON)
def test_canonical_text_when_parsed_again_gives_the_value_and_one_line(value: Any) -> None:
    text = canonical_text(value)
    assert json.loads(text) == value
    assert "\n" not in text
    assert canonical_text(json.loads(text)) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_canonical_text_when_number_is_not_json_refuses(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_text(value)


def test_canonical_bytes_when_text_is_half_a_character_refuses() -> None:
    with pytest.raises(UnicodeEncodeError):
        canonical_bytes("\ud800")


def test_sha256_file_when_file_is_larger_than_a_piece_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    assert sha256_file(tmp_path / "f") == sha256_bytes(b"x" * 3_000_000)


def test_write_atomic_when_writing_fails_keeps_the_old_file_and_leaves_no_part(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # a file gives no more rights than its folder
    target = tmp_path / "f.jsonl"
    write_atomic(target, [b"old\n"])

    def chunks() -> Any:
        yield b"new"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomic(target, chunks())
    assert target.read_bytes() == b"old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["f.jsonl"]
    assert target.stat().st_mode & 0o777 == 0o644


# CSV that a spreadsheet does not compute, and that our readers read back as it was.

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://127.0.0.1")', "-")


@pytest.mark.parametrize("text", [*FORMULAS, "plain", "'quoted'", "'=", "", "1.5", "東京&𠮷"])
def test_csv_when_a_cell_is_text_is_never_computed_and_reads_back(text: str) -> None:
    (name,), (cell, number) = csv.reader(io.StringIO(csv_text((text,), [(text, -1.5)]), newline=""))
    assert name == cell and not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert number == "-1.5"
    assert without_guard(cell) == text.replace("\r", "\n") or text == "'="


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("title,text,title\na,b,c\n", 1, "columns that are there twice: 'title'"),
        ("title, text ,text\na,b,c\n", 1, "columns that are there twice: 'text'"),
        ("title;text\na;b\n", 1, "columns that semicolons separate; save it with commas"),
        ("title\ttext\na\tb\n", 1, "columns that tabs separate; save it with commas"),
        ("sep=;\ntitle;text\na;b\n", 1, "columns that semicolons separate"),
        ('a,b\n"x\ny",1\n"z"z,2\n', 4, "no CSV"),
        ("a,b,\n1,2,\n3,4,5\n", 3, "a cell under a column without a name"),
        ("a,b\n1,2\n\n3\n", 4, "1 cell for 2 columns"),
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
    assert [path.relative_to(root).as_posix() for path in readers] == ["schemas/plain_files.py"]


# Normal forms of texts and answers.


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  A fox.\r\n\r\n\tA crane. ", "A fox. A crane."),
        ("cafe\u0301", "caf\u00e9"),
        ("cafe\u00ad\u0301", "caf\u00e9"),
        ("\u1112\u200b\u1161\u00ad\u11ab", "\ud55c"),
        ("a\u00a0b\u2003c\u3000d", "a b c d"),
        ("a\x00b\x07c", "abc"),
        ("\ufeffone\u200btwo\u202ethree\u00ad", "onetwothree"),
        ("\u0915\u094d\u200d\u0937 \u0646\u200c\u0645", "\u0915\u094d\u200d\u0937 \u0646\u200c\u0645"),
        ("half \ud800 of a character", "half of a character"),
        ("line\u2028separator\u2029x\x85y", "line separator x y"),
        (
            "\u72d0\u306f\u9db4\u306b\u3000\u4f1a\u3063\u305f\u3002",
            "\u72d0\u306f\u9db4\u306b \u4f1a\u3063\u305f\u3002",
        ),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_normalize_text_when_text_has_noise_returns_the_normal_form(text: str, normal: str) -> None:
    assert normalize_text(text) == normal


@pytest.mark.slow
def test_normalize_text_when_each_character_of_unicode_is_met_keeps_drops_or_spaces_it() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        category = unicodedata.category(char)
        noise = category in ("Cc", "Cf", "Cs") and char not in "\u200c\u200d"
        composed = unicodedata.normalize("NFC", f"a{char}b")
        if char.isspace():
            assert normalize_text(f"a{char}b") == "a b", hex(code)
        elif noise:
            assert normalize_text(f"a{char}b") == "ab", hex(code)
        else:
            assert normalize_text(f"a{char}b") == re.sub(r"\s+", " ", composed), hex(code)


@given(st.text())
def test_normalize_text_when_applied_leaves_single_spaces_and_no_control_characters(text: str) -> None:
    normal = normalize_text(text)
    assert normal == " ".join(normal.split())
    assert all(unicodedata.category(char) not in ("Cc", "Cs") for char in normal)


# Letters that compose, what may stand between them, and spaces; drawn often enough to meet each other.
PIECES = st.text(
    st.sampled_from(
        "ae\u0301\u0323\u0338=\u1112\u1161\u11ab\u0915\u093c\u00ad\u200b\u200d\ufeff\x07 \n\u2000"
    )
)


@given(st.text() | PIECES)
def test_normalize_text_when_applied_twice_changes_nothing_more_and_is_composed(text: str) -> None:
    normal = normalize_text(text)
    assert normalize_text(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The lion ESCAPED!", "the lion escaped"),
        ("  mouse's  net ", "mouse s net"),
        ("Stra\u00dfe", "strasse"),
        ("\uff21\uff22\uff23 \u2460", "abc 1"),
        ("\u00bfQu\u00e9?", "qu\u00e9"),
        ("?!...", ""),
        ("\u2764", ""),
        ("\u72d0\u3002\u9db4", "\u72d0 \u9db4"),
        ("well-known", "well known"),
    ],
)
def test_normalize_answer_when_answer_is_written_otherwise_returns_what_is_compared(text, answer):
    assert normalize_answer(text) == answer


@given(st.text())
def test_normalize_answer_when_case_or_padding_changes_stays_the_same(text: str) -> None:
    assert normalize_answer(f" \u201c{text}\u201d.") == normalize_answer(text)
    assert normalize_answer(text) == " ".join(normalize_answer(text).split())


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("the elephant wanted water", "ant", False),
        ("the elephant met an ant", "ant", True),
        ("ant", "ant", True),
        ("a heart of art", "art", True),
        ("a heart", "art", False),
        ("an ant hill", "ant hill", True),
        ("an ant hills", "ant hill", False),
        ("room 12", "12", True),
        ("room 123", "12", False),
        ("anything", "", False),
        ("", "ant", False),
        ("die b\u00e4renh\u00f6hle", "b\u00e4r", False),
        ("\u0434\u043e\u043c\u0430", "\u0434\u043e\u043c", False),
        ("\u4ece\u524d\u6709\u4e00\u53ea\u72d0\u72f8\u5f88\u997f", "\u72d0\u72f8", True),
        ("\u4ed6\u7684ipod\u574f\u4e86", "ipod", True),
        ("\u4ed6\u7684ipods\u574f\u4e86", "ipod", False),
        ("\u0643\u0627\u0646 \u0627\u0644\u0623\u0633\u062f", "\u0623\u0633\u062f", True),
    ],
)
def test_contains_phrase_when_the_script_tells_words_apart_finds_whole_words_only(text, phrase, found):
    assert contains_phrase(text, phrase) is found


# -- JSON paths: parse and format are inverse; reading and replacing say when nothing is there

DOCUMENT = {"scenes": [{"action": "runs"}, {"action": None}], "title": "x"}
STEPS = st.lists(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.integers(0, 10**6), max_size=6
)


@given(STEPS)
def test_parse_path_when_path_was_formatted_returns_the_steps(steps: list[str | int]) -> None:
    assert parse_path(format_path(steps)) == tuple(steps)


@pytest.mark.parametrize(
    "path",
    ["", "scenes", "$scenes", "$.", "$[x]", "$[-1]", "$.a b", "$..a", "$[0", "$.a[*]", "$.9", "$.a\n",
     "$[\u0661]"],
)  # fmt: skip
def test_parse_path_when_text_is_no_path_says_from_where_on(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_path(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [("$", DOCUMENT), ("$.title", "x"), ("$.scenes[1].action", None), ("$.scenes[0]", {"action": "runs"})],
)
def test_get_at_when_something_is_there_returns_it(path: str, value: Any) -> None:
    assert get_at(DOCUMENT, path) == value


@pytest.mark.parametrize(
    "path", ["$.name", "$.scenes[2]", "$.scenes.action", "$[0]", "$.title[0]", "$.title.x"]
)
def test_access_when_nothing_is_there_raises_lookup_error(path: str) -> None:
    with pytest.raises(LookupError, match="nothing at"):
        get_at(DOCUMENT, path)
    with pytest.raises(LookupError, match="nothing at"):
        replace_at(DOCUMENT, path, 1)


def test_replace_at_when_path_exists_changes_the_copy_and_not_the_original() -> None:
    changed = replace_at(DOCUMENT, "$.scenes[1].action", "hides")
    assert changed == {"scenes": [{"action": "runs"}, {"action": "hides"}], "title": "x"}
    assert DOCUMENT["scenes"][1] == {"action": None}
    assert changed["scenes"][0] is DOCUMENT["scenes"][0]
    assert replace_at(DOCUMENT, "$", 1) == 1


# JSON paths with names in quotes: parse and write are inverse; simple paths are among them.

QUOTED_STEPS = st.lists(st.text(max_size=9) | st.integers(0, 10**6), max_size=5)
QUOTED_DOCUMENT = {"Shots": [{"Setting Description": {"en": "A hill", "ch": None}}], "Old Tom's": 1}


@given(QUOTED_STEPS)
def test_parse_when_a_path_was_written_returns_the_steps(steps: list[str | int]) -> None:
    assert parse_quoted(quoted_path(steps)) == tuple(steps)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.scenes[2].action", ("scenes", 2, "action")),
        ("$.Shots[0]['Setting Description'].en", ("Shots", 0, "Setting Description", "en")),
        ('$.Shots[0]["Setting Description"].en', ("Shots", 0, "Setting Description", "en")),
        ('$.Characters["Tom\'s \\u00e9"]', ("Characters", "Tom's é")),
    ],
)
def test_parse_when_names_stand_in_quotes_takes_either_kind(path: str, steps: tuple[Any, ...]) -> None:
    assert parse_quoted(path) == steps


@pytest.mark.parametrize(
    "path", ["", "a", "$['a", '$["a\\x"]', "$[a b]", "$['a']b", "$.a b", "$[-1]", "$..a"]
)
def test_parse_when_text_is_no_path_says_from_where_on(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_quoted(path)


def test_value_when_it_is_there_is_returned_and_replaced_in_a_copy() -> None:
    steps = parse_quoted("$.Shots[0]['Setting Description'].ch")
    assert value_at(QUOTED_DOCUMENT, steps) is None
    assert value_at(with_value(QUOTED_DOCUMENT, steps, "山"), steps) == "山"
    assert value_at(QUOTED_DOCUMENT, steps) is None


# What may be an id or a language tag.


@pytest.mark.parametrize("text", ["a", "kb25k_0001", "7-dwarfs", "A" * 64])
def test_story_id_when_plain_and_short_is_one(text: str) -> None:
    assert is_story_id(text) and is_part_id(text)


@pytest.mark.parametrize("text", ["", "_a", "-a", "a.b", "a/b", "..", "a b", "a\n", "\u00e9", "a\u0661"])
def test_id_when_it_could_not_be_a_file_name_everywhere_is_none(text: str) -> None:
    assert not is_story_id(text) and not is_part_id(text)


def test_part_id_when_longer_than_a_story_id_is_still_one_up_to_its_limit() -> None:
    assert not is_story_id("a" * 65)
    assert is_part_id("a" * 96) and not is_part_id("a" * 97)


@pytest.mark.parametrize(
    ("tag", "language"), [("en", "en"), ("EN-us", "en"), ("zh-Hans-CN", "zh"), ("hsb", "hsb")]
)
def test_language_tag_when_well_formed_has_a_primary_language(tag: str, language: str) -> None:
    assert is_language_tag(tag) and primary_language(tag) == language


# Names as file systems write them: é may be one character or two, and is the same name.

ONE, TWO = "caf\u00e9.mp4", "cafe\u0301.mp4"


def test_names_when_two_become_one_are_told_and_the_first_is_taken() -> None:
    assert by_name([TWO, "a.mp4", ONE]) == ({ONE: TWO, "a.mp4": "a.mp4"}, [(TWO, ONE)])
    assert by_name(["a", "\uac00"]) == ({"a": "a", "\uac00": "\uac00"}, [])


@pytest.mark.parametrize(("there", "asked"), [(ONE, TWO), (TWO, ONE), (TWO, TWO)])
def test_file_when_its_name_is_written_otherwise_is_found(tmp_path: Path, there: str, asked: str) -> None:
    folder = tmp_path / composed("Zoe\u0308")
    folder.mkdir()
    (folder / there).touch()
    assert below(tmp_path, f"Zoe\u0308/{asked}") == folder / there
    assert below(tmp_path, "Zoe\u0308/other.mp4") == folder / "other.mp4"


def test_file_when_both_names_are_there_is_that_of_exactly_the_name(tmp_path: Path) -> None:
    for name in (ONE, TWO):
        (tmp_path / name).touch()
    assert [below(tmp_path, name).name for name in (ONE, TWO)] == [ONE, TWO]
    assert below(tmp_path, "\u00e9" * 300) == tmp_path / ("\u00e9" * 300)  # too long for a name
