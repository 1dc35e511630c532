"""Normal forms of texts and answers."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.schemas.text import contains_phrase, is_unspaced, normalize_answer, normalize_text, unspaced_count


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
def test_normalize_answer_when_answer_is_written_otherwise_returns_what_is_compared(
    text: str, answer: str
) -> None:
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
def test_contains_phrase_when_the_script_tells_words_apart_finds_whole_words_only(
    text: str, phrase: str, found: bool
) -> None:
    assert contains_phrase(text, phrase) is found


def test_unspaced_when_a_script_puts_no_space_between_words_is_told_by_its_characters() -> None:
    chinese, thai, tibetan = "\u4ece\u524d\u6709\u4e00", "\u0e01\u0e32\u0e25", "\u0f40\u0f0b\u0f41"
    assert all(is_unspaced(text) for text in (chinese, thai, tibetan, f"ab {chinese}"))
    assert not any(
        is_unspaced(text) for text in ("a fox", "\u0939\u093f\u0928\u094d\u0926\u0940", "\ud55c\uad6d", "")
    )
    assert unspaced_count(f"fox {chinese}") == 4
