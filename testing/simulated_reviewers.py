"""Programs that take part in a study as reviewers do: over HTTP, with what the pages show and nothing else.

    python -m fabula.testing.simulated_reviewers LINK LINK LINK

has one of them take part by each personal link, for trying a study that was made with ``--simulated``.

They send again what was not acknowledged, with the same id, as the pages' script does; so a server may be
killed under them. What they were told is saved is kept, to be compared with what is on file.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..schemas.canonical import Json
from .review_page import Field, Page, read_page

if TYPE_CHECKING:
    import httpx2 as httpx

PATIENCE = 200
"""Times that a request is sent before somebody gives up."""
PAUSE = 0.05
"""Seconds between two tries."""
Pause = Callable[[float], Awaitable[Any]]


class GaveUp(Exception):
    """The server did not answer, or refused what should have been right."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a policy says about an item: the answers, and the active time that they took, in seconds."""

    answers: Mapping[str, Json]
    seconds: float = 120.0


Policy = Callable[[Page], Answered | Mapping[str, Json] | None]
"""Answers an item from its page; None reports that it does not load."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A vote that the server said was saved."""

    id: str
    key: str
    answers: Mapping[str, Json]


@dataclass
class SimulatedReviewer:
    """A program that takes part."""

    client: "httpx.AsyncClient"  # sends its requests, to the server's address; it keeps the session
    policy: Policy  # answers items
    name: str = "simulated-1"  # begins the ids of what it sends
    looks: bool = True  # whether it asks for every picture and video before it answers, as a browser does
    pause: Pause = asyncio.sleep  # waits
    saved: list[Saved] = field(default_factory=list)  # votes that the server said were saved
    resent: int = 0  # how many requests were sent again
    last: Page = field(default_factory=Page)  # the page that it saw last
    _sent: int = 0

    async def enter(self, link: str) -> Page:
        """Open a personal link; return the page that follows."""
        return await self._look(link)

    async def take_part(self, link: str, most: int | None = None) -> Page:
        """Enter, answer everything that is asked, close every part; return the last page."""
        page = await self.enter(link)
        while page.kind not in ("done", "error") and (most is None or len(self.saved) < most):
            await self._act(page)
            page = await self._look("/")
        return page

    async def _act(self, page: Page) -> None:
        if page.kind == "consent":
            await self.send("agree", {"publish": True, "expertise": next(iter(page.expertise), None)})
        elif page.kind == "item":
            await self.vote(page)
        elif page.kind == "overview":
            await self.send("close", {"id": self._id("close"), "block": page.block})
        elif page.kind == "break":
            await self.pause(page.seconds)
        else:
            raise GaveUp(f"{self.name}: there is nothing to do on a page of kind {page.kind!r}")

    async def vote(self, page: Page) -> None:
        """Answer the item of a page."""
        for address in page.media if self.looks else ():
            picture = await self._get(address)
            if picture.status_code != 200:
                raise GaveUp(f"{self.name}: {address} gives {picture.status_code}")
        said = self.policy(page)
        if said is None:
            await self.send("broken", {"id": self._id("broken"), "place": page.key, "what": "Picture 1"})
            return
        answered = said if isinstance(said, Answered) else Answered(said)
        loaded, end = 200.0, 200.0 + 1000 * answered.seconds
        sent, answers = self._id("vote"), dict(answered.answers)
        body = {
            "id": sent, "place": page.key, "answers": answers, "loaded": True, "language": "en",
            "timeline": [[0.0, "visible"], [loaded, "loaded"], *_steps(loaded, end), [end, "sent"]],
        }  # fmt: skip
        await self.send("vote", body)
        self.saved.append(Saved(sent, page.key, answers))

    async def send(self, name: str, body: Mapping[str, Json]) -> dict[str, Any]:
        """Send a request until it is acknowledged; return the answer."""
        headers = {"x-review-token": self.last.token}
        answer = await self._until_answered(
            lambda: self.client.post(f"/api/{name}", json=body, headers=headers)
        )
        if answer.status_code != 200:
            raise GaveUp(f"{self.name}: {name} gives {answer.status_code}: {answer.text[:300]}")
        content: dict[str, Any] = answer.json()
        return content

    async def _look(self, address: str) -> Page:
        answer = await self._get(address)
        self.last = read_page(answer.text)
        return self.last

    async def _get(self, address: str) -> "httpx.Response":
        return await self._until_answered(lambda: self.client.get(address, follow_redirects=True))

    async def _until_answered(self, ask: Callable[[], Awaitable["httpx.Response"]]) -> "httpx.Response":
        import httpx2 as httpx

        for _ in range(PATIENCE):
            try:
                answer = await ask()
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                return answer
            self.resent += 1
            await self.pause(PAUSE)
        raise GaveUp(f"{self.name}: the server does not answer")

    def _id(self, kind: str) -> str:
        self._sent += 1
        return f"{self.name}-{kind}-{self._sent:06d}"


def _steps(begin: float, end: float) -> Iterable[list[Json]]:
    """Yield events in between, so that no pause is longer than 20 seconds."""
    moment = begin + 20_000
    while moment < end:
        yield [moment, "active"]
        moment += 20_000


async def simulate(
    links: Iterable[str],
    policy: Callable[[int], Policy],
    address: str,
    *,
    at_a_time: int = 100,
    **about: Any,  # noqa: ANN401
) -> list[SimulatedReviewer]:
    """Let programs take part, so many at a time; return them when all are through.

    ``policy``: number of a program, from 1 -> how it answers.
    """
    import httpx2 as httpx

    gate = asyncio.Semaphore(at_a_time)

    async def run(number: int, link: str) -> SimulatedReviewer:
        async with gate, httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
            reviewer = SimulatedReviewer(client, policy(number), name=f"simulated-{number}", **about)
            await reviewer.take_part(link)
            return reviewer

    return list(await asyncio.gather(*(run(number, link) for number, link in enumerate(links, 1))))


def at_random(seed: object) -> Policy:
    """Return a policy that answers every question that is asked at random, optional ones at times."""

    def answer(page: Page) -> Mapping[str, Json]:
        draw = random.Random(f"{seed}/{page.key}")
        answers: dict[str, Json] = {}
        left_out = {asked.place for asked in page.fields if asked.optional and draw.random() < 0.5}
        for asked in page.fields * 2:  # a question may depend on one that comes later
            if asked.is_due(answers) and asked.place not in {*answers, *left_out}:
                answers[asked.place] = drawn_answer(asked, draw)
        return answers

    return answer


def mostly_first(seed: object, doubt: float = 0.02) -> Policy:
    """Return a policy that takes the first option of each choice, and now and then the last.

    ``doubt``: share of the choices of which it takes the last option, from 0 to 1.
    """
    draw = random.Random(str(seed))

    def answer(page: Page) -> Mapping[str, Json]:
        answers: dict[str, Json] = {}
        for asked in page.fields:
            if asked.is_due(answers) and not asked.optional:
                chosen = asked.options[-1 if draw.random() < doubt else 0] if asked.options else None
                listed: Json = [chosen] if asked.type == "labels" else chosen
                answers[asked.place] = drawn_answer(asked, draw) if chosen is None else listed
        return answers

    return answer


def drawn_answer(asked: Field, draw: random.Random) -> Json:
    """Return an answer to a question, drawn among those that are right in form."""
    if asked.unclear and draw.random() < 0.1:
        return "unclear"
    if asked.type in ("choice", "scale"):
        return draw.choice(asked.options)
    if asked.type == "labels":
        return draw.sample(asked.options, draw.randint(1, min(asked.most, len(asked.options))))
    if asked.type == "text":
        return f"answer {draw.randrange(1000)}"
    path = draw.choice(sorted(asked.values))
    return [{"path": path, "new": _other(asked.values[path], draw)}]


def _other(value: Mapping[str, Json], draw: random.Random) -> Json:
    """Return another value than the one that stands somewhere."""
    options = [option for option in value["options"] if option != value["value"]]
    if options:
        return draw.choice(options)
    new: Json = (
        draw.randrange(10**6) if value["takes"].startswith("number") else f"other {draw.randrange(1000)}"
    )
    return [new] if value["takes"].endswith("s") else new


def main() -> int:
    """Take part in a study by each link, one after the other; say how many votes were given."""
    options = argparse.ArgumentParser(
        prog="python -m fabula.testing.simulated_reviewers",
        description="Programs answer a study that was made with --simulated. They look at nothing.",
    )
    options.add_argument("links", nargs="+", help="personal links, as `fabula review invite` prints them")
    options.add_argument("--doubt", type=float, default=0.02, help="share of answers that differ [0.02]")
    given = options.parse_args()
    address = "{0.scheme}://{0.netloc}".format(urlsplit(given.links[0]))
    people = asyncio.run(
        simulate(given.links, lambda number: mostly_first(number, given.doubt), address, at_a_time=1)
    )
    for reviewer in people:
        sys.stdout.write(f"{reviewer.name}: {len(reviewer.saved)} votes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
