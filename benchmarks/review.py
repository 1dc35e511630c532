"""A served study under load: how long a page and a vote take, how many errors, and whether anything is lost.

    python benchmarks/review.py [--people 200] [--steady 5] [--seconds 60] [--rush 10]

The server is a process of its own over a study of drawn pictures; the people are programs in this process,
on the same machine. First all together send so many votes a second (``--steady``), each after the page of the
item; then all at once, each as fast as it is answered (``--rush`` seconds). What was acknowledged is compared
with what is on file.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as httpx

from fabula.people.review.design import Plan
from fabula.people.review.folder import invite
from fabula.people.review.standing import VoteJournal, read_events
from fabula.testing.review_server import StudyProcess
from fabula.testing.review_studies import NOW, toy_study
from fabula.testing.simulated_reviewers import SimulatedReviewer, at_random

STORIES = 60


@dataclass
class Measured:
    """Seconds of each request, by what it was; errors; votes acknowledged."""

    pages: list[float] = field(default_factory=list)
    votes: list[float] = field(default_factory=list)
    errors: int = 0


async def turn(reviewer: SimulatedReviewer, measured: Measured) -> bool:
    """Look at the next page and do what it asks; return whether there was something to do."""
    begin = time.perf_counter()
    page = await reviewer._look("/")
    measured.pages.append(time.perf_counter() - begin)
    if page.kind == "done":
        return False
    begin, resent = time.perf_counter(), reviewer.resent
    await reviewer._act(page)
    if page.kind == "item":
        measured.votes.append(time.perf_counter() - begin)
    measured.errors += reviewer.resent - resent
    return True


async def steady(people: Sequence[SimulatedReviewer], rate: float, seconds: float) -> Measured:
    """Let votes begin evenly, so many a second, each by the next person."""
    measured, working = Measured(), []
    begin = time.perf_counter()
    for number in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, begin + number / rate - time.perf_counter()))
        working.append(asyncio.create_task(turn(people[number % len(people)], measured)))
    await asyncio.gather(*working)
    return measured


async def rush(people: Sequence[SimulatedReviewer], seconds: float) -> Measured:
    """Let all vote at once, each as fast as they are answered."""
    measured, end = Measured(), time.perf_counter() + seconds

    async def hurry(reviewer: SimulatedReviewer) -> None:
        while time.perf_counter() < end and await turn(reviewer, measured):
            pass

    await asyncio.gather(*map(hurry, people))
    return measured


def told(name: str, measured: Measured, seconds: float) -> dict[str, object]:
    """Return a row of the table."""

    def at(values: Sequence[float], share: float) -> float:
        ordered = sorted(values)
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0

    return {
        "load": name, "votes": len(measured.votes), "votes_a_second": round(len(measured.votes) / seconds, 1),
        "vote_p50_ms": at(measured.votes, 0.5), "vote_p99_ms": at(measured.votes, 0.99),
        "page_p50_ms": at(measured.pages, 0.5), "page_p99_ms": at(measured.pages, 0.99),
        "errors": measured.errors,
    }  # fmt: skip


async def load(folder: Path, address: str, links: Sequence[str], chosen: argparse.Namespace) -> list[object]:
    """Return the rows of the table, and what was acknowledged and is on file."""
    clients = [httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) for _ in links]
    people = [SimulatedReviewer(client, at_random(number), name=f"simulated-{number}", looks=False)
              for number, client in enumerate(clients, 1)]  # fmt: skip
    for person, link in zip(people, links, strict=True):
        await person._act(await person.enter(link))  # agrees
    rows: list[object] = [
        told(f"{chosen.steady:g} votes a second in all", await steady(people, chosen.steady, chosen.seconds),
             chosen.seconds),
        told(f"{len(people)} people at once", await rush(people, chosen.rush), chosen.rush),
    ]  # fmt: skip
    for client in clients:
        await client.aclose()
    acknowledged = {vote.id for person in people for vote in person.saved}
    on_file = [event.id.partition("/")[2] for event in read_events(folder) if event.kind == "voted"]
    rows.append(
        {"acknowledged": len(acknowledged), "on_file": len(on_file), "lost": len(acknowledged - set(on_file)),
         "double": len(on_file) - len(set(on_file))}
    )  # fmt: skip
    return rows


def main() -> None:
    """Make the study, serve it, load it, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--steady", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rush", type=float, default=10.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        plan = Plan(raters=chosen.people, least=chosen.people, block=STORIES)
        study = toy_study(Path(scratch) / "study", stories=STORIES, plan=plan)
        with VoteJournal(study.folder) as journal:
            invited = invite(study, journal, NOW, chosen.people)
        server = StudyProcess(study.folder)
        try:
            links = [each.link.partition("8765")[2] for each in invited]
            rows = asyncio.run(load(study.folder, server.url, links, chosen))
        finally:
            server.stop()
    for row in rows:
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
