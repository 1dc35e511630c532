"""Estimates and bounds of token counts."""

import json
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from fabula.models.chat import ChatRequest, Image, Message, ReplySchema, Usage
from fabula.models.options import ModelOptions
from fabula.models.prices import (
    MostTokens,
    batch_price_of,
    book,
    bound_tokens,
    estimate_request,
    estimate_tokens,
    price_of,
)
from fabula.models.spec import parse_spec


def ask(*parts: str | Image, schema: ReplySchema | None = None) -> ChatRequest:
    return ChatRequest("m", (Message("user", parts),), schema)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("fox", 1),  # 3 / 4 rounded up
        ("a" * 400, 100),
        ("狐" * 10, 10),  # one each
        ("ф" * 10, 7),  # 0.7 each
        ("狐 " * 4, 5),  # 4 + 4 / 4
    ],
)
def test_estimate_when_scripts_differ_counts_each_its_way(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_bound_when_compared_is_never_below_the_bytes() -> None:
    text = "狐 and fox \ud800" * 50
    request = ask(text, schema=ReplySchema("s", {"type": "string", "description": "é" * 30}))
    bound = bound_tokens(request, ModelOptions())
    assert bound > len(text.encode("utf-8", "surrogatepass")) + 60
    assert bound > estimate_request(request)


def test_bound_when_there_are_images_counts_what_the_settings_say() -> None:
    image = Image(b"x", "image/png")
    plain, more = ModelOptions(image_tokens=500), ModelOptions(image_tokens=800)
    assert bound_tokens(ask("a", image, image), more) - bound_tokens(ask("a", image, image), plain) == 600
    assert estimate_request(ask("a", image)) > estimate_request(ask("a"))


# Bills worked by hand from the services' list rates, compared with what a run would book, to the cent.

BILLS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("bills.json").read_text("utf-8"))
MOST = MostTokens(1_000_000, 1_000_000)
CENT = Decimal("0.01")


def cents(usd: Decimal) -> Decimal:
    return usd.quantize(CENT, ROUND_HALF_UP)


@pytest.mark.parametrize("bill", BILLS, ids=lambda bill: f"{bill['model']}: {bill['what']}")
def test_bill_when_worked_by_hand_is_what_a_run_books(bill: dict[str, Any]) -> None:
    spec = parse_spec(bill["model"])
    day = date.fromisoformat(bill["day"]) if "day" in bill else None
    price = (batch_price_of if bill.get("batch") else price_of)(spec, ModelOptions(), day)
    assert price is not None
    booked = book(price, Usage(**bill["usage"]), MOST)
    assert booked.is_read
    assert cents(bill["calls"] * Decimal(str(booked.cost))) == Decimal(bill["usd"])


def test_bills_when_counted_cover_what_is_priced_apart() -> None:
    assert len(BILLS) >= 30
    providers = {parse_spec(bill["model"]).provider for bill in BILLS}
    assert providers == {"openai", "google", "anthropic"}
    for provider in providers:
        mine = [bill for bill in BILLS if parse_spec(bill["model"]).provider == provider]
        assert any(bill["usage"].get("cached_tokens") for bill in mine)
        assert any(bill.get("batch") for bill in mine)
        assert any(bill["usage"]["input_tokens"] > 200_000 for bill in mine)
    for name in ("cache_write_tokens", "cache_write_1h_tokens", "image_input_tokens", "image_output_tokens"):
        assert any(bill["usage"].get(name) for bill in BILLS)
