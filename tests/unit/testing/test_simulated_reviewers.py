"""Programs that take part in a study: what they are told is saved is on file, once, whatever happens."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from fabula.people.review.design import Plan
from fabula.people.review.folder import USUAL_ADDRESS, Study, invite
from fabula.people.review.journal import VoteJournal, read_events
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.server import Server
from fabula.people.review.standing import Standing
from fabula.people.review.status import status
from fabula.testing.review_studies import toy_study
from fabula.testing.simulated_reviewers import GaveUp, SimulatedReviewer, at_random

NOW = "2026-01-01T00:00:00Z"


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


class Unsteady(httpx.AsyncBaseTransport):
    """A network that loses requests, and answers to requests that were carried out."""

    def __init__(self, app: Any, draw: random.Random, share: float) -> None:
        self.inner, self.draw, self.share = httpx.ASGITransport(app), draw, share

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.draw.random() < self.share:
            raise httpx.ConnectError("refused")
        answer = await self.inner.handle_async_request(request)
        if self.draw.random() < self.share:
            raise httpx.ReadError("lost")
        return answer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., tuple[Study, Server, Any]]]:
    """Make a study and serve it in this process."""
    journals = []

    def make(**about: Any) -> tuple[Study, Server, Any]:
        study = toy_study(tmp_path / "study", **about)
        journals.append(VoteJournal(study.folder))
        server = Server(study, journals[-1], lambda: NOW)
        return study, server, application(server)

    yield make
    for journal in journals:
        journal.close()


def links_of(study: Study, server: Server, count: int) -> list[str]:
    return [each.link.removeprefix(USUAL_ADDRESS) for each in invite(study, server.journal, NOW, count)]


def take_part(
    app: Any, links: list[str], policy: Any, share: float = 0.0, **about: Any
) -> list[SimulatedReviewer]:
    async def run(number: int, link: str) -> SimulatedReviewer:
        transport = Unsteady(app, random.Random(f"network {number}"), share)
        async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
            reviewer = SimulatedReviewer(client, policy, name=f"simulated-{number}", pause=no_pause, **about)
            await reviewer.take_part(link)
            return reviewer

    async def everybody() -> list[SimulatedReviewer]:
        return list(await asyncio.gather(*(run(number, link) for number, link in enumerate(links, 1))))

    return asyncio.run(everybody())


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_answers_when_told_that_they_are_saved_are_on_file_once(served: Any, share: float) -> None:
    study, server, app = served(training=1, stories=5, plan=Plan(raters=3, block=2, repeats=1, gap=2))
    reviewers = take_part(app, links_of(study, server, 3), at_random("any"), share)
    events = read_events(study.folder)
    voted = [event for event in events if event.kind == "voted"]
    told = {(saved.key, saved.id): dict(saved.answers) for each in reviewers for saved in each.saved}
    assert len(told) == 3 * (1 + 5 + 1)
    filed = {(event.item, event.id.rpartition("/")[2]): event.body["answers"] for event in voted}
    assert filed == told
    assert len(voted) == len(filed)
    assert max(Counter(event.id for event in events).values()) == 1
    assert (sum(each.resent for each in reviewers) > 0) == (share > 0)
    document = status(study, server.standing, NOW)
    assert document["votes"] == {"wanted": 15, "given": 15}
    assert {person["state"] for person in document["people"]} == {"finished"}
    assert {each.last.kind for each in reviewers} == {"done"}
    assert Standing.of(events) == Standing.of(read_events(study.folder))


def test_program_when_its_answer_is_refused_gives_up(served: Any) -> None:
    study, server, app = served()
    with pytest.raises(GaveUp, match="vote gives 422"):
        take_part(app, links_of(study, server, 1), lambda _page: {"quality": 77})


def test_program_when_nobody_answers_gives_up(served: Any) -> None:
    study, server, app = served()
    with pytest.raises(GaveUp, match="does not answer"):
        take_part(app, links_of(study, server, 1), at_random(1), 1.0)
