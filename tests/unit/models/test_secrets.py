"""Taking secrets out of texts."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.models.secrets import MARK, Redactor

SECRET = 'sk-plan/ted+"key"=0123456789abcdefghij'


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        quote(SECRET, safe=""),
        json.dumps({"key": SECRET}),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        *(
            base64.b64encode(b"user:"[:length] + SECRET.encode() + b"tail").decode()
            for length in (1, 2, 3, 5)
        ),
        f"Incorrect key {SECRET[:25]}",
    ],
)
def test_redact_when_a_secret_is_there_in_some_form_takes_it_out(text: str) -> None:
    redacted = Redactor([SECRET]).redact(f"before {text} after")
    assert MARK in redacted
    for piece in (SECRET[:20], quote(SECRET)[:20], json.dumps(SECRET)[1:20]):
        assert piece not in redacted
    assert redacted.startswith("before ")


def test_redact_when_one_secret_holds_another_leaves_nothing_of_either() -> None:
    assert Redactor(["abcdef", "xx-abcdef-yy"]).redact("xx-abcdef-yy abcdef") == f"{MARK} {MARK}"


def test_redact_when_a_secret_is_very_short_does_not_look_for_it() -> None:
    assert Redactor(["a", "abc"]).redact("a cab abc") == "a cab abc"


def test_redact_when_nothing_is_known_returns_the_same_text() -> None:
    text = "x" * 1000
    assert Redactor().redact(text) is text
    assert Redactor().redact_optional(None) is None
    assert Redactor([SECRET]).redact_optional(SECRET) == MARK


@given(st.text(min_size=6, max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_redact_when_any_secret_is_embedded_anywhere_takes_it_out(
    secret: str, before: str, after: str
) -> None:
    if secret not in MARK:
        redacted = Redactor([secret]).redact(before + secret + after)
        assert secret not in redacted.replace(MARK, "\0" * 70)
