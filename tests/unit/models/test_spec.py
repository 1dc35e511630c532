"""Reading model specs."""

import pytest

from fabula.errors import ConfigError
from fabula.models.spec import ModelSpec, parse_spec


@pytest.mark.parametrize(
    ("text", "provider", "name", "base_url"),
    [
        ("openai:gpt-4.1-mini", "openai", "gpt-4.1-mini", None),
        ("openai:ft:gpt-4.1:org::id", "openai", "ft:gpt-4.1:org::id", None),
        ("google:gemini-2.5-pro", "google", "gemini-2.5-pro", None),
        ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", None),
        ("house-model:v2", "house-model", "v2", None),
        ("http://localhost:8000/v1#qwen3-vl", "compatible", "qwen3-vl", "http://localhost:8000/v1"),
        ("https://[::1]:8000/v1/#Qwen/Qwen3", "compatible", "Qwen/Qwen3", "https://[::1]:8000/v1"),
    ],
)
def test_spec_when_of_a_known_form_is_read(text: str, provider: str, name: str, base_url: str | None) -> None:
    spec = parse_spec(text)
    assert spec == ModelSpec(text, provider, name, base_url)
    assert str(spec) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "gpt-4.1-mini", "openai:", ":gpt", "openai:a b", "OpenAI:x\n", "openai:" + "x" * 400,
        "http://localhost:8000/v1", "http://#name", "http://host:port/v1#m", "ftp://h/v1#m",
    ],
)  # fmt: skip
def test_spec_when_of_another_form_is_refused_with_the_forms_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected .*NAME"):
        parse_spec(text)


def test_spec_when_the_address_holds_a_password_does_not_repeat_it() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec("https://me:hunter2hunter2@host/v1#m")
    assert "hunter2" not in str(caught.value)
    assert "api_key_env" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://host/v1?key=hunter2hunter2#m",
        "https://host/v1?hunter2hunter2#m",
        "https://host/v1#m?k=hunter2hunter2",
        "embedding:https://host/v1?api_key=hunter2hunter2#m",
        "openai:x?hunter2hunter2",
        "https://host/v1/token=hunter2hunter2#m",
        "htps://me:hunter2hunter2@host/v1#m",
        "sk-proj-hunter2hunter2",
        "AIzaSyhunter2hunter2",
    ],
)
def test_spec_when_it_may_hold_a_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(text)
    assert "hunter2" not in str(caught.value) and "hunter2" not in repr(caught.value.__context__)
    assert "api_key_env" in str(caught.value) or "what looks like a key" in str(caught.value)
