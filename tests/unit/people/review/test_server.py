"""What requests change: once, by whom it concerns, in order, and nothing that was closed."""

import asyncio
import json
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.requests import Request
from starlette.testclient import TestClient

from fabula.pages import page
from fabula.pages.page import FewLines, most_connections
from fabula.people.review.design import Plan
from fabula.people.review.flow import human_rows
from fabula.people.review.folder import Invited, Study, drop, invite, revoke
from fabula.people.review.items import Marked
from fabula.people.review.serve import routes, running
from fabula.people.review.serve.access import page_token, session_cookie, session_of
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.running import Bounded, House
from fabula.people.review.serve.server import Refused, Server
from fabula.people.review.standing import VoteJournal, read_events
from fabula.testing.drawn_videos import Encoder, write_frames
from fabula.testing.review_server import StudyServer
from fabula.testing.review_studies import toy_answers, toy_items, toy_study


class Clock:
    """A time that tests set: hours since the first of January."""

    def __init__(self) -> None:
        self.hours = 0.0

    def __call__(self) -> str:
        minutes = round(self.hours * 60)
        return f"2026-01-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:00Z"


class Person:
    """A reviewer's browser, without the browser."""

    def __init__(self, app: Any, study: Study, invited: Invited) -> None:
        self.id, self.study = invited.reviewer, study
        self.client = TestClient(app, base_url="http://testserver")
        path = invited.link.removeprefix("http://127.0.0.1:8765")
        assert self.client.get(path, follow_redirects=False).status_code == 303
        session = session_of(study.secret, self.client.cookies.get("fabula_review"), 12)
        assert session is not None
        self.token = page_token(study.secret, session)
        self.sent = 0

    def post(self, name: str, body: dict[str, Any], **headers: str) -> Any:
        own = {"x-review-token": self.token, "content-type": "application/json", **headers}
        return self.client.post(f"/api/{name}", content=json.dumps(body), headers=own)

    def vote(self, key: str, answers: dict[str, Any] | None = None, **more: Any) -> Any:
        self.sent += 1
        answers = toy_answers(self.study, key.partition("#")[0]) if answers is None else answers
        body = {"id": f"vote-{self.sent:08d}", "place": key, "answers": answers, "loaded": True}
        return self.post("vote", {**body, "timeline": [], **more})

    def close(self, block: str) -> Any:
        self.sent += 1
        return self.post("close", {"id": f"close-{self.sent:08d}", "block": block})


class Scene:
    """A study that is served, and the people in it."""

    def __init__(self, study: Study, journal: VoteJournal) -> None:
        self.study, self.journal, self.clock = study, journal, Clock()
        self.server = Server(study, journal, self.clock)
        self.app = application(self.server)

    def people(self, count: int, *, agreed: bool = True, **about: Any) -> list[Person]:
        invited = invite(self.study, self.journal, self.clock(), count, **about)
        people = [Person(self.app, self.study, each) for each in invited]
        for person in people if agreed else ():
            assert person.post("agree", {"publish": True}).status_code == 200
        return people

    def keys(self, person: Person) -> list[str]:
        seat = self.server.standing.reviewers[person.id].seat
        assert seat is not None
        return [f"{place.item}#{place.repeat}" if place.repeat else place.item
                for place in self.study.seats[seat].places]  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    journals = []

    def make(**about: Any) -> Scene:
        study = toy_study(tmp_path / "study", **about)
        journals.append(VoteJournal(study.folder))
        return Scene(study, journals[-1])

    yield make
    for journal in journals:
        journal.close()


def test_item_when_its_turn_has_not_come_is_not_taken(scene: Callable[..., Scene]) -> None:
    here = scene()
    (person,) = here.people(1)
    keys = here.keys(person)
    assert person.vote(keys[1]).status_code == 409
    media = here.study.items[keys[1]].media[0].name
    assert person.client.get(f"/media/{media}").status_code == 404
    own = here.study.items[keys[0]].media[0].name
    answer = person.client.get(f"/media/{own}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.headers["cache-control"] == "no-store"


def test_first_page_when_a_stand_in_wrote_what_is_reviewed_says_so(scene: Callable[..., Scene]) -> None:
    here = scene()
    (person,) = here.people(1, agreed=False)
    assert "(local:stand-in)" not in person.client.get("/").text
    here.study.protocol.source["stand_ins"] = ["local:stand-in"]  # type: ignore[index]
    assert "A stand-in for a model (local:stand-in) wrote what you will read." in person.client.get("/").text


def test_picture_when_somebody_else_asks_is_not_given(scene: Callable[..., Scene]) -> None:
    here = scene(plan=Plan(raters=1, per_seat=2, block=2))
    first, second = here.people(2)
    name = here.study.items[here.keys(first)[0]].media[0].name
    assert first.client.get(f"/media/{name}").status_code == 200
    assert second.client.get(f"/media/{name}").status_code == 404
    assert TestClient(here.app).get(f"/media/{name}").status_code == 404


def test_picture_when_it_stands_under_several_names_has_bytes_of_its_own_under_each(scene, tmp_path):
    drawn = toy_items(tmp_path / "drawn")
    same = (drawn[0].sides[0], drawn[0].sides[0])
    here = scene(items=tuple(replace(item, sides=same) for item in drawn))
    (person,) = here.people(1)
    sent: dict[str, bytes] = {}
    for key in here.keys(person)[:2]:
        for medium in here.study.items[key].media:
            known = {"if-none-match": "*", "if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"}
            answer = person.client.get(f"/media/{medium.name}", headers=known)
            assert answer.status_code == 200
            told = set(answer.headers) & {"etag", "last-modified", "date", "content-disposition", "server"}
            assert told == set() and answer.headers["cache-control"] == "no-store"
            sent[medium.name] = answer.content
        assert person.vote(key).status_code == 200
    kept = {name for key in here.keys(person)[:2] for name in here.study.stands[key].files.values()}
    assert (len(sent), len(kept)) == (4, 1)
    assert len(set(sent.values())) == 4
    assert len({len(content) for content in sent.values()}) > 1
    shown = [Image.open(BytesIO(content)) for content in sent.values()]
    assert {picture.tobytes() for picture in shown} == {Image.open(drawn[0].sides[0][0]).tobytes()}
    assert all(picture.info == {} for picture in shown)
    name, content = sent.popitem()
    assert person.client.get(f"/media/{name}").content == content  # the same name, the same bytes


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-", (0, None)), ("bytes=0-99", (0, 100)), ("bytes=30-40", (30, 41)),
        ("bytes=60-70", (60, 71)), ("bytes=-7", (-7, None)), ("bytes=100-1000000000", (100, None)),
        ("bytes=0-1,4-5", None), ("bytes=-", None), ("pixels=1", None), ("bytes=1" + "0" * 400, None),
    ],
)  # fmt: skip
def test_picture_when_a_part_is_asked_for_is_that_part(scene, asked, part):
    here = scene()
    (person,) = here.people(1)
    path = f"/media/{here.study.items[here.keys(person)[0]].media[0].name}"
    whole = person.client.get(path).content
    answer = person.client.get(path, headers={"range": asked})
    assert answer.content == (whole if part is None else whole[part[0] : part[1]])
    is_part = answer.content != whole
    assert answer.status_code == (206 if is_part else 200)
    assert answer.headers["content-length"] == str(len(answer.content))
    assert person.client.get(path, headers={"range": "bytes=999999999-"}).status_code == 416
    assert person.client.get(path, headers={"range": "bytes=9-3"}).status_code == 416


@pytest.mark.parametrize(("ending", "codec"), [("mp4", "mpeg4"), ("webm", "libvpx")])
def test_video_when_marked_shows_the_same_frames(tmp_path: Path, ending: str, codec: str) -> None:
    av = pytest.importorskip("av")
    greys = [np.full((48, 64, 3), 50 * number, np.uint8) for number in range(5)]
    path = write_frames(tmp_path / f"video.{ending}", greys, Encoder(codec))

    def frames(content: bytes) -> list[bytes]:
        with av.open(BytesIO(content)) as opened:
            return [frame.to_image().tobytes() for frame in opened.decode(video=0)]

    sent = [Marked.of(path, name, b"secret").content() for name in ("m1", "m2")]
    assert sent[0] != sent[1]
    assert frames(sent[0]) == frames(sent[1]) == frames(path.read_bytes())
    assert len(frames(sent[0])) == 5


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"loaded": False}, 422), ({"answers": None}, 422), ({"answers": {"quality": 9}}, 422),
        ({"id": "x"}, 422), ({"id": 5}, 422), ({"place": "i" + "0" * 20}, 409),
        ({"place": "../votes.sqlite"}, 409),
    ],
)  # fmt: skip
def test_vote_when_it_answers_nothing_that_is_asked_changes_nothing(scene, change, code):
    here = scene()
    (person,) = here.people(1)
    key = here.keys(person)[0]
    whole = {"id": "12345678", "place": key, "answers": toy_answers(here.study, key), "loaded": True}
    assert person.post("vote", whole | change).status_code == code
    assert not [event for event in read_events(here.study.folder) if event.kind == "voted"]


@pytest.mark.parametrize(
    "headers",
    [
        {"x-review-token": "0" * 64}, {"x-review-token": ""}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"}, {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)  # fmt: skip
def test_request_when_not_from_our_page_is_refused(scene, headers):
    here = scene()
    (person,) = here.people(1)
    body = {"id": "12345678", "place": here.keys(person)[0], "answers": {}, "loaded": True}
    assert person.post("vote", body, **headers).status_code == 403


def test_request_when_with_anothers_token_or_no_session_is_refused(scene: Callable[..., Scene]) -> None:
    here = scene()
    first, second = here.people(2)
    assert first.post("leave", {}, **{"x-review-token": second.token}).status_code == 403
    second.client.cookies.clear()
    assert second.post("leave", {}).status_code == 403
    forged = TestClient(here.app)
    forged.cookies.set("fabula_review", "WyJyLTEiLCJ4Il0.aaaaaa.bbbbbbbbbbbbbbbb")
    assert forged.post("/api/leave", content="{}").status_code == 403


def test_link_when_altered_or_revoked_opens_nothing(scene: Callable[..., Scene]) -> None:
    here = scene()
    (invited,) = invite(here.study, here.journal, here.clock(), 1)
    path = invited.link.removeprefix("http://127.0.0.1:8765")
    client = TestClient(here.app)
    # the very last bits are no part of it
    altered = path[:-9] + ("A" if path[-9] != "A" else "B") + path[-8:]
    for wrong in (altered, "/enter/x", "/enter/" + "a" * 5000):
        answer = client.get(wrong, follow_redirects=False)
        assert answer.status_code in (403, 404), wrong
        assert "fabula_review" not in answer.cookies
    assert client.get(path, follow_redirects=False).status_code == 303
    revoke(here.study, here.journal, here.clock(), [invited.reviewer])
    assert client.get(path, follow_redirects=False).status_code == 403


def test_session_when_its_time_is_over_is_closed(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    cookie = session_cookie(study.secret, "r-1")
    assert session_of(study.secret, cookie, 12) is not None
    assert session_of(study.secret, cookie, -1) is None
    assert session_of(b"0" * 32, cookie, 12) is None


def test_answers_when_dropped_after_two_seats_are_open_again_in_both(scene: Callable[..., Scene]) -> None:
    here = scene(plan=Plan(raters=1, per_seat=2, block=9))
    (first,) = here.people(1)
    for _ in range(2):
        for key in here.keys(first):
            assert first.vote(key).status_code == 200
        seat = here.server.standing.reviewers[first.id].seat or 0
        assert first.close(str(here.study.seats[seat].places[0].block)).status_code == 200
        first.post("more", {})
    drop(here.study, here.journal, here.clock(), [first.id], "careless")
    here.people(2)
    assert set(here.server.standing.holders) == {1, 2}


def test_training_when_failed_ends_there_and_when_passed_goes_on(scene: Callable[..., Scene]) -> None:
    here = scene(training=2, training_pass=1.0)
    good, bad = here.people(2)
    for person, quality in ((good, 3), (bad, 1)):
        for item in here.study.training:
            answer = person.vote(item, toy_answers(here.study, item, quality))
            assert answer.json()["right"] == {"quality": quality == 3}
        assert person.close("training").status_code == 200
    standing = here.server.standing
    assert (standing.reviewers[good.id].ended, standing.reviewers[good.id].seat) == (None, 1)
    assert (standing.reviewers[bad.id].ended, standing.reviewers[bad.id].seat) == ("screened_out", None)
    assert human_rows(here.study, standing) == []


def test_check_items_when_answered_become_attention_lines_alone(scene: Callable[..., Scene]) -> None:
    here = scene(checks=1, plan=Plan(raters=3, block=9, checks=1))
    (person,) = here.people(1)
    for key in here.keys(person):
        assert person.vote(key).status_code == 200
    rows = human_rows(here.study, here.server.standing)
    assert [row.value for row in rows if row.kind == "attention"] == [0]  # 2 was said, 3 is right
    assert sum(row.kind == "rating" for row in rows) == 4


def test_answers_of_the_server_when_looked_at_keep_the_page_to_itself(scene: Callable[..., Scene]) -> None:
    here = scene()
    (person,) = here.people(1)
    for path in ("/static/review.css", "/media/none", "/none", "/api/vote"):
        headers = person.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
    cookie = person.client.get("/enter/x").headers.get("set-cookie")
    assert cookie is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 9_000, b"x" * 600_000]
)
def test_body_when_hostile_is_refused(scene: Callable[..., Scene], body: bytes) -> None:
    here = scene()
    (person,) = here.people(1)
    headers = {"x-review-token": person.token, "content-type": "application/json"}
    for name in ("vote", "agree", "broken", "draft", "close"):
        answer = person.client.post(f"/api/{name}", content=body, headers=headers)
        assert answer.status_code in (409, 413, 422)


@pytest.mark.parametrize(
    "answer", ["\ud800", {"deep\udfff": 1}, 2**63, -(2**63), float("nan"), float("inf"), ["a", "\ude00 b"]]
)
def test_text_when_it_cannot_be_stored_is_refused_and_everybody_goes_on(scene, answer):
    here = scene()
    bad, good = here.people(2)
    key = here.keys(bad)[0]
    for name in ("draft", "vote", "broken", "close", "agree", "leave"):
        body = {"id": "12345678", "place": key, "answers": {"note": answer}, "what": answer, "block": answer}
        assert bad.post(name, body).status_code == 422, name
    odd = {"place": key, "answers": {"note": "emoji \U0001f600, NUL \0"}}
    assert bad.post("draft", odd).status_code == 200
    assert [person.vote(here.keys(person)[0]).status_code for person in (bad, good)] == [200, 200]


def test_vote_when_the_disk_was_full_is_taken_once_there_is_space(scene, monkeypatch):
    here = scene()
    (person,) = here.people(1)
    key, writer = here.keys(person)[0], here.journal._writer
    assert writer._connection is not None

    def most(pages: int) -> None:
        writer._connection.execute(f"PRAGMA max_page_count = {pages}")

    most(1)
    long = {"answers": toy_answers(here.study, key), "timeline": [[1, "x" * 40]] * 4_000}
    assert person.vote(key, **long).status_code == 503
    assert person.client.get("/").status_code == 200
    assert person.vote(key, **long).status_code == 503
    most(100_000)
    assert person.vote(key, **long).status_code == 200
    assert [event.kind for event in read_events(here.study.folder)].count("voted") == 1


# -- Clients that keep a server waiting: they are let go, and everybody else is served

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
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def is_closed(client: socket.socket, drip: bytes) -> bool:
    """Whether a server closes a connection that sends a little again and again."""
    end = time.monotonic() + 60
    client.settimeout(0.05)
    while time.monotonic() < end:
        try:
            client.sendall(drip)
            if client.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


HEAD = b"GET /static/review.css HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("first", "drip"),
    [(b"", b""), (HEAD, b"X-A: b\r\n"), (HEAD + b"Content-Length: 100000\r\n\r\n", b"a"), (b"GET ", b"")],
)
def test_connection_when_its_request_does_not_come_is_closed(served, first, drip):
    server, begun = served(), time.monotonic()
    with connection(server) as client:
        client.sendall(first)
        assert is_closed(client, drip) and time.monotonic() - begun > WAIT / 2


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 100_000, b"X: 1\r\n" * 20_000])
def test_request_when_its_head_is_too_large_is_refused(served, head):
    with connection(served()) as client:
        client.sendall(HEAD + head)
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_page_when_there_is_no_room_takes_the_place_of_an_idle_connection(served, monkeypatch):
    monkeypatch.setattr(running, "MOST", 5)
    server = served()
    idle = [connection(server) for _ in range(30)]
    with urllib.request.urlopen(f"{server.url}/static/review.css", timeout=60) as answer:
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
            asyncio.run(routes.body_of(request))
        assert caught.value.status == 408


@pytest.mark.parametrize(
    ("soft", "hard", "most"),
    [(1024, 1024, 480), (256, 10_000, 2000), (256, 300, 118), (64, 64, 1), (100_000, 100_000, 2000)],
)
def test_connections_when_descriptors_are_few_are_fewer(monkeypatch, soft, hard, most):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert most_connections(2000) == most  # (1024 - 64) / 2 = 480: a socket and a file each


def test_log_when_flooded_has_a_few_lines_a_minute_and_says_how_many_were_left_out(caplog):
    now = [0.0]
    logger = logging.getLogger("fabula.flooded")
    few = FewLines(lambda: now[0])
    logger.addFilter(few)
    for _ in range(1000):
        logger.warning("Invalid %s", "request")
    now[0] = page.MINUTE + 1
    logger.warning("Invalid %s", "request")
    logger.removeFilter(few)
    assert len(caplog.records) == page.LINES + 1
    assert caplog.records[-1].getMessage() == "Invalid request (980 more lines before were left out)"
