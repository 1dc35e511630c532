"""What calls cost."""

from datetime import date

import pytest

from fabula.models.chat import Usage
from fabula.models.options import ModelOptions, Prices
from fabula.models.prices import Price, cost, highest_cost, price_of
from fabula.models.spec import parse_spec

FLAT = Price(((0, 2.0),), ((0, 8.0),), ((0, 0.5),), "test")
TIERED = Price(((0, 1.0), (200_000, 2.0)), ((0, 10.0), (200_000, 15.0)), ((0, 0.1), (200_000, 0.2)), "test")


def test_cost_when_some_input_was_cached_charges_it_apart() -> None:
    # (1000 - 400) * 2 + 400 * 0.5 + 100 * 8 = 2200 millionths
    assert cost(FLAT, Usage(1000, 100, cached_tokens=400)) == pytest.approx(0.0022)


def test_cost_when_input_crosses_a_tier_charges_all_of_it_higher() -> None:
    assert cost(TIERED, Usage(199_999, 0)) == pytest.approx(0.199999)
    assert cost(TIERED, Usage(200_000, 100)) == pytest.approx(0.4 + 0.0015)


def test_cost_when_more_is_cached_than_was_sent_never_goes_below_zero() -> None:
    assert cost(FLAT, Usage(10, 0, cached_tokens=50)) == pytest.approx(10 * 0.5 / 1e6)


def test_highest_cost_when_compared_is_never_exceeded() -> None:
    for usage in (Usage(1000, 100), Usage(1000, 100, 1000), Usage(500, 0)):
        assert cost(TIERED, usage) <= highest_cost(TIERED, 1000, 100)
    assert highest_cost(FLAT, 0, 0) == 0.0


@pytest.mark.parametrize(
    "spec", ["openai:gpt-4.1-mini", "google:gemini-2.5-pro", "anthropic:claude-sonnet-4-5"]
)
def test_price_when_the_model_is_known_comes_from_the_snapshot(spec: str) -> None:
    price = price_of(parse_spec(spec), ModelOptions())
    assert price is not None
    assert price.source.startswith("genai-prices ")
    assert 0 < price.cached_input[0][1] < price.input[0][1] < price.output[0][1]


@pytest.mark.parametrize(
    "spec", ["openai:no-such-model-at-all", "http://localhost:1/v1#gpt-4.1-mini", "house:gpt-4.1-mini"]
)
def test_price_when_nobody_knows_it_is_none(spec: str) -> None:
    assert price_of(parse_spec(spec), ModelOptions()) is None


def test_price_when_given_in_settings_takes_those() -> None:
    options = ModelOptions(prices=Prices(input=1, output=2))
    price = price_of(parse_spec("openai:gpt-4.1-mini"), options)
    assert price == Price(((0, 1.0),), ((0, 2.0),), ((0, 1.0),), "settings")


def test_price_when_it_changed_on_a_day_depends_on_the_day() -> None:
    spec = parse_spec("openai:o3")
    before, after = (price_of(spec, ModelOptions(), day) for day in (date(2025, 5, 1), date(2025, 7, 1)))
    assert before is not None
    assert after is not None
    assert before.input[0][1] > after.input[0][1]
    assert price_of(spec, ModelOptions()) == after


def test_price_when_it_depends_on_the_hour_is_the_dearest() -> None:
    price = price_of(parse_spec("deepseek:deepseek-reasoner"), ModelOptions())
    assert price is not None

    from genai_prices.data_snapshot import get_snapshot

    _, model = get_snapshot().find_provider_model("deepseek-reasoner", None, "deepseek", None)
    listed = [float(entry.prices.output_mtok) for entry in model.prices]  # type: ignore[union-attr,arg-type]
    assert price.output[0][1] == max(listed)
