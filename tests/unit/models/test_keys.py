"""Finding keys in the environment and in a .env file."""

from pathlib import Path

import pytest

from fabula.errors import ExitCode, MissingRequirement
from fabula.models.keys import NO_KEY, KeyStatus, Redactor, expand, find_key, key_status
from fabula.models.options import ModelOptions
from fabula.models.spec import parse_spec

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
def test_key_when_in_the_environment_is_found_and_known_to_the_redactor(
    spec: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "  planted-key-1  ")
    redactor = Redactor()
    assert find_key(parse_spec(spec), ModelOptions(), redactor) == "planted-key-1"
    assert key_status(parse_spec(spec)).source == "environment"
    assert "planted" not in redactor.redact("bad key planted-key-1")


def test_key_when_in_both_places_comes_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_key_when_no_header_can_carry_it_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in ("planted\nkey", "planted key", "planted-ключ"):
        monkeypatch.setenv("OPENAI_API_KEY", value)
        with pytest.raises(MissingRequirement) as caught:
            find_key(OPENAI, ModelOptions(), Redactor())
        assert "planted" not in str(caught.value)


def test_key_when_the_server_is_given_by_address_is_never_another_service_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_key_when_short_is_told_by_name_and_never_shown(
    key: str, warned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    warnings: list[str] = []
    find_key(OPENAI, ModelOptions(), Redactor(warn=warnings.append))
    assert len(warnings) == warned and key_status(OPENAI).is_short is bool(warned)
    assert all(text.startswith("OPENAI_API_KEY is short: ") and key not in text for text in warnings)
