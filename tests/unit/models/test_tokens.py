"""Estimates and bounds of token counts."""

import json
import os
import sys
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.models import programs
from fabula.models.chat import (
    ChatRequest,
    Image,
    Message,
    ReplySchema,
    Usage,
    cosine,
    packed,
    read_vector,
    unpacked,
)
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
from fabula.models.programs import ProgramStopped, allowed_environment, run_program
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


# Vectors of texts: exact as stored, cosine as defined, prices of what goes in alone.


def test_vector_when_packed_comes_back_bit_by_bit() -> None:
    vector = np.random.default_rng(42).normal(size=1536).astype("<f4")
    text = packed(vector.tolist())
    assert len(text) == 8192
    assert unpacked(text).astype("<f4").tobytes() == vector.tobytes()
    assert packed(unpacked(text).tolist()) == text == read_vector(vector.tolist()) == read_vector(text)


def test_cosine_when_computed_goes_by_the_angle_alone() -> None:
    # (3, 4) and (4, 3): 24 / (5 * 5)
    assert cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(0.96)
    one = np.array([0.1, 0.2, 0.3])
    assert cosine(one, 7 * one) == 1.0
    assert cosine(one, -one) == -1.0
    with pytest.raises(ValueError, match="vectors of 3 and of 2 numbers"):
        cosine(one, np.array([1.0, 0.0]))


def test_price_when_an_encoder_is_listed_counts_what_goes_in() -> None:
    price = price_of(parse_spec("embedding:openai:text-embedding-3-small"), ModelOptions())
    assert price is not None and not any(price.rates("output_tokens"))
    assert float(price.cost(Usage(1_000_000, 0))) == pytest.approx(0.02)
    assert price_of(parse_spec("openai:text-embedding-3-small"), ModelOptions()) is None
    assert price_of(parse_spec("embedding:http://localhost:1/v1#x"), ModelOptions()) is None


# Running programs of others: what they read and write, and where that is bounded.


def run(code: str, **options: object) -> programs.Ended:
    words = [sys.executable, "-S", "-c", f"import os, sys\n{code}"]
    return run_program(words, allowed_environment(), **options)  # type: ignore[arg-type]


def test_program_when_it_is_given_something_reads_it_and_its_output_is_kept() -> None:
    ended = run("sys.stdout.write(sys.stdin.read().upper())", given=b"fox" * 50_000, output="kept")
    assert (ended.status, ended.output, ended.complaint) == (0, b"FOX" * 50_000, b"")


def test_program_when_it_writes_more_than_is_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST_OUTPUT", 1000)
    with pytest.raises(ProgramStopped, match="wrote more than 1,000 bytes"):
        run("while True: sys.stdout.write('x' * 100_000)", output="kept")


def test_variables_when_named_or_set_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "LC_ALL": "C", "MY_KEY": "k", "OTHER": "o", "Path": "p"}
    )
    assert allowed_environment(("MY_KEY",), {"NEW": "n"}) == {
        "PATH": "/bin", "Path": "p", "LC_ALL": "C", "MY_KEY": "k", "NEW": "n",
    }  # fmt: skip
