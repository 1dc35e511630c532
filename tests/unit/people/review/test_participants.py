"""Participants of a recruitment platform: let in by their id, which is nowhere kept."""

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fabula.errors import RunError
from fabula.people.review.design import Plan
from fabula.people.review.folder import Study
from fabula.people.review.invites import revoke
from fabula.people.review.journal import VoteJournal, read_events
from fabula.people.review.participants import FILE, SALT, Participants, codes, room
from fabula.people.review.serve.join import join_routes
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.server import Server
from fabula.people.review.status import status
from fabula.testing.review_studies import toy_study
from fabula.testing.simulated_reviewers import SimulatedReviewer, at_random

IDS = ("5f3c1b2a9d8e7f6a5b4c3d2e", "60a1b2c3d4e5f60718293a4b", "61ffeeddccbbaa9988776655")
SESSION = "6512bd43d9caa6e02c990b0a"
LINK = "https://app.prolific.com/submissions/complete?cc={code}"


class Clock:
    """A time that tests set, in hours since the first of January."""

    hours = 0

    def __call__(self) -> str:
        return f"2026-01-{1 + self.hours // 24:02d}T{self.hours % 24:02d}:00:00Z"


class Scene:
    """A study that is served, with the address for participants."""

    def __init__(self, study: Study) -> None:
        self.study, self.clock = study, Clock()
        self.journal = VoteJournal(study.folder)
        self.serve()

    def serve(self) -> None:
        """Start the server, or start it again."""
        self.journal.close()
        self.journal = VoteJournal(self.study.folder)
        self.server = Server(self.study, self.journal, self.clock)
        self.app = application(self.server, join_routes)

    def run(self, act: Callable[[SimulatedReviewer], Any], policy: Any = None) -> Any:
        async def visit() -> Any:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
                return await act(SimulatedReviewer(client, policy or at_random("any")))

        return asyncio.run(visit())

    def join(self, participant: str, **more: str) -> Any:
        return self.run(lambda each: each.enter(address_of(participant, **more)))

    def people(self) -> list[str]:
        return sorted(self.server.standing.reviewers)


def address_of(participant: str, **more: str) -> str:
    asked = {"PROLIFIC_PID": participant, "STUDY_ID": "65aa", "SESSION_ID": SESSION, **more}
    return str(httpx.URL("/join", params=asked))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    scenes = []

    def make(**about: Any) -> Scene:
        settings = {"participant": "PROLIFIC_PID", "link": LINK, **about}
        scenes.append(Scene(toy_study(tmp_path / "study", **settings)))
        return scenes[-1]

    yield make
    for each in scenes:
        each.journal.close()


def test_participant_when_coming_again_is_the_same_reviewer(scene: Callable[..., Scene]) -> None:
    here = scene()
    assert [here.join(each).kind for each in (IDS[0], IDS[1], IDS[0])] == ["consent"] * 3
    assert len(here.people()) == 2
    here.serve()  # the server was started again
    here.join(IDS[0], SESSION_ID="another")
    assert len(here.people()) == 2
    assert all(name.startswith("simulated-") and len(name) == 18 for name in here.people())


def test_people_when_the_study_is_not_simulated_have_usual_pseudonyms(scene: Callable[..., Scene]) -> None:
    here = scene(simulated=False)
    here.join(IDS[0])
    (name,) = here.people()
    assert name.startswith("r-")
    assert len(name) == 10


def test_participants_when_through_get_the_code_of_how_they_ended(scene: Callable[..., Scene]) -> None:
    here = scene(training=1, training_pass=1.0)
    part = "questions"

    def answers(quality: int) -> Any:
        def policy(page: Any) -> Any:
            item = here.study.items[page.key.partition("#")[0]]
            own = item.parts[part][0].id
            return {"quality": quality, f"said/{own}": "because", f"valid/{own}": "valid"}

        return policy

    good = here.run(lambda each: each.take_part(address_of(IDS[0])), answers(3))
    bad = here.run(lambda each: each.take_part(address_of(IDS[1])), answers(1))

    async def leave(each: SimulatedReviewer) -> Any:
        await each.enter(address_of(IDS[2]))
        return await each.leave()

    gone = here.run(leave)
    known = codes(here.study)
    assert [page.code for page in (good, bad, gone)] == [
        known["finished"],
        known["screened_out"],
        known["returned"],
    ]
    assert len(set(known.values())) == 3
    for page in (good, bad, gone):
        assert page.link == LINK.replace("{code}", page.code)
        assert page.code.isalnum()
        assert page.code == page.code.upper()
    states = [person["state"] for person in status(here.study, here.server.standing, here.clock())["people"]]
    assert sorted(states) == ["finished", "returned", "screened_out"]
    again = here.run(lambda each: each.take_part(address_of("ffff00001111222233334444")), answers(3))
    assert again.code == good.code  # a code is of an outcome, not of a person
    assert here.join(IDS[1]).code == bad.code  # who comes again sees how it ended


def test_id_when_somebody_took_part_is_in_no_file_page_or_message(
    scene: Callable[..., Scene], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    here = scene(plan=Plan(raters=1))
    texts: list[str] = []

    async def visit(each: SimulatedReviewer) -> None:
        page = await each.client.get(address_of(IDS[0]), follow_redirects=False)
        assert (page.status_code, page.headers["location"]) == (303, "/")
        texts.extend([page.text, str(page.headers)])
        await each.take_part("/")
        texts.append((await each.client.get("/")).text)
        for address in (address_of(IDS[1]), address_of(IDS[1] * 20), address_of("<i>" + IDS[1])):
            texts.append((await each.client.get(address)).text)

    here.run(visit)
    os.sync()
    secrets = [text.encode() for text in (*IDS, SESSION)]
    files = [path for path in here.study.folder.rglob("*") if path.is_file()]
    assert {FILE, SALT, "votes.sqlite"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        assert not [secret for secret in secrets if secret in content], path
    outputs = [*texts, *capfd.readouterr()]
    messages = [
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    for text in (*outputs, *messages):
        assert not [secret for secret in secrets if secret.decode() in text]


def test_files_of_participants_when_made_are_for_their_owner_only(scene: Callable[..., Scene]) -> None:
    here = scene()
    here.join(IDS[0])
    for name in (FILE, SALT):
        assert stat.S_IMODE((here.study.folder / name).stat().st_mode) == 0o600


def test_participant_when_no_seat_is_free_gets_a_page_and_no_place(scene: Callable[..., Scene]) -> None:
    here = scene(plan=Plan(raters=1))
    assert here.join(IDS[0]).kind == "consent"  # on the way to the only seat
    page = here.join(IDS[1])
    assert (page.kind, page.code, page.token) == ("done", "", "")
    assert len(here.people()) == 1
    here.clock.hours = 49  # the first did not go on
    assert here.join(IDS[1]).kind == "consent"
    assert len(here.people()) == 2


def test_room_when_seats_are_held_or_the_study_is_closed_is_less(scene: Callable[..., Scene]) -> None:
    here = scene()
    assert room(here.study, here.server.standing, here.clock()) == 3
    here.run(lambda each: each.take_part(address_of(IDS[0]), most=1))
    assert room(here.study, here.server.standing, here.clock()) == 2
    here.clock.hours = 100
    assert room(here.study, here.server.standing, here.clock()) == 3
    here.run(lambda each: each.take_part(address_of(IDS[1])))
    assert room(here.study, here.server.standing, here.clock()) == 2
    closed = replace(here.study, protocol=here.study.protocol.model_copy(update={"closed": True}))
    assert room(closed, here.server.standing, here.clock()) == 0


@pytest.mark.parametrize(
    "participant",
    ["", " ", "a b", "x" * 200, "<script>", "../../etc", "a\nb", "\x00", "é", "{{%PROLIFIC_PID%}}"],
)
def test_participant_when_the_id_cannot_be_one_is_refused(
    scene: Callable[..., Scene], participant: str
) -> None:
    here = scene()
    assert here.join(participant).kind == "error"
    assert here.people() == []


def test_participant_when_of_another_study_of_the_platform_is_refused(scene: Callable[..., Scene]) -> None:
    here = scene(join_only={"STUDY_ID": "65aa"})
    assert here.join(IDS[0], STUDY_ID="65ab").kind == "error"
    assert here.join(IDS[0]).kind == "consent"


def test_address_when_the_protocol_names_no_parameter_is_not_there(scene: Callable[..., Scene]) -> None:
    here = scene(participant=None)
    assert here.join(IDS[0]).kind == "error"
    assert here.people() == []
    assert not (here.study.folder / FILE).exists()


def test_parameter_when_it_has_another_name_is_taken(scene: Callable[..., Scene]) -> None:
    here = scene(participant="workerId")
    assert here.join(IDS[0]).kind == "error"
    assert here.join(IDS[0], workerId=IDS[1]).kind == "consent"


def test_participant_when_revoked_does_not_come_in_again(scene: Callable[..., Scene]) -> None:
    here = scene()
    here.join(IDS[0])
    revoke(here.study, here.journal, here.clock(), here.people())
    assert here.join(IDS[0]).kind == "error"


def test_participant_when_the_server_was_killed_between_two_writes_is_let_in(
    scene: Callable[..., Scene],
) -> None:
    here = scene()
    name = Participants(here.study).add(IDS[0], here.clock())
    assert here.people() == []
    assert here.join(IDS[0]).kind == "consent"
    assert here.people() == [name]
    assert [event.kind for event in read_events(here.study.folder)] == ["invited"]


def test_same_participant_when_coming_many_times_at_once_is_one_reviewer(scene: Callable[..., Scene]) -> None:
    here = scene()

    async def visit(_each: SimulatedReviewer) -> Any:
        transport = httpx.ASGITransport(here.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
            return await asyncio.gather(*(client.get(address_of(IDS[n % 2])) for n in range(20)))

    assert {answer.status_code for answer in here.run(visit)} == {303}
    assert len(here.people()) == 2


def test_participants_when_their_salt_is_lost_are_not_taken_for_new_ones(scene: Callable[..., Scene]) -> None:
    here = scene()
    here.join(IDS[0])
    salt = here.study.folder / SALT
    kept = salt.read_text()
    for damaged in (None, "", "abc\n", "00\n"):
        salt.unlink(missing_ok=True)
        if damaged is not None:
            salt.write_text(damaged)
        with pytest.raises(RunError, match="the salt of the participants cannot be used"):
            here.serve()
    salt.write_text(kept)
    here.serve()
    here.join(IDS[0])
    assert len(here.people()) == 1


def test_hash_when_two_studies_have_one_participant_differs(tmp_path: Path) -> None:
    made = [Participants(toy_study(tmp_path / name)) for name in ("one", "two")]
    assert made[0]._hash(IDS[0]) != made[1]._hash(IDS[0])
