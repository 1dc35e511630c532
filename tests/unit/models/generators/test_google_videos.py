"""A video is created once, whatever happens while it is waited for and fetched."""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fabula.models.chat import CallFault, ChatRequest, Image, Reply
from fabula.models.generators.google_videos import GoogleVideos
from fabula.models.generators.request import PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.spec import parse_spec
from fabula.testing.model_server import (
    Asked,
    Dropped,
    HtmlPage,
    ModelServer,
    NotJson,
    Picture,
    RateLimited,
    ServerError,
    TruncatedBody,
    Unauthorized,
)

KEY = "planted-key-0123456789abcdef0123456789"
MP4 = b"\0\0\0\x18ftypmp42" + bytes(range(256))
SPEC = parse_spec("video:google:gemini-omni")
REQUEST = PictureRequest(SPEC.text, "A fox runs", seconds=4.0)


class Clock:
    """Waiting takes no time, and is counted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Picture(MP4, "video/mp4")) as running:
        yield running


def steps(server: ModelServer) -> list[str]:
    return [exchange.asked.step for exchange in server.log]


def play(
    server: ModelServer,
    work: Callable[[GoogleVideos], Coroutine[Any, Any, Any]],
    clock: Clock,
    **options: Any,
) -> Any:
    async def run() -> Any:
        model = GoogleVideos(SPEC, ModelOptions(base_url=server.url, **options), Redactor(), clock)
        try:
            return await work(model)
        finally:
            await model.close()

    return asyncio.run(run())


def ask(
    server: ModelServer, clock: Clock | None = None, request: ChatRequest | None = None, **options: Any
) -> Reply:
    asked = request or REQUEST.chat()
    reply: Reply = play(server, lambda model: model.complete(asked), clock or Clock(), **options)
    return reply


def test_video_when_it_takes_its_time_is_looked_at_less_and_less_often(server: ModelServer) -> None:
    with ModelServer(lambda _: Picture(MP4, "video/mp4"), video_looks=6) as slow:
        clock = Clock()
        assert read_generated(ask(slow, clock).text).file.data == MP4
        assert steps(slow) == ["create", *["look"] * 7, "fetch"]
        assert clock.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 0.0]


@pytest.mark.parametrize(
    "fault",
    [
        ServerError(503),
        RateLimited(30.0),
        Dropped(),
        Dropped(40),
        TruncatedBody(),
        NotJson(b"{"),
        NotJson(b"[]"),
    ],
    ids=str,
)
def test_look_when_it_fails_is_repeated_and_nothing_is_created_again(server: ModelServer, fault: Any) -> None:
    server.faults = [None, fault, fault]
    clock = Clock()
    assert read_generated(ask(server, clock).text).file.data == MP4
    assert steps(server) == ["create", "look", "look", "look", "fetch"]
    if isinstance(fault, RateLimited):
        assert clock.waits[:3] == [0.5, 30.0, 30.0], "never earlier than the service asks for"


@pytest.mark.parametrize("fault", [ServerError(500), Dropped(200), TruncatedBody()], ids=str)
def test_file_when_it_comes_badly_is_fetched_again(server: ModelServer, fault: Any) -> None:
    server.faults = [None, None, fault]
    assert read_generated(ask(server).text).file.data == MP4
    assert steps(server) == ["create", "look", "fetch", "fetch"]


def test_call_when_its_time_is_over_may_have_been_paid_and_goes_on_with_the_same_video(server):
    server.faults = lambda asked: ServerError(503) if asked.step == "look" and asked.number < 12 else None

    async def twice(model: GoogleVideos) -> Reply:
        with pytest.raises(CallFault, match=r"no video within 60 s \(call_timeout\): server_error") as caught:
            await model.complete(REQUEST.chat())
        assert (caught.value.kind, caught.value.maybe_paid) == ("timeout", True)
        return await model.complete(REQUEST.chat())

    reply = play(server, twice, Clock(), call_timeout=60.0)
    assert read_generated(reply.text).file.data == MP4
    assert steps(server).count("create") == 1


def test_call_when_the_same_is_wanted_twice_at_once_creates_two(server: ModelServer) -> None:
    async def both(model: GoogleVideos) -> list[Reply]:
        return list(await asyncio.gather(*(model.complete(REQUEST.chat()) for _ in range(2))))

    assert len(play(server, both, Clock())) == 2
    assert steps(server).count("create") == 2


@pytest.mark.parametrize(
    ("fault", "kind"), [(Unauthorized(403), "key_refused"), (HtmlPage(404), "bad_request")], ids=str
)
def test_video_when_it_cannot_be_had_is_paid_and_not_asked_for_again(server, fault, kind):
    server.faults = [None, fault]
    with pytest.raises(CallFault, match="a video was created and cannot be had") as caught:
        ask(server)
    assert (caught.value.kind, caught.value.maybe_paid) == (kind, True)
    assert steps(server) == ["create", "look"]


def state(**members: Any) -> Callable[[Asked], Any]:
    """Return faults that put another state in place of the first look's."""
    import json

    body = json.dumps({"id": "x", "status": "completed", **members}).encode()
    return lambda asked: NotJson(body) if asked.step == "look" else None


def test_key_when_the_file_lies_elsewhere_is_not_sent_there(server: ModelServer) -> None:
    with ModelServer() as other:
        server.faults = state(output_video={"type": "video", "uri": f"{other.url}/v1beta/files/x:download"})
        with pytest.raises(CallFault, match="at an address that is not safe to fetch from"):
            ask(server)
        assert (other.count, other.rejected) == (0, ())


@pytest.mark.parametrize(
    ("members", "outcome", "detail"),
    [
        ({"status": "failed", "errors": [{"code": "SAFETY", "message": "not this"}]}, "blocked", "not this"),
        ({"status": "failed", "error": {"message": "no reason"}}, "empty", "no reason"),
        ({"status": "failed"}, "empty", "the service gave no video that can be read"),
        ({"status": "incomplete"}, "truncated", "the service gave no video that can be read"),
        ({"status": "cancelled", "output_video": {"data": "%%%"}}, "empty", "no video that can be read"),
        ({"status": "completed", "output_video": 7, "steps": [3, {"content": 4}]}, "empty", "no video"),
    ],
)
def test_state_when_it_has_no_video_says_what_became_of_it(server, members, outcome, detail):
    server.faults = state(**members)
    reply = ask(server)
    assert reply.outcome == outcome and detail in (reply.detail or "")


def test_first_frame_when_there_is_one_is_the_only_picture_and_references_are_recorded(server):
    first, reference = Image(b"first", "image/png"), Image(b"reference", "image/png")
    alone = read_generated(ask(server, request=replace(REQUEST, first_frame=first).chat()).text)
    both = replace(REQUEST, first_frame=first, references=(reference,))
    with_reference = read_generated(ask(server, request=both.chat()).text)
    for exchange in server.log:
        if exchange.asked.step == "create":
            assert exchange.asked.references == (first,)
            assert exchange.asked.body["generation_config"] == {"video_config": {"task": "image_to_video"}}
    assert (alone.unsupported, with_reference.unsupported) == ((), ("references",))


def test_creation_when_sent_is_what_the_sdk_sends_for_the_same(server: ModelServer) -> None:
    from google import genai
    from google.genai import types

    reference = Image(b"\x89PNG\r\n\x1a\n", "image/png")
    picture = replace(REQUEST, references=(reference,), seed=7, width=1280, height=720)
    ask(server, request=picture.chat())
    ours = server.log[0].asked
    client = genai.Client(
        api_key=KEY, http_options=types.HttpOptions(base_url=server.url, api_version="v1beta")
    )
    text: Any = {"type": "text", "text": "A fox runs"}
    image: Any = {
        "type": "image",
        "data": base64.b64encode(reference.data).decode(),
        "mime_type": "image/png",
    }
    form: Any = {
        "type": "video", "aspect_ratio": "16:9", "resolution": "720p", "duration": "4s", "delivery": "uri",
    }  # fmt: skip
    config: Any = {"seed": 7, "video_config": {"task": "reference_to_video"}}
    created = client.interactions.create(
        model="gemini-omni", input=[text, image], response_format=form,
        generation_config=config, background=True, store=True,
    )  # fmt: skip
    theirs = server.log[-1].asked
    assert (ours.path, ours.body) == (theirs.path, theirs.body)
    assert ours.headers["x-goog-api-key"] == theirs.headers["x-goog-api-key"] == KEY
    looked = client.interactions.get(id=created.id)
    client.close()
    assert looked.status == "completed" and looked.output_video.uri.endswith(":download?alt=media")
    assert server.log[-1].asked.path == f"/v1beta/interactions/{created.id}"
