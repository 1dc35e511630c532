"""Normal forms of texts and answers."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.text import normalize_answer, normalize_text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  A fox.\r\n\r\n\tA crane. ", "A fox. A crane."),
        ("cafe\u0301", "caf\u00e9"),
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
def test_normalize_answer_when_answer_is_written_otherwise_returns_what_is_compared(
    text: str, answer: str
) -> None:
    assert normalize_answer(text) == answer


@given(st.text())
def test_normalize_answer_when_case_or_padding_changes_stays_the_same(text: str) -> None:
    assert normalize_answer(f" \u201c{text}\u201d.") == normalize_answer(text)
    assert normalize_answer(text) == " ".join(normalize_answer(text).split())
