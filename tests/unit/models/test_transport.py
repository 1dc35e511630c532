"""Responses that no scripted model would give: compressed, endless, redirected, cut inside the head."""

import asyncio
import gzip
import json
from typing import Any

import pytest

from fabula.models.chat import CallFault, ChatRequest, Message, Reply
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.models.transport import LONGEST_BODY, LONGEST_PACKED_BODY

REPLY = json.dumps({"choices": [{"message": {"content": "fox"}, "finish_reason": "stop"}]}).encode()


def response(body: bytes, *headers: str, status: str = "200 OK", announce: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    if announce:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ask(answer: bytes, *, endless: bytes = b"") -> tuple[Reply | CallFault, int]:
    """Ask a server that sends these bytes, whatever it is asked; also return how often it was asked."""
    return asyncio.run(_ask(answer, endless))


async def _ask(answer: bytes, endless: bytes) -> tuple[Reply | CallFault, int]:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        await reader.readexactly(length)
        asked += 1
        writer.write(answer)
        try:
            while endless:
                writer.write(endless)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spec = parse_spec(f"http://127.0.0.1:{port}/v1#tiny")
    model = open_model(spec, ModelOptions(), Redactor())
    found: Any
    try:
        found = await model.complete(ChatRequest(spec.text, (Message("user", ("hi",)),)))
    except CallFault as fault:
        found = fault
    await model.close()
    server.close()
    await server.wait_closed()
    return found, asked


def kind(answer: bytes, **more: bytes) -> str:
    found, asked = ask(answer, **more)
    assert isinstance(found, CallFault)
    assert asked == 1
    return found.kind


def test_response_when_compressed_unasked_but_small_is_read() -> None:
    found, _ = ask(response(gzip.compress(REPLY), "Content-Encoding: gzip"))
    assert isinstance(found, Reply)
    assert found.text == "fox"


def test_response_when_compressed_and_large_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(LONGEST_PACKED_BODY * 2000))
    assert len(bomb) > LONGEST_PACKED_BODY
    assert kind(response(bomb, "Content-Encoding: gzip")) == "too_long"


def test_response_when_badly_compressed_is_broken() -> None:
    assert kind(response(b"no gzip at all", "Content-Encoding: gzip")) == "broken_reply"


def test_response_when_it_never_ends_is_left_at_the_limit() -> None:
    head = response(b"", "Transfer-Encoding: chunked", announce=False)
    assert kind(head, endless=b"10000\r\n" + b" " * 65536 + b"\r\n") == "too_long"
    assert LONGEST_BODY == 4 * 1024 * 1024


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent"])
def test_response_when_it_leads_elsewhere_is_not_followed(status: str) -> None:
    assert kind(response(b"", "Location: http://127.0.0.1:1/v1", status=status)) == "not_an_api"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "connection"),
        (b"HTTP/1.1 200 OK\r\nContent-", "connection"),
        (response(b"", status="204 No Content"), "broken_reply"),
        (response(REPLY[:-1]), "broken_reply"),
        (response(b"\xff\xfe{}"), "not_an_api"),
        (response(b"[" * 100_000), "broken_reply"),
        (response(b'{"choices": "many"}'), "not_an_api"),
    ],
)
def test_response_when_it_is_something_else_is_a_named_fault(answer: bytes, expected: str) -> None:
    assert kind(answer) == expected


@pytest.mark.parametrize("user", ["token-in-a-proxy", "user:token-in-a-proxy"])
def test_proxy_when_its_address_holds_a_secret_makes_it_known(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{user}@127.0.0.1:1")
    redactor = Redactor()
    spec = parse_spec("http://127.0.0.1:2/v1#toy")
    model = open_model(spec, ModelOptions(), redactor)
    asyncio.run(model.close())
    assert redactor.redact("said token-in-a-proxy") == "said [secret removed]"
