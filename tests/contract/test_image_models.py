"""One suite over every service that makes pictures or videos: against the model server, every fault named."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.asker import Closed, Desk, Line
from fabula.engine.budget import Budget, known_price
from fabula.engine.calls import Calls, model_uses
from fabula.engine.journal import NAME as JOURNAL
from fabula.engine.journal import Journal
from fabula.errors import ConfigError
from fabula.models.chat import CallFault, ChatModel, ChatRequest, Image, Message, Reply, Usage
from fabula.models.client import ModelClient
from fabula.models.generators.google_videos import GoogleVideos
from fabula.models.generators.openai_images import _usage
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import MARK, Redactor
from fabula.models.options import ModelOptions
from fabula.models.prices import price_of
from fabula.models.registry import IMAGES, VIDEOS, open_model
from fabula.models.spec import LOCAL, parse_spec
from fabula.testing import model_server as service

from .services import FAULTS, KEY, ask, place

PNG, MP4 = service.plain_png(96, 64, "fox"), service.plain_video("fox")
REFERENCES = (
    Image(service.plain_png(8, 8, "\r\nfirst"), "image/png"),
    Image(b"\r\n--\xff second", "image/jpeg"),
)
BAD_GATEWAY = service.HtmlPage(502)
SERVICES = [
    (makes, provider)
    for makes, adapters in (("image", IMAGES), ("video", VIDEOS))
    for provider, _ in adapters
    if provider not in LOCAL
]


class Instant:
    """A clock on which waiting takes no time, and is counted."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Studio:
    """A model at the server, and what is needed to ask it."""

    def __init__(self, makes: str, provider: str, server: service.ModelServer, **options: Any) -> None:
        self.makes, self.provider, self.server = makes, provider, server
        self.spec, where = place(server, provider, f"{makes}:")
        self.options = ModelOptions(**{"api_key_env": "MY_KEY", **where, **options})

    @property
    def file(self) -> bytes:
        return PNG if self.makes == "image" else MP4

    @property
    def created(self) -> int:
        return sum(exchange.asked.step == "create" for exchange in self.server.log)

    def request(self, **changes: Any) -> PictureRequest:
        seconds = 4.0 if self.makes == "video" else None
        picture = PictureRequest(self.spec.text, "A fox — «狐»", seconds=seconds)
        return replace(picture, **changes)

    def model(self) -> ChatModel:
        if (self.makes, self.provider) == ("video", "google"):
            return GoogleVideos(self.spec, self.options, Redactor(), Instant())
        return open_model(self.spec, self.options, Redactor())

    def ask(self, **changes: Any) -> Reply:
        return self.send(self.options.apply(self.request(**changes).chat()))

    def send(self, request: ChatRequest) -> Reply:
        return ask(self.spec, self.options, request, self.model())

    def made(self, **changes: Any) -> Generated:
        reply = self.ask(**changes)
        assert reply.outcome == "ok", reply.detail
        return read_generated(reply.text)

    def fault(self, **changes: Any) -> CallFault:
        with pytest.raises(CallFault) as caught:
            self.ask(**changes)
        assert "planted" not in f"{caught.value} {caught.value.args} {caught.value.__context__!r}"
        assert len(caught.value.message) <= 600
        return caught.value


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)


@pytest.fixture
def server() -> Any:
    with service.ModelServer(
        lambda asked: service.Picture(MP4, "video/mp4") if asked.wants == "video" else service.Picture(PNG)
    ) as it:
        yield it


@pytest.fixture(params=SERVICES, ids=":".join)
def studio_with(request: pytest.FixtureRequest, server: service.ModelServer) -> Callable[..., Studio]:
    return lambda **options: Studio(*request.param, server, **options)


@pytest.fixture
def studio(studio_with: Callable[..., Studio]) -> Studio:
    return studio_with()


def test_reply_when_all_is_well_holds_the_file_as_it_was_made(studio: Studio) -> None:
    reply = studio.ask()
    made = read_generated(reply.text)
    assert made.file.data == studio.file
    assert made.file.media_type == ("video/mp4" if studio.makes == "video" else "image/png")
    assert (reply.outcome, reply.reported_model, made.unsupported) == ("ok", "stand-in", ())
    assert reply.usage is not None and reply.usage.output_tokens
    assert Reply.from_json(json.loads(json.dumps(reply.as_json()))) == reply
    assert studio.created == 1


def test_request_when_sent_says_all_that_the_service_takes(studio: Studio) -> None:
    made = studio.made(
        references=REFERENCES, seed=7, width=1536, height=864, steps=30, negative="cats", scene={"marks": []}
    )
    asked = next(exchange.asked for exchange in studio.server.log if exchange.asked.step == "create")
    assert (asked.model, asked.prompt, asked.references) == ("tiny", "A fox — «狐»", REFERENCES)
    assert KEY in asked.secrets
    sent = "\n".join(map(str, asked.body.values()))
    assert "cats" not in sent and "marks" not in sent and "30" not in sent
    if studio.provider == "google":
        shape = {"resolution": "720p", "seconds": 4.0} if studio.makes == "video" else {}
        assert asked.params == {"seed": 7, "aspect_ratio": "16:9", **shape}
        assert (made.seed, made.unsupported) == (7, ("steps", "negative", "scene"))
    else:
        assert asked.params == {"size": "1536x864"}
        assert (made.seed, made.unsupported) == (None, ("seed", "steps", "negative", "scene"))
        assert (made.width, made.height) == (1536, 864)
    assert made.steps is None


def test_request_when_nothing_is_chosen_sends_nothing_extra(studio: Studio) -> None:
    assert studio.made(seconds=None).unsupported == ()
    assert studio.server.log[0].asked.params == {}


def test_extras_when_set_are_sent_as_they_are(studio_with: Callable[..., Studio]) -> None:
    studio = studio_with(extra={"quality": "low", "labels": {"team": "stories"}})
    studio.ask(references=REFERENCES[:1])
    body = studio.server.log[0].asked.body
    assert body["quality"] == "low"
    labels = body["labels"]
    assert (json.loads(labels) if isinstance(labels, str) else labels) == {"team": "stories"}


def test_key_when_made_from_a_request_is_the_servers(studio: Studio) -> None:
    request = studio.request(references=REFERENCES, width=2048, height=1152)
    studio.send(request.chat())
    assert studio.server.log[0].asked.key == service.key_of(request.chat(), "tiny")


OUTCOMES: list[tuple[Any, str, str]] = [
    (service.EmptyChoices(), "empty", "empty"),
    (service.EmptyText(), "empty", "empty"),
    (service.ContentFilter(), "blocked", "blocked"),
    (service.SafetyBlock("prompt", "PROHIBITED_CONTENT"), "blocked", "blocked"),
    (service.SafetyBlock("reply", "IMAGE_SAFETY"), "blocked", "blocked"),
    (service.Refused(), "blocked", "refused"),
    (service.Prose(), "empty", "refused"),
    (service.TruncatedJson(), "empty", "truncated"),
]


@pytest.mark.parametrize(("fault", "openai", "google"), OUTCOMES, ids=lambda value: str(value)[:40])
def test_outcome_when_there_is_no_picture_is_named(fault, openai, google, studio):
    studio.server.faults = fault
    reply = studio.ask()
    assert reply.outcome == (google if studio.provider == "google" else openai)
    assert reply.detail or reply.text
    if reply.outcome == "refused":
        assert reply.text == fault.text
    assert studio.created == 1


@pytest.mark.parametrize("how", ["cut", "noise", "words"])
def test_file_when_corrupt_is_kept_as_it_came(how: Any, studio: Studio) -> None:
    studio.server.faults = service.CorruptPicture(how)
    made = studio.made()
    answered = studio.server.log[0].answer
    assert answered is not None and answered.picture is not None
    assert made.file.data == answered.picture.data != studio.file


@pytest.mark.parametrize(("fault", "kind"), FAULTS, ids=lambda value: str(value)[:40])
def test_fault_when_no_reply_arrives_is_named_and_nothing_is_asked_twice(fault, kind, studio):
    studio.server.faults = fault
    found = studio.fault()
    assert found.kind == kind, found
    assert studio.server.count == 1, "neither SDK nor adapter asks again"
    lost = isinstance(fault, service.Dropped | service.TruncatedBody) or "broken" in kind
    assert found.maybe_paid == (lost or fault in map(service.ServerError, (502, 504)) or fault == BAD_GATEWAY)


def test_fault_when_the_service_says_when_to_come_back_tells(studio: Studio) -> None:
    studio.server.faults = service.ServerError(503, retry_after=2.0)
    assert studio.fault().retry_after == pytest.approx(2.0)


def test_question_when_asked_of_a_generator_is_refused_before_sending(studio: Studio) -> None:
    with pytest.raises(CallFault, match="answers no questions") as caught:
        studio.send(ChatRequest(studio.spec.text, (Message("user", ("Who is it?",)),)))
    assert caught.value.kind == "unsupported"
    assert studio.server.count == 0


def test_connection_when_nobody_listens_is_unpaid(studio_with: Callable[..., Studio]) -> None:
    fault = studio_with(base_url="http://127.0.0.1:1/v1").fault()
    assert (fault.kind, fault.maybe_paid) == ("connection", False)


# -- secrets


def test_words_when_they_hold_the_key_lose_it(studio: Studio) -> None:
    studio.server.faults = service.EchoSecretsInReply()
    reply = studio.ask()
    assert reply.outcome == "ok"
    assert "planted" not in json.dumps(reply.as_json())
    assert reply.reported_model == MARK
    if studio.provider != "google":
        assert read_generated(reply.text).revised_prompt == MARK


def test_revised_prompt_when_the_service_gives_one_is_kept(studio: Studio) -> None:
    studio.server.handler = lambda _: service.Picture(studio.file, "image/png", "A red fox at dawn")
    revised = None if studio.provider == "google" else "A red fox at dawn"
    assert studio.made().revised_prompt == revised


@pytest.mark.parametrize(
    "echo",
    [
        KEY.encode(),
        b"key=" + KEY.encode() + b" is wrong",
        b'{"error": "' + "".join(f"\\u{ord(char):04x}" for char in KEY).encode() + b'"}',
        PNG[:-12] + b"tEXtprompt\0" + KEY.encode() + PNG[-12:],
    ],
    ids=["bare", "words", "escapes", "in a picture"],
)
def test_file_when_it_holds_the_key_loses_it(echo: bytes, studio: Studio) -> None:
    studio.server.handler = lambda _: service.Picture(echo, "image/png")
    data = studio.made().file.data
    assert MARK.encode() in data
    assert KEY.encode() not in data and b"\\u0070\\u006c" not in data


# -- size


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [10])
def test_file_when_large_comes_through(megabytes: int, studio: Studio) -> None:
    studio.server.faults = service.Huge(megabytes * 1_000_000)
    assert len(studio.made().file.data) == megabytes * 1_000_000


def test_file_when_larger_than_is_read_is_a_fault(studio_with, monkeypatch):
    from fabula.models.generators import google_videos, openai_images

    for module, name in (
        (openai_images, "LONGEST_PICTURE"), (google_videos, "LONGEST_PICTURE"),
        (google_videos, "LONGEST_VIDEO"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 100_000)
    studio = studio_with()
    studio.server.faults = service.Huge(200_000)
    fault = studio.fault()
    assert (fault.kind, fault.maybe_paid) == ("too_long", True)
    assert "more than 100,000 bytes" in fault.message


def test_address_when_given_in_place_of_a_picture_is_not_followed_and_may_have_been_paid(server):
    server.faults = service.NotJson(b'{"data": [{"url": "http://127.0.0.1:9/fox.png"}]}')
    fault = Studio("image", "openai", server).fault()
    assert (fault.kind, fault.maybe_paid) == ("unsupported", True)
    assert 'extra of [models."image:openai:tiny"]' in fault.message and server.count == 1


@pytest.mark.parametrize(
    ("told", "references", "images"),
    [
        ({"input_tokens_details": {"image_tokens": 646}}, (), 646),
        ({}, (), 0),  # none was sent, so that none was counted
        ({}, REFERENCES, None),  # how many is not known, and so not what they cost
    ],
)
def test_tokens_of_pictures_that_were_sent_when_not_told_are_none_only_where_none_were_sent(
    told, references, images
):
    request = PictureRequest("image:openai:m", "A fox", references=references)
    usage = _usage({"input_tokens": 700, "output_tokens": 4160, **told}, request)
    assert usage == Usage(700, 4160, image_input_tokens=images, image_output_tokens=None)
    assert _usage([700], request) is None


# -- the journal, and money


class Books:
    """A run's journal, and a desk before it."""

    def __init__(self, folder: Path, studio: Studio, limit: float | None = None) -> None:
        self.studio, self.journal = studio, Journal.open(folder)
        self.calls = Calls(self.journal)
        self.budget = Budget(limit, self.calls.spent())
        self.desk = Desk(self.calls, self.budget, {studio.spec.text: studio.options}, self._line)

    def _line(self, spec: str) -> Line:
        options = self.studio.options
        client = ModelClient(self.studio.model(), options, Instant())
        return Line(client, options, price_of(self.studio.spec, options))

    def ask(self, request: ChatRequest, *samples: int) -> list[Reply]:
        async def play() -> list[Reply]:
            asked = [self.desk.reply(request, sample, "pictures") for sample in samples]
            replies = [reply for _, reply in await asyncio.gather(*asked)]
            await self.desk.shut()
            return replies

        return asyncio.run(play())

    def close(self) -> None:
        self.journal.flush()
        self.calls.close()
        self.journal.close()


PRICED = {"prices": {"picture": 0.04, "second": 0.1}}


@pytest.mark.slow
def test_desk_when_a_picture_was_made_pays_once_and_gives_it_again_without_the_service(studio_with, tmp_path):
    studio = studio_with(**PRICED)
    studio.server.faults = [service.Huge(10_000_000), None, None]
    request = studio.options.apply(studio.request().chat())
    books = Books(tmp_path, studio, limit=5.0)
    first = books.ask(request, 0)
    assert books.ask(request, 0) == first
    books.close()
    again = Books(tmp_path, studio, limit=5.0)
    assert again.ask(request, 0) == first
    # 0.04 for the file, and 4 seconds at 0.1 where it is a video
    assert again.budget.spent == pytest.approx(0.44 if studio.makes == "video" else 0.04)
    again.close()
    assert studio.created == 1
    assert len(read_generated(first[0].text).file.data) == 10_000_000
    (use,) = model_uses(tmp_path / JOURNAL)
    assert (use.calls, use.attempts, use.unread, use.uncertain) == (1, 1, 0, 0)


def test_desk_when_two_samples_are_wanted_makes_two(studio_with, tmp_path):
    studio = studio_with(**PRICED)
    turn = iter(range(2))
    studio.server.handler = lambda asked: service.Picture(studio.file + bytes([next(turn)]))
    books = Books(tmp_path, studio)
    replies = books.ask(studio.options.apply(studio.request().chat()), 0, 1)
    books.close()
    assert len({reply.text for reply in replies}) == 2
    assert studio.created == 2


def test_desk_when_the_service_recovers_tries_again_and_books_one(studio_with, tmp_path):
    studio = studio_with(**PRICED)
    studio.server.faults = [service.RateLimited(), service.ServerError(503)]
    books = Books(tmp_path, studio, limit=5.0)
    assert books.ask(studio.options.apply(studio.request().chat()), 0)[0].outcome == "ok"
    assert books.budget.spent == pytest.approx(0.44 if studio.makes == "video" else 0.04)
    books.close()
    assert studio.created == 3


def test_desk_when_the_limit_is_below_one_picture_asks_nothing(studio_with, tmp_path):
    studio = studio_with(**PRICED)
    books = Books(tmp_path, studio, limit=0.03)
    with pytest.raises(Closed):
        books.ask(studio.options.apply(studio.request().chat()), 0)
    books.close()
    assert studio.server.count == 0


def test_price_when_unknown_and_the_cost_is_limited_says_how_it_is_given(studio: Studio) -> None:
    with pytest.raises(ConfigError) as caught:
        known_price(studio.spec.text, studio.options)
    what = "second" if studio.makes == "video" else "picture"
    unit = f"{what} = PRICE }}  # PRICE in USD per {what}"
    assert unit in str(caught.value)


def test_usage_when_not_told_is_booked_at_the_most_where_tokens_are_priced(studio_with, tmp_path):
    studio = studio_with(prices={"input": 10.0, "output": 20.0})
    studio.server.faults = service.OddUsage(missing=True)
    books = Books(tmp_path, studio, limit=50.0)
    request = studio.options.apply(studio.request().chat())
    reply = books.ask(request, 0)[0]
    assert reply.usage is None
    # 1,000 of the service's own, 32 of the message, the prompt's 15 bytes; all that is reserved for the reply
    given = 1000 + 32 + len("A fox — «狐»".encode())
    assert books.budget.spent == pytest.approx((given * 10 + request.max_tokens * 20) / 1e6)
    books.close()


def test_handler_when_asked_sees_prompt_seed_and_size(server: service.ModelServer) -> None:
    seen: list[service.Asked] = []

    def draw(asked: service.Asked) -> service.Picture:
        seen.append(asked)
        return service.Picture(PNG)

    server.handler = draw
    studio = Studio("image", "compatible", server, extra={"takes": {"seed": "seed"}})
    made = studio.made(seed=42, width=320, height=200)
    assert (seen[0].prompt, seen[0].seed, seen[0].size, seen[0].wants) == (
        "A fox — «狐»",
        42,
        (320, 200),
        "image",
    )
    assert (made.seed, made.unsupported) == (42, ())


# -- what runs on this machine

PAIRS = [
    (makes, provider)
    for makes, adapters in (("image", IMAGES), ("video", VIDEOS))
    for provider, _ in adapters
]
REGISTERED = [
    pytest.param(pair, marks=[pytest.mark.slow] if pair[1] == "diffusers" else [])  # needs an extra
    for pair in PAIRS
]
LOCALS = [pair for pair in PAIRS if pair[1] in LOCAL and pair[1] != "diffusers"]
"""Without the one that needs weights; it is asked in test_diffusers_images.py."""


def local(makes: str, provider: str, folder: Path) -> tuple[str, ModelOptions]:
    """Return spec and settings of a generator that runs here; the program copies a file."""
    if provider != "command":
        return f"{makes}:{provider}:storyboard", ModelOptions()
    file = folder / "made"
    file.write_bytes(PNG if makes == "image" else MP4)
    command = ["sh", "-c", f"cp {file} $1; test -s $0", "{prompt_file}", "{out}"]
    return f"{makes}:{provider}:mine", ModelOptions(extra={"command": command})


@pytest.mark.parametrize("pair", REGISTERED, ids=":".join)
def test_generator_when_asked_a_question_says_that_it_answers_none(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    makes, provider = pair
    text, options = (
        local(makes, provider, tmp_path) if provider in LOCAL else (f"{makes}:{provider}:x", ModelOptions())
    )
    spec = parse_spec(f"{makes}:http://127.0.0.1:1/v1#x" if provider == "compatible" else text)
    request = ChatRequest(spec.text, (Message("user", ("Who is it?",)),))
    with pytest.raises(CallFault, match="answers no questions") as caught:
        ask(spec, options, request)
    assert caught.value.kind == "unsupported"


@pytest.mark.parametrize("pair", LOCALS, ids=":".join)
def test_local_generator_when_asked_through_a_desk_makes_one_file_for_nothing(pair, tmp_path):
    text, options = local(*pair, tmp_path)
    spec = parse_spec(text)
    seconds = 1.0 if pair[0] == "video" else None
    picture = PictureRequest(text, "A fox sits under a tree.", seed=7, steps=30, seconds=seconds)
    request = options.apply(picture.chat())

    def opened(_: str) -> Line:
        return Line(
            ModelClient(open_model(spec, options, Redactor()), options), options, price_of(spec, options)
        )

    async def play(desk: Desk) -> Reply:
        _, reply = await desk.reply(request, 0, "pictures")
        await desk.shut()
        return reply

    with Journal.open(tmp_path) as journal:
        calls = Calls(journal)
        first = asyncio.run(play(Desk(calls, Budget(0.0, 0.0), {text: options}, opened)))
        journal.flush()
        again = asyncio.run(
            play(Desk(calls, Budget(0.0, 0.0), {text: options}, lambda _: pytest.fail("asked")))
        )
        calls.close()
    assert again == first
    made = read_generated(first.text)
    assert made.file.media_type == ("video/mp4" if pair[0] == "video" else "image/png")
    assert "steps" in made.unsupported
    assert first.usage is not None and first.usage.output_tokens == 0
    (use,) = model_uses(tmp_path / JOURNAL)
    assert (use.calls, use.cost, use.unread, use.unpriced) == (1, 0.0, 0, 0)
