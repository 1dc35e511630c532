"""Taking secrets out of texts."""

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from urllib.parse import quote, quote_plus, unquote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import ExitCode, MissingRequirement
from fabula.models.keys import MARK, NO_KEY, KeyStatus, Redactor, expand, find_key, key_status
from fabula.models.options import ModelOptions
from fabula.models.spec import parse_spec

SECRET = 'sk-plan/ted+"key"=0123456789abcdefghij'


def test_redact_when_one_secret_holds_another_leaves_nothing_of_either() -> None:
    assert Redactor(["abcdef", "xx-abcdef-yy"]).redact("xx-abcdef-yy abcdef") == f"{MARK} {MARK}"


@settings(deadline=None)
@given(st.text(min_size=6, max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_redact_when_any_secret_is_embedded_anywhere_takes_it_out(secret, before, after):
    if secret not in MARK:
        redacted = Redactor([secret]).redact(before + secret + after)
        assert secret not in redacted.replace(MARK, "\0" * 70)


Encoding = Callable[[str], str]


def _escaped(text: str) -> str:
    """Every UTF-16 unit as a JSON escape."""
    raw = text.encode("utf-16-be")
    return "".join(f"\\u{raw[at]:02X}{raw[at + 1]:02x}" for at in range(0, len(raw), 2))


ENCODINGS: dict[str, Encoding] = {
    "plain": lambda text: text,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON, everything escaped": _escaped,
    "percent": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "percent, everything": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML": lambda text: html.escape(text, quote=True),
    "HTML, decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#X{ord(char):X};" for char in text),
    "Markdown": lambda text: re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind a letter": lambda text: base64.b64encode(b"u" + text.encode() + b"tail").decode(),
    "base64 behind two": lambda text: base64.b64encode(b"us" + text.encode() + b"tail").decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(b"user:" + text.encode()).decode(),
}
KEYS = {
    "long": "sk-proj-0123456789abcdefABCDEF_-0123456789abcdef",
    "short": "sk-pl9xyz",
    "slashes": "AIza/Sy+plan/ted==",
    "quotes": "pass\"word\\with'marks",
    "marks": "<p>&amp;%2F$key[1]",
    "beyond ASCII": "schlüssel-鍵-\U0001f511-ключ",
    "a space": "open sesame now",
}


STRINGS = ("JSON", "JSON, slashes escaped")
"""What is done to a text that is put into a string of a reply."""


def _readings(text: str, depth: int = 5) -> Iterator[str]:
    """Yield a text and whatever somebody can decode it to."""
    seen, layer = {text}, {text}
    for _ in range(depth):
        more = {reading for known in layer for reading in _decoded(known)} - seen
        seen |= more
        layer = more
    yield from seen


def _decoded(text: str) -> Iterator[str]:
    yield html.unescape(text)
    yield unquote_plus(text)
    yield re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    with suppress(ValueError):
        yield json.loads(f'"{text}"', strict=False)
    for piece in re.findall(r"[\w+/=-]{8,}", text, re.ASCII):
        padded = piece.rstrip("=") + "=" * (-len(piece.rstrip("=")) % 4)
        for decode in (base64.b64decode, base64.urlsafe_b64decode):
            with suppress(ValueError):
                yield decode(padded).decode("utf-8", "replace")


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_redact_when_a_secret_is_encoded_leaves_nothing_to_decode(encoding: str, name: str) -> None:
    key = KEYS[name]
    redactor, coded = Redactor([key]), ENCODINGS[encoding](key)
    for text in (coded, *(ENCODINGS[outer](coded) for outer in STRINGS)):
        assert any(key in reading for reading in _readings(f"a {text} b")), "somebody could decode it"
        redacted = redactor.redact(f"a {text} b")
        assert not any(key in reading for reading in _readings(redacted)), text
        assert redacted.startswith("a ") and redacted.endswith(" b")


@pytest.mark.parametrize("name", KEYS)
def test_redact_when_every_character_is_encoded_in_another_way_takes_it_out(name: str) -> None:
    key, random = KEYS[name], Random(7)
    redactor = Redactor([key])
    ways = [way for kind, way in ENCODINGS.items() if "base64" not in kind]
    for _ in range(50):
        mixed = "".join(random.choice(ways)(char) for char in key)
        redacted = redactor.redact(f"({mixed})")
        assert redacted == f"({MARK})", mixed


@pytest.mark.parametrize("depth", range(1, 7))
def test_redact_when_a_string_stands_in_strings_takes_it_out(depth: int) -> None:
    key = KEYS["quotes"]
    text = key
    for _ in range(depth):
        text = json.dumps({"text": text})
    redacted = Redactor([key]).redact(text)
    assert MARK in redacted
    for _ in range(depth):
        redacted = json.loads(redacted)["text"]
    assert redacted == MARK


def test_redact_json_when_a_secret_is_a_name_or_a_value_takes_it_out_and_keeps_the_rest() -> None:
    value = {"a": [1, None, f"x {SECRET}"], SECRET: True}
    assert Redactor([SECRET]).redact_json(value) == {"a": [1, None, f"x {MARK}"], MARK: True}


PARTED = "sk-proj-9fK2mQx7LpV4tZ8rWc3YbN6dHj5S"
TAIL = PARTED[8:]
WAYS: dict[str, Encoding] = {
    "plain": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "spaces": " ".join,
    "dashes": "-".join,
    "line breaks": "\n".join,
    "zero-width spaces": "\u200b".join,
    "words between dots": " ... ".join,
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex(" ").upper(),
    "a dump": lambda text: text.encode().hex(":"),
    "bytes of C": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "bytes of Python": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "JSON escapes": _escaped,
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "UTF-16, shown": lambda text: repr(text.encode("utf-16-le"))[2:-1],
    "UTF-16, escaped": lambda text: json.dumps(text.encode("utf-16-le").decode("latin-1"))[1:-1],
    "UTF-16, the other way": lambda text: text.encode("utf-16-be").decode("latin-1"),
    "hexadecimal of UTF-16": lambda text: text.encode("utf-16-le").hex(),
    "hexadecimal of UTF-16, the other way": lambda text: text.encode("utf-16-be").hex(" "),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind something": lambda text: base64.b64encode(b"user:" + text.encode()).decode(),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 of UTF-16, the other way": lambda text: base64.b64encode(text.encode("utf-16-be")).decode(),
}


@pytest.mark.parametrize("way", WAYS)
def test_redact_when_eight_characters_of_a_secret_are_there_takes_them_out(way: str) -> None:
    redactor = Redactor([PARTED])
    for length in (8, 11, len(TAIL)):
        for start in range(len(TAIL) - length + 1):
            shown = WAYS[way](TAIL[start : start + length])
            redacted = redactor.redact(f"λέγε {shown} τώρα")
            assert MARK in redacted, shown
            assert redacted.startswith("λέγε ") and redacted.endswith(" τώρα")
            left = redacted.removeprefix("λέγε ").removesuffix(" τώρα").replace(MARK, "")
            assert len(left) <= (10 if "behind" in way else 6), (shown, redacted)


def test_redact_when_less_of_a_secret_is_there_or_what_all_keys_begin_with_leaves_it() -> None:
    redactor = Redactor(["sk-ant-api03-9fK2mQx7LpV4tZ8r", "AIzaSyD9fK2mQx7LpV4tZ8rWc3YbN6dHj5S"])
    for text in ("9fK2mQx", "keys begin with sk-ant-api03- there", "AIzaSy...", "sk-ant-api03-9f"):
        assert redactor.redact(text) == text


def test_redact_when_a_secret_has_words_in_it_leaves_texts_with_these_words() -> None:
    redactor = Redactor(
        ["storyboard2024", "open-sesame-please-now", "correct horse battery staple", "12345678x"]
    )
    text = (
        "The Storyboard of 2024. Open, Sesame! A correct horse; 1, 2, 3, 4, 5, 6, 7, 8. Battery: staple it."
    )
    assert redactor.redact(text) == text
    assert redactor.redact("Open sesame, please, now!") == f"{MARK}!", "sixteen characters of it"


def test_redact_bytes_when_a_file_holds_a_secret_takes_it_out_in_each_form() -> None:
    redactor = Redactor([PARTED])
    raw = PARTED.encode()
    utf_16 = (PARTED.encode(f"utf-16-{order}") for order in ("le", "be"))
    for form in (raw, *utf_16, raw.hex().encode(), base64.b64encode(raw)):
        assert redactor.redact_bytes(b"\x89PNG " + form + b"!").startswith(b"\x89PNG " + MARK.encode())


# -- Finding keys in the environment and in a .env file

OPENAI = parse_spec("openai:x")
LOCAL = parse_spec("http://localhost:1/v1#x")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai:x", "OPENAI_API_KEY"),
        ("google:x", "GEMINI_API_KEY"),
        ("google:x", "GOOGLE_API_KEY"),
        ("anthropic:x", "ANTHROPIC_API_KEY"),
    ],
)
def test_key_when_in_the_environment_is_found_and_known_to_the_redactor(spec, variable, monkeypatch):
    monkeypatch.setenv(variable, "  planted-key-1  ")
    redactor = Redactor()
    assert find_key(parse_spec(spec), ModelOptions(), redactor) == "planted-key-1"
    assert key_status(parse_spec(spec)).source == "environment"
    assert "planted" not in redactor.redact("bad key planted-key-1")


def test_key_when_in_both_places_comes_from_the_environment(folder, monkeypatch):
    (folder / ".env").write_text("OPENAI_API_KEY=from-file\n")
    assert find_key(OPENAI, ModelOptions(), Redactor()) == "from-file"
    assert key_status(OPENAI) == KeyStatus(("OPENAI_API_KEY",), "OPENAI_API_KEY", ".env")
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    assert find_key(OPENAI, ModelOptions(), Redactor()) == "from-environment"


@pytest.mark.parametrize("content", [None, "", "OPENAI_API_KEY=\n", "OPENAI_API_KEY\n", "# nothing\n"])
def test_key_when_missing_names_variable_and_file(folder: Path, content: str | None) -> None:
    if content is not None:
        (folder / ".env").write_text(content)
    with pytest.raises(MissingRequirement) as caught:
        find_key(OPENAI, ModelOptions(), Redactor())
    assert caught.value.exit_code == ExitCode.MISSING
    assert "OPENAI_API_KEY" in str(caught.value)
    assert str(folder / ".env") in str(caught.value)
    assert not key_status(OPENAI).found


def test_key_when_no_header_can_carry_it_is_refused_without_repeating_it(monkeypatch):
    for value in ("planted\nkey", "planted key", "planted-ключ"):
        monkeypatch.setenv("OPENAI_API_KEY", value)
        with pytest.raises(MissingRequirement) as caught:
            find_key(OPENAI, ModelOptions(), Redactor())
        assert "planted" not in str(caught.value)


def test_key_when_the_server_is_given_by_address_is_never_another_service_s(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    assert find_key(LOCAL, ModelOptions(), Redactor()) == NO_KEY
    assert key_status(LOCAL).found
    named = ModelOptions(api_key_env="LOCAL_KEY_NAME")
    with pytest.raises(MissingRequirement, match="LOCAL_KEY_NAME"):
        find_key(LOCAL, named, Redactor())
    monkeypatch.setenv("LOCAL_KEY_NAME", "local-key")
    assert find_key(LOCAL, named, Redactor()) == "local-key"


def test_expand_when_a_variable_is_set_fills_it_in_and_hides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PASS", "planted-pass")
    redactor = Redactor()
    assert expand("Bearer ${GATEWAY_PASS}", "headers", redactor) == "Bearer planted-pass"
    assert redactor.redact("planted-pass") == "[secret removed]"
    with pytest.raises(MissingRequirement, match="NOWHERE"):
        expand("${NOWHERE}", "headers", redactor)


@pytest.mark.parametrize(
    ("key", "warned"), [("ab1", 1), ("hunter2", 1), ("a-b-c-d-e-f-1", 1), ("hunter22", 0)]
)
def test_key_when_short_is_told_by_name_and_never_shown(key, warned, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    warnings: list[str] = []
    find_key(OPENAI, ModelOptions(), Redactor(warn=warnings.append))
    assert len(warnings) == warned and key_status(OPENAI).is_short is bool(warned)
    assert all(text.startswith("OPENAI_API_KEY is short: ") and key not in text for text in warnings)
