"""Clients that keep a server waiting: they are let go, and everybody else is served."""

import asyncio
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from fabula.pages import serving
from fabula.pages.serving import FewLines, most_connections
from fabula.people.review.serve import routes, running
from fabula.people.review.serve.running import Bounded, House
from fabula.people.review.serve.server import Refused
from fabula.testing.review_server import StudyServer
from fabula.testing.review_studies import toy_study

WAIT = 0.3


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[], StudyServer]]:
    started = []

    def serve() -> StudyServer:
        started.append(StudyServer(toy_study(tmp_path / "study"), wait=WAIT))
        return started[-1]

    yield serve
    for server in started:
        server.kill()


def connection(server: StudyServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def seconds_open(client: socket.socket, drip: bytes) -> float:
    """Return after how many seconds a server closes a connection that sends a little again and again."""
    begun = time.monotonic()
    client.settimeout(0.05)
    while time.monotonic() - begun < 5:
        try:
            client.sendall(drip)
            if client.recv(4096) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - begun


HEAD = b"GET /static/review.css HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("first", "drip"),
    [(b"", b""), (HEAD, b"X-A: b\r\n"), (HEAD + b"Content-Length: 100000\r\n\r\n", b"a"), (b"GET ", b"")],
)
def test_connection_when_its_request_does_not_come_is_closed(
    served: Callable[[], StudyServer], first: bytes, drip: bytes
) -> None:
    with connection(served()) as client:
        client.sendall(first)
        assert WAIT / 2 < seconds_open(client, drip) < 4 * WAIT


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 100_000, b"X: 1\r\n" * 20_000])
def test_request_when_its_head_is_too_large_is_refused(
    served: Callable[[], StudyServer], head: bytes
) -> None:
    with connection(served()) as client:
        client.sendall(HEAD + head)
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_page_when_there_is_no_room_takes_the_place_of_an_idle_connection(
    served: Callable[[], StudyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST", 5)
    server = served()
    idle = [connection(server) for _ in range(30)]
    with urllib.request.urlopen(f"{server.url}/static/review.css", timeout=5) as answer:
        assert answer.status == 200
    assert len(server._running.server_state.connections) <= 5
    for client in idle:
        client.close()


def fake(house: House, *, complete: bool, unsent: int) -> Any:
    made = SimpleNamespace(
        cycle=SimpleNamespace(response_complete=complete),
        transport=SimpleNamespace(get_write_buffer_size=lambda: made.unsent),
        unsent=unsent, house=house, is_busy=not complete, _state=None, _since=0.0,
    )  # fmt: skip
    return made


def test_connection_when_answered_counts_only_while_nothing_is_taken() -> None:
    client = fake(House(5), complete=False, unsent=1000)
    assert [Bounded.waited(client, now) for now in (10, 15, 20)] == [0, 5, 10]
    client.unsent = 900
    assert [Bounded.waited(client, now) for now in (25, 30)] == [0, 5]
    client.unsent = 0  # the server is at work
    assert [Bounded.waited(client, now) for now in (40, 90)] == [0, 0]


def test_body_when_it_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LONGEST_BODY", 0.05)

    async def never() -> Any:
        await asyncio.sleep(5)

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    for receive in (never, gone):
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        with pytest.raises(Refused) as caught:
            asyncio.run(routes._body(request))
        assert caught.value.status == 408


@pytest.mark.parametrize(
    ("soft", "hard", "most"),
    [(1024, 1024, 480), (256, 10_000, 2000), (256, 300, 118), (64, 64, 1), (100_000, 100_000, 2000)],
)
def test_connections_when_descriptors_are_few_are_fewer(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert most_connections(2000) == most  # (1024 - 64) / 2 = 480: a socket and a file each


def test_log_when_flooded_has_a_few_lines_a_minute_and_says_how_many_were_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    logger = logging.getLogger("fabula.flooded")
    few = FewLines(lambda: now[0])
    logger.addFilter(few)
    for _ in range(1000):
        logger.warning("Invalid %s", "request")
    now[0] = serving.MINUTE + 1
    logger.warning("Invalid %s", "request")
    logger.removeFilter(few)
    assert len(caplog.records) == serving.LINES + 1
    assert caplog.records[-1].getMessage() == "Invalid request (980 more lines before were left out)"
