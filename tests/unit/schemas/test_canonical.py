"""One byte form per value, digests over it, and files that are never half written."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.canonical import (
    canonical_bytes,
    canonical_text,
    digest,
    jsonl_lines,
    pretty_bytes,
    sha256_bytes,
    sha256_file,
    write_atomic,
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


def test_digest_when_value_is_known_is_the_sha_256_of_its_canonical_form() -> None:
    assert digest({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest() == sha256_bytes(b'{"a":1}')
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1}) != digest({"a": 2, "b": 1.0})


def test_sha256_file_when_file_is_larger_than_a_piece_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    assert sha256_file(tmp_path / "f") == sha256_bytes(b"x" * 3_000_000)


def test_lines_and_documents_when_written_end_in_one_line_feed() -> None:
    assert list(jsonl_lines([{"b": 1, "a": 2}, "x\n"])) == [b'{"a":2,"b":1}\n', b'"x\\n"\n']
    assert pretty_bytes({"b": "\u00e9", "a": []}) == '{\n  "a": [],\n  "b": "\u00e9"\n}\n'.encode()


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
