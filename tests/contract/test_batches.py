"""Batches of every service: what stands in them is what single calls send; prices are the library's."""

import asyncio
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot

from fabula.models.batches.service import BatchService, Order, is_refused, json_lines_of
from fabula.models.chat import CallFault, ChatRequest, Image, Message, Reply, ReplySchema, Usage
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions, options_for
from fabula.models.prices import batch_price_of, price_of
from fabula.models.registry import BATCHES, has_batches, open_batches, open_model
from fabula.models.spec import parse_spec
from fabula.testing.model_server import Fate, ModelServer

from .services import KEY

SCHEMA = ReplySchema(
    "moral_of",
    {
        "type": "object",
        "properties": {"moral": {"type": "string"}},
        "required": ["moral"],
        "additionalProperties": False,
    },
)
PICTURE = Image(b"\x89PNG\r\n\x1a\n\xfb\xff picture", "image/png")
ASKED = {
    "plain": ChatRequest("", (Message("user", ("Who is it?",)),)),
    "whole": ChatRequest(
        "",
        (
            Message("system", ("Be brief.",)),
            Message("user", ("Look: «狐»", PICTURE)),
            Message("assistant", ("{}",)),
            Message("user", ("Again.",)),
        ),
        SCHEMA, 0.5, 42, 321,
    ),
    "json": ChatRequest("", (Message("user", ("Who?",)),), SCHEMA, structured="json"),
    "prompt": ChatRequest("", (Message("user", ("Who?",)),), SCHEMA, structured="prompt"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


def settings(provider: str, server: ModelServer, **more: Any) -> tuple[Any, Any]:
    spec = parse_spec(f"{provider}:tiny")
    address = server.openai_url if provider == "openai" else server.url
    return spec, options_for(spec, {spec.text: {"base_url": address, **more}})


def body_in(line: dict[str, Any]) -> Any:
    return line.get("body") or line.get("params") or line.get("request")


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("provider", BATCHES)
def test_line_when_compared_is_what_a_single_call_sends(provider: str, asked: ChatRequest) -> None:
    async def both() -> tuple[Any, Any]:
        extra = {"generationConfig": {"topK": 3}} if provider == "google" else {"top_p": 0.5}
        spec, options = settings(provider, server, extra=extra)
        request = options.apply(asked)
        request = ChatRequest(
            spec.text, request.messages, request.schema, request.temperature, request.seed,
            request.max_tokens, asked.structured, request.extra,
        )  # fmt: skip
        model, service = open_model(spec, options, Redactor()), open_batches(spec, options, Redactor())
        await model.complete(request)
        line = json.loads(service.encode("fabula-0-0", request))
        await model.close()
        await service.close()
        return server.log[0].asked.body, body_in(line)

    with ModelServer() as server:
        sent, batched = asyncio.run(both())
    assert plainly(without_model(batched)) == plainly(without_model(sent))


def plainly(value: Any) -> Any:
    """Return a body with pictures in one spelling: services take both, and both alphabets of base64."""
    if isinstance(value, list):
        return [plainly(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "inlineData" in value:
        data = value["inlineData"]
        raw = data["data"].replace("-", "+").replace("_", "/")
        return {"inlineData": [data.get("mimeType") or data.get("mime_type"), raw]}
    return {name: plainly(entry) for name, entry in value.items()}


def without_model(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "model"}


def test_making_when_compared_with_the_sdk_of_google_sends_the_same() -> None:
    from google import genai
    from google.genai import types

    async def both() -> None:
        spec, options = settings("google", server)
        service = open_batches(spec, options, Redactor())
        order = Order(
            "fabula-1", {"fabula-1-0": ASKED["plain"]}, (service.encode("fabula-1-0", ASKED["plain"]),)
        )
        file = await service.upload(order)
        await service.create(order, file)
        await service.close()
        http = types.HttpOptions(base_url=server.google_url, api_version="v1beta")
        client = genai.Client(api_key=KEY, http_options=http)
        await client.aio.batches.create(model="tiny", src=file, config={"display_name": "fabula-1"})
        await client.aio.aclose()
        client.close()

    bodies: list[Any] = []
    from fabula.testing.model_server import serving

    plain = serving.Service._take_batch

    def noted(self: Any, form: Any, step: Any, request: Any, connection: Any) -> None:
        if step == "make":
            bodies.append((request.path, json.loads(request.body)))
        plain(self, form, step, request, connection)

    with pytest.MonkeyPatch.context() as patch, ModelServer(fates=Fate()) as server:
        patch.setattr(serving.Service, "_take_batch", noted)
        asyncio.run(both())
    assert len(bodies) == 2 and bodies[0] == bodies[1]


def test_models_when_asked_whether_they_take_batches_say_so() -> None:
    takers = ["openai:x", "google:x", "anthropic:x"]
    others = ["http://localhost:8000/v1#x", "embedding:openai:x", "image:openai:x", "video:google:x"]
    assert [spec for spec in takers + others if has_batches(parse_spec(spec))] == takers


def test_limits_when_set_are_never_above_those_of_the_service() -> None:
    spec = parse_spec("openai:x")
    given = {"openai:x": {"batch_requests": 10_000_000, "batch_megabytes": 5000}}
    service: BatchService = open_batches(spec, options_for(spec, given), Redactor())
    assert service.limits() == (20_000, 90_000_000)


@pytest.mark.parametrize(
    ("fault", "refused"),
    [
        (CallFault("connection", "cannot connect"), True),
        (CallFault("connection", "lost", maybe_paid=True), False),
        (CallFault("bad_request", "no", status=400), True),
        (CallFault("rate_limited", "many", status=429), True),
        (CallFault("timeout", "late", status=408), False),
        (CallFault("server_error", "409", status=409), False),
        (CallFault("server_error", "500", status=500), False),
        (CallFault("broken_reply", "half", status=200), False),
        (CallFault("not_an_api", "a page", status=200), False),
    ],
)
def test_fault_when_a_batch_may_have_been_made_is_no_refusal(fault: CallFault, refused: bool) -> None:
    assert is_refused(fault) is refused


def test_lines_when_one_is_torn_are_read_without_it() -> None:
    assert json_lines_of(b'{"a": 1}\n\n{"b": 2}\n{"c": ') == ([{"a": 1}, {"b": 2}], True)
    assert json_lines_of(b'[1]\n{"b": 2}') == ([{"b": 2}], True)
    assert json_lines_of(b"") == ([], False)


# -- prices

PRICED = [
    ("openai", "gpt-4.1-mini"), ("openai", "gpt-5"), ("google", "gemini-2.5-flash"),
    ("google", "gemini-2.5-pro"),
    ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-4-5"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "name"), PRICED)
def test_price_when_the_library_has_one_for_batches_is_the_librarys(provider: str, name: str) -> None:
    from genai_prices import Usage as Counts

    spec = parse_spec(f"{provider}:{name}")
    day = datetime(2026, 11, 1, tzinfo=UTC)
    _, model = get_snapshot().find_provider_model(name, None, provider, None)
    for given, answered in ((1000, 200), (250_000, 3000), (300_000, 10)):
        price = batch_price_of(spec, options_for(spec, {}), day.date())
        assert price is not None and "genai-prices" in price.source
        counts = Counts(input_tokens=given, output_tokens=answered)
        theirs = model.get_prices(day, {"processing": "batch"}).calc_price(counts)["total_price"]
        assert price.cost(Usage(given, answered)) == theirs
        whole = price_of(spec, options_for(spec, {}), day.date())
        assert whole is not None and theirs * 2 == whole.cost(Usage(given, answered)), (
            "half, whatever the size"
        )


def test_price_when_a_run_is_older_than_the_librarys_batches_is_that_of_batches() -> None:
    spec = parse_spec("openai:gpt-4.1-mini")
    old, new = (batch_price_of(spec, options_for(spec, {}), day) for day in (date(2026, 1, 1), None))
    assert old == new


def test_price_when_the_library_has_none_for_batches_is_half_and_says_so() -> None:
    spec = parse_spec("google:gemini-2.0-flash")
    price, whole = (known(spec, options_for(spec, {})) for known in (batch_price_of, price_of))
    assert price is not None and whole is not None and price.source.startswith("0.5 of genai-prices")
    assert price.cost(Usage(1000, 100)) * 2 == whole.cost(Usage(1000, 100))
    assert price.rates("cached_tokens") == whole.rates("cached_tokens"), (
        "what is cached is not taken for half"
    )


def test_price_when_in_the_settings_counts_at_its_share() -> None:
    spec = parse_spec("anthropic:x")
    prices = {"input": 2.0, "output": 10.0, "cached_input": 0.2}
    for share in (0.5, 0.25, 1.0):
        options = options_for(spec, {spec.text: {"prices": {**prices, "batch": share}}})
        price = batch_price_of(spec, options)
        assert price is not None
        assert price.rates("input_tokens") == (Decimal("2.0") * Decimal(str(share)),)
        assert price.rates("output_tokens") == (Decimal("10.0") * Decimal(str(share)),)
        assert price.rates("cached_tokens") == (Decimal("0.2"),)


def test_price_when_nobody_knows_it_is_none() -> None:
    spec = parse_spec("openai:no-such-model-at-all")
    assert batch_price_of(spec, options_for(spec, {})) is None


BROKE_OFF = {"choices": [{"message": {"content": "A fo"}, "finish_reason": "error", "error": {"code": 502}}]}


@pytest.mark.parametrize(
    ("provider", "line", "kind"),
    [
        ("openai", {"response": {"status_code": 200, "body": BROKE_OFF}}, "server_error"),
        ("openai", {"response": {"status_code": 413, "body": "<html>413</html>"}}, "too_long"),
        ("openai", {"response": None, "error": {"code": "content_filter", "message": "stopped"}}, "blocked"),
        ("openai", {"response": None, "error": None}, "server_error"),
        ("google", {"response": {"error": {"code": 503, "message": "overloaded"}}}, "server_error"),
        ("google", {"error": {"code": 7, "message": "Content violates usage guidelines."}}, "blocked"),
        ("anthropic", {"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, "server_error"),
        ("anthropic", {"type": "errored", "error": {"error": {"type": "request_too_large"}}}, "too_long"),
        ("anthropic", {"type": "errored", "error": None}, "server_error"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_result_when_it_is_an_error_or_broke_off_is_what_the_same_answer_to_one_call_is(provider, line, kind):
    service = open_batches(parse_spec(f"{provider}:tiny"), ModelOptions(), Redactor())
    request = ChatRequest(f"{provider}:tiny", (Message("user", ("A fox?",)),))
    outcome = service._outcome(request, line)  # type: ignore[attr-defined]
    asyncio.run(service.close())
    assert (outcome.outcome if isinstance(outcome, Reply) else outcome.kind) == kind, outcome
