"""Settings of one model."""

from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.models.chat import ChatRequest, Message
from fabula.models.options import ModelOptions, options_for
from fabula.models.spec import parse_spec

SPEC = parse_spec("openai:gpt-4.1-mini")


def given(**values: Any) -> dict[str, dict[str, Any]]:
    return {SPEC.text: values}


def test_options_when_nothing_is_given_are_the_defaults() -> None:
    assert options_for(SPEC, {}) == ModelOptions()
    assert options_for(SPEC, {"google:other": {"concurrency": 3}}) == ModelOptions()


def test_options_when_given_as_toml_values_are_read() -> None:
    options = options_for(
        SPEC,
        given(
            concurrency=8,
            unsupported=["temperature"],
            headers={"X-Team": "stories", "Authorization": "Bearer ${GATEWAY}"},
            proxy="http://${PROXY_USER}:${PROXY_PASSWORD}@proxy:3128",
            prices={"input": 1.5, "output": 6},
            extra={"reasoning_effort": "low"},
        ),
    )
    assert options.unsupported == ("temperature",)
    assert options.prices is not None
    assert options.prices.output == 6.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"concurency": 1}, "concurency: there is no such key; there are: base_url"),
        ({"concurrency": 0}, "concurrency: expected greater than or equal to 1, found 0"),
        ({"structured": "xml"}, "structured: expected 'schema', 'json' or 'prompt'"),
        ({"base_url": "localhost:8000"}, "base_url: expected an address that starts with http"),
        ({"base_url": "http://u:p@host"}, "base_url: expected the password of the address as ${VARIABLE}"),
        ({"base_url": "http://${U}@host"}, "base_url: expected an address without user"),
        ({"proxy": "ftp://host"}, "proxy: expected an address that starts with http"),
        ({"headers": {"X Y": "a"}}, "headers: expected header names"),
        ({"headers": {"X-A": "a\nb"}}, "headers.X-A: expected printable ASCII"),
        ({"prices": {"input": -1, "output": 1}}, "prices.input: expected greater than or equal to 0"),
        (
            {"prices": {"input": 1}},
            "prices: expected both input and output, in USD per million tokens, found one",
        ),
        ({"prices": {"picture": 1, "cached_input": 1}}, "prices: expected both input and output"),
        ({"prices": {}}, "prices: expected input and output, picture, or second, found none of them"),
        (
            {"extra": {"picture": {"steps": 3}}},
            "extra.picture: expected only what Fabula does not set itself",
        ),
        ({"patience": float("inf")}, "patience: expected a finite number"),
    ],
)
def test_options_when_a_value_is_wrong_name_section_and_key(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options_for(SPEC, given(**values))
    assert f'[models."openai:gpt-4.1-mini"] {expected}' in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"headers": {"Authorization": "Bearer planted-secret"}},
        {"headers": {"x-api-key": "planted-secret"}},
        {"headers": {"Cookie": "planted-secret"}},
        {"headers": {"api_token": 12, "x": "planted-secret"}},
        {"proxy": "http://me:planted-secret@proxy"},
        {"proxy": "http://me:${A}planted-secret@proxy"},
        {"proxy": "http://planted-secret@proxy"},
        {"base_url": "http://me:planted-secret@host"},
        {"api_key_env": "sk-planted-secret"},
        {"api_key_env": ["planted-secret"]},
    ],
)
def test_options_when_a_secret_stands_in_them_are_refused_without_repeating_it(
    values: dict[str, Any],
) -> None:
    with pytest.raises(ConfigError) as caught:
        options_for(SPEC, given(**values))
    assert "planted" not in str(caught.value)
    assert "planted" not in repr(caught.value.__context__)


def test_options_when_any_section_has_no_model_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="model spec"):
        options_for(SPEC, {"gpt-4.1-mini": {}})


def test_apply_when_the_model_refuses_settings_leaves_them_out_and_adds_extras() -> None:
    options = ModelOptions(unsupported=("temperature", "seed"), structured="json", extra={"effort": "low"})
    request = ChatRequest(
        "m", (Message("user", ("hi",)),), temperature=0.0, seed=7, extra={"effort": "high", "a": 1}
    )
    applied = options.apply(request)
    assert (applied.temperature, applied.seed, applied.structured) == (None, None, "json")
    assert applied.extra == {"effort": "low", "a": 1}
    assert applied.key() != request.key()


def test_identity_when_only_speed_differs_is_the_same() -> None:
    assert ModelOptions(concurrency=1, attempts=2).identity() == ModelOptions().identity()
    assert ModelOptions(structured="json").identity() != ModelOptions().identity()


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"max_tokens": 9000}, "extra.max_tokens"),
        ({"n": 4}, "extra.n"),
        ({"generationConfig": {"maxOutputTokens": 9000}}, "extra.generationConfig.maxOutputTokens"),
        ({"logit_bias": [{"top_p": float("nan")}]}, "extra.logit_bias.top_p"),
    ],
)
def test_extra_when_it_would_cost_more_than_is_set_aside_or_is_no_json_is_refused(
    extra: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        options_for(parse_spec("openai:gpt-x"), {"openai:gpt-x": {"extra": extra}})
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)


def test_options_when_only_a_picture_has_a_price_are_read() -> None:
    options = options_for(SPEC, given(prices={"picture": 0.04}))
    assert options.prices is not None and (options.prices.picture, options.prices.input) == (0.04, None)


def test_options_when_nothing_is_given_for_a_video_wait_longer() -> None:
    spec = parse_spec("video:google:x")
    assert options_for(spec, {}).call_timeout == 1800.0
    assert options_for(spec, {spec.text: {"call_timeout": 60}}).call_timeout == 60.0
