"""What calls cost: the library's own results, and bounds that hold for whatever a service says."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot

from fabula.engine.estimate import CallPlan, StagePlan
from fabula.errors import ConfigError
from fabula.models import anthropic_chat, google_chat, openai_models
from fabula.models import prices as costs
from fabula.models.chat import ChatRequest, Message, Usage
from fabula.models.generators.request import PictureRequest
from fabula.models.options import ModelOptions, Prices
from fabula.models.spec import parse_spec

SONNET = "anthropic:claude-sonnet-4-5"  # tiers, cache reads, writes, and writes for an hour
DAY = date(2026, 11, 1)
MOST = costs.MostTokens(300_000, 4000)


def listed(spec: str, day: date | None = DAY) -> costs.Price:
    price = costs.price_of(parse_spec(spec), ModelOptions(), day)
    assert price is not None
    return price


def given(**prices: float) -> costs.Price:
    price = costs.price_of(parse_spec("openai:x"), ModelOptions(prices=Prices(**prices)))
    assert price is not None
    return price


FLAT = given(input=2, output=8, cached_input=0.5)


def known_models() -> Iterator[str]:
    """Every model of the services that have an adapter, if the library prices its tokens."""
    for provider in get_snapshot().providers:
        for model in provider.models if provider.id in ("openai", "google", "anthropic") else ():
            spec = f"{provider.id}:{model.id}"
            try:
                found = get_snapshot().find_provider_model(model.id, None, provider.id, None)[1] is model
            except LookupError:
                found = False
            if found and costs.price_of(parse_spec(spec), ModelOptions(), DAY) is not None:
                yield spec


def some_usage(choices: random.Random, most: costs.MostTokens) -> Usage:
    total = choices.choice([choices.randint(1, most.input), most.input, 200_000, 200_001, 1])
    cached = choices.randint(0, total)
    written = choices.choice([0, choices.randint(0, total - cached)])
    answered = choices.choice([0, most.output, choices.randint(0, most.output)])
    hour = choices.choice([0, written, choices.randint(0, written)])
    return Usage(total, answered, cached, choices.randint(0, answered), written, hour)


def by_the_library(spec: str, usage: Usage) -> Decimal:
    provider, _, name = spec.partition(":")
    counts = {f"{costs.NAMES[name]}_tokens": count for name, count in usage.as_json().items()}
    at = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    used = genai_prices.Usage(**counts)
    return genai_prices.calc_price(used, name, provider_id=provider, genai_request_timestamp=at).total_price


# -- the library's own results


def test_cost_when_a_model_is_listed_is_what_the_library_calculates_and_never_above_the_bound() -> None:
    choices, models = random.Random(3), list(known_models())
    assert len(models) > 150
    for spec in models:
        price = listed(spec)
        for _ in range(6):
            most = costs.MostTokens(choices.choice([300_000, 150_000, 5_000_000]), 4000)
            usage = some_usage(choices, costs.MostTokens(min(most.input, 300_000), most.output))
            booked = costs.book(price, usage, most)
            if usage.input_tokens is not None and usage.input_tokens <= most.input:
                assert booked.cost == float(by_the_library(spec, usage)), (spec, usage)
            assert booked.cost <= costs.highest_cost(price, most), (spec, usage)


DOCUMENTS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "openai": ("gpt-6-sol", "chat", openai_models.read_reply, {
        "choices": [{"message": {"content": "x"}}],
        "usage": {
            "prompt_tokens": 10_000, "completion_tokens": 70,
            "prompt_tokens_details": {"cached_tokens": 4000, "cache_write_tokens": 900},
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
    }),
    "openai without a cache": ("gpt-4.1-mini", "chat", openai_models.read_reply, {
        "choices": [{"message": {"content": "x"}}],
        "usage": {"prompt_tokens": 10_000, "completion_tokens": 70},
    }),
    "google": ("gemini-2.5-pro", "default", google_chat.read_reply, {
        "candidates": [{"content": {"parts": [{"text": "x"}]}}],
        "usageMetadata": {
            "promptTokenCount": 210_000, "candidatesTokenCount": 60, "thoughtsTokenCount": 500,
            "cachedContentTokenCount": 9000, "totalTokenCount": 210_560,
        },
    }),
    "google leaves out zeros": ("gemini-2.5-flash", "default", google_chat.read_reply, {
        "candidates": [{"content": {"parts": [{"text": "x"}]}}],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 60, "totalTokenCount": 1060},
    }),
    "google thinks to the end": ("gemini-2.5-flash", "default", google_chat.read_reply, {
        "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}],
        "usageMetadata": {"promptTokenCount": 1000, "thoughtsTokenCount": 900, "totalTokenCount": 1900},
    }),
    "google blocks": ("gemini-2.5-flash", "default", google_chat.read_reply, {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 1000, "totalTokenCount": 1000},
    }),
    "anthropic": ("claude-sonnet-4-5", "default", anthropic_chat.read_reply, {
        "content": [{"type": "text", "text": "x"}],
        "usage": {
            "input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 3000,
            "cache_creation_input_tokens": 9900,
            "cache_creation": {"ephemeral_5m_input_tokens": 9000, "ephemeral_1h_input_tokens": 900},
            "output_tokens_details": {"thinking_tokens": 10},
        },
    }),
    "embedding": ("text-embedding-3-small", "embeddings", openai_models.read_embedding, {
        "data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 500, "total_tokens": 500},
        "model": "text-embedding-3-small",
    }),
}  # fmt: skip


@pytest.mark.parametrize("case", DOCUMENTS)
def test_cost_when_a_service_answers_is_what_the_library_makes_of_its_document(case: str) -> None:
    name, flavour, read, document = DOCUMENTS[case]
    provider = case.split(maxsplit=1)[0].replace("embedding", "openai")
    spec = parse_spec(f"{'embedding:' if case == 'embedding' else ''}{provider}:{name}")
    price = costs.price_of(spec, ModelOptions(), DAY)
    assert price is not None
    told = genai_prices.extract_usage(
        {**document, "model": name, "modelVersion": name}, provider_id=provider, api_flavor=flavour
    )
    at = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    _, model = get_snapshot().find_provider_model(name, None, provider, None)
    expected = told.calc_price(genai_request_timestamp=at, model=model).total_price
    booked = costs.book(price, read(document).usage, MOST)
    assert booked.cost == float(expected)
    assert booked.is_read == (case != "openai without a cache")  # what was cached would have cost less


# -- where prices come from


def test_cost_when_some_input_was_cached_charges_it_apart() -> None:
    # (1000 - 400) * 2 + 400 * 0.5 + 100 * 8 = 2200 millionths
    assert costs.book(FLAT, Usage(1000, 100, cached_tokens=400), MOST).cost == 0.0022


@pytest.mark.parametrize(
    "spec", ["openai:gpt-4.1-mini", "google:gemini-2.5-pro", "anthropic:claude-sonnet-4-5"]
)
def test_price_when_the_model_is_known_comes_from_the_snapshot(spec: str) -> None:
    price = listed(spec, None)
    assert price.source.startswith("genai-prices ")
    assert (
        0
        < min(price.rates("cached_tokens"))
        < min(price.rates("input_tokens"))
        < min(price.rates("output_tokens"))
    )


def test_price_when_given_in_settings_takes_those() -> None:
    options = ModelOptions(prices=Prices(input=1, output=2))
    price = costs.price_of(parse_spec("openai:gpt-4.1-mini"), options)
    assert price is not None
    assert (price.rates("input_tokens"), price.rates("output_tokens"), price.source) == (
        (1,),
        (2,),
        "settings",
    )
    assert costs.book(price, Usage(1000, 0, cached_tokens=900), MOST).cost == 0.001


def test_price_when_it_changed_on_a_day_depends_on_the_day() -> None:
    before, after = (listed("openai:o3", day) for day in (date(2025, 5, 1), date(2025, 7, 1)))
    assert before.rates("input_tokens") > after.rates("input_tokens")
    assert listed("openai:o3", None) == after


def test_price_when_it_depends_on_the_hour_is_the_dearest() -> None:
    price = listed("deepseek:deepseek-reasoner", None)
    _, model = get_snapshot().find_provider_model("deepseek-reasoner", None, "deepseek", None)
    dearest = max(entry.prices.output_mtok for entry in model.prices)  # type: ignore[union-attr,type-var]
    assert costs.book(price, Usage(0, 1000), MOST).cost == float(1000 * dearest) / 1e6  # type: ignore[operator,arg-type]


# -- settings that change the price


@pytest.mark.parametrize(
    ("spec", "extra", "name"),
    [
        ("openai:gpt-4.1-mini", {"service_tier": "priority"}, "service_tier"),
        ("openai:gpt-4.1-mini", {"service_tier": "flex"}, "service_tier"),
        ("openai:gpt-4.1-mini", {"web_search_options": {}}, "web_search_options"),
        ("openai:gpt-4.1-mini", {"tools": [{"type": "web_search"}]}, "tools"),
        ("google:gemini-2.5-pro", {"tools": [{"google_search": {}}]}, "tools"),
        ("google:gemini-2.5-pro", {"serviceTier": "priority"}, "serviceTier"),
        ("google:gemini-2.5-pro", {"cachedContent": "cachedContents/1"}, "cachedContent"),
        (
            "google:gemini-2.5-pro",
            {"generationConfig": {"responseModalities": ["AUDIO"]}},
            "generationConfig.responseModalities",
        ),
        ("anthropic:claude-sonnet-4-5", {"service_tier": "auto"}, "service_tier"),
        ("anthropic:claude-sonnet-4-5", {"speed": "fast"}, "speed"),
        ("anthropic:claude-sonnet-4-5", {"inference_geo": "us"}, "inference_geo"),
        ("anthropic:claude-sonnet-4-5", {"tools": [{"type": "web_search_20250305"}]}, "tools"),
        ("anthropic:claude-sonnet-4-5", {"mcp_servers": []}, "mcp_servers"),
    ],
)
def test_extra_when_it_changes_the_price_is_refused_unless_prices_are_given(spec, extra, name):
    with pytest.raises(ConfigError) as caught:
        costs.check_extra(parse_spec(spec), ModelOptions(extra=extra))
    assert f'[models."{spec}"] extra.{name}' in str(caught.value)
    assert "prices = { input" in str(caught.value)
    costs.check_extra(parse_spec(spec), ModelOptions(extra=extra, prices=Prices(input=1, output=2)))


# -- pictures and videos


PICTURE = costs.MostTokens(2000, 8192, files=1)


@pytest.mark.parametrize(
    ("spec", "usage"),
    [
        (
            "image:google:gemini-2.5-flash-image",
            Usage(100, 1400, image_output_tokens=1290, thinking_tokens=10),
        ),
        ("image:openai:gpt-image-1.5", Usage(1100, 1400, image_input_tokens=1000, image_output_tokens=1290)),
        ("image:openai:gpt-image-2", Usage(1100, 1400, image_input_tokens=1000, image_output_tokens=1290)),
        ("video:google:gemini-omni-1.1-flash", Usage(1100, 8000, video_output_tokens=7000)),
    ],
)
def test_cost_when_tokens_are_of_pictures_is_what_the_library_calculates(spec: str, usage: Usage) -> None:
    booked = costs.book(listed(spec), usage, PICTURE)
    assert booked.is_read
    assert booked.cost == float(by_the_library(spec.partition(":")[2], usage))
    assert booked.cost <= costs.highest_cost(listed(spec), PICTURE)


@pytest.mark.parametrize(
    ("prices", "most", "usd"),
    [
        ({"picture": 0.04}, costs.MostTokens(2000, 8192, 1), 0.04),
        ({"second": 0.1}, costs.MostTokens(2000, 160_000, 1, 8.0), 0.8),
        ({"picture": 0.02, "second": 0.1}, costs.MostTokens(2000, 160_000, 1, 2.5), 0.27),
        ({"picture": 0.04}, costs.MostTokens(2000, 8192), 0.0),
        # 10 tokens at 1 and 20 at 10 USD per million beside the picture's own price
        ({"picture": 0.04, "input": 1.0, "output": 10.0}, costs.MostTokens(2000, 8192, 1), 0.04021),
    ],
)
def test_cost_when_files_and_seconds_have_prices_adds_them(prices, most, usd):
    price = given(**prices)
    assert costs.book(price, Usage(10, 20), most) == costs.Booked(pytest.approx(usd), is_read=True)
    if "input" not in prices:
        assert costs.book(price, None, most) == costs.Booked(pytest.approx(usd), is_read=True)
        assert costs.highest_cost(price, most) == pytest.approx(usd)


def test_most_when_a_video_has_no_duration_is_that_of_a_long_one() -> None:
    video = PictureRequest("video:google:x", "a fox")
    assert costs.most_tokens(video.chat(), ModelOptions()).seconds == 20.0
    timed = costs.most_tokens(replace(video, seconds=8.0).chat(), ModelOptions())
    assert (timed.files, timed.seconds, timed.output) == (1, 8.0, 160_000)
    picture = costs.most_tokens(PictureRequest("image:google:x", "a fox").chat(), ModelOptions())
    assert (picture.files, picture.seconds, picture.output) == (1, 0.0, 8192)
    assert costs.most_tokens(ChatRequest("google:x", (Message("user", ("hi",)),)), ModelOptions()).files == 0


@pytest.mark.parametrize("provider", ["diffusers", "command", "drawn"])
def test_price_when_it_runs_here_is_nothing_unless_the_settings_say_so(provider: str) -> None:
    spec = parse_spec(f"image:{provider}:x")
    free = costs.price_of(spec, ModelOptions())
    assert free is not None and costs.book(free, None, PICTURE) == costs.Booked(0.0, is_read=True)
    assert free.source == "it runs on this machine, and nobody charges for it"
    own = costs.price_of(spec, ModelOptions(prices=Prices(picture=0.01)))
    assert own is not None and costs.book(own, None, PICTURE).cost == pytest.approx(0.01)
    assert costs.price_of(parse_spec(f"{provider}:x"), ModelOptions()) is None, (
        "for a chat model, a name like others"
    )


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai:gpt-41-mini", "did you mean openai:gpt-4.1-mini?"),
        ("openai:of-nobody-at-all", "not known; give it in fabula.toml:\n"),
        (
            "http://127.0.0.1:8123/v1#gpt-41-mini",
            "PRICE }  # PRICE in USD per million tokens, 0 where nobody",
        ),
    ],
)
def test_sentence_when_a_price_is_not_known_names_the_nearest_model_and_no_made_up_price(model, said):
    sentence = costs.tell_unknown_price(model)
    assert said in sentence
    settings = tomllib.loads(sentence.partition("fabula.toml:")[2].replace("= PRICE", "= 0.5"))
    assert settings["models"][model]["prices"] == {"input": 0.5, "output": 0.5}
    assert ("did you mean" in sentence) == ("did you mean" in said)


def test_plan_when_several_judges_are_asked_sums_up_each_of_them_and_the_most_that_it_can_cost() -> None:
    stages = [
        StagePlan("judge_text", "openai:a", 10, 0, 100, 20, 1.0, 2.0, True),
        StagePlan("judge_text", "openai:b", 10, 0, 100, 20, 3.0, 5.0, True),
        StagePlan("judge_images", "openai:a", 5, 0, 50, 10, 0.5, 0.75, True),
    ]
    lines = CallPlan(1, tuple(stages), 0.0).lines()
    totals = [line.split() for line in lines if line.startswith("total")]
    assert totals == [
        ["total", "15", "150", "30", "1.5000", "2.7500", "openai:a"],
        ["total", "10", "100", "20", "3.0000", "5.0000", "openai:b"],
    ]
    assert "25 calls, about 4.5000 USD, at most 7.7500 USD" in lines


def test_plan_when_asked_so_many_times_multiplies_calls_tokens_and_what_they_cost_at_most() -> None:
    plan = StagePlan("draft", "openai:m", 3, 1, 100, 50, 0.25, 1.5, calibrated=False)
    assert plan.times(2.5) == StagePlan("draft", "openai:m", 8, 2, 250, 125, 0.625, 3.75, calibrated=False)
    free = StagePlan("draft", "hf:m", 3, 1, 100, 50, None, None, calibrated=True)
    assert free.times(2) == StagePlan("draft", "hf:m", 6, 2, 200, 100, None, None, calibrated=True)
