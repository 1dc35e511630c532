"""How far a study is: people, seats, items short of votes, what did not load, versions of the protocol."""

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from ...schemas.canonical import Json
from ...schemas.text import tallied
from .care import care, care_lines
from .flow import dealt_votes, open_places, work_of
from .folder import Study
from .protocol import SIMULATED, versions
from .standing import TRAINING, Reviewer, Standing
from .votes import counted_votes

SHOWN = 10
"""So many items and people are listed for people; JSON has them all."""


def status(study: Study, standing: Standing, now: str) -> dict[str, Any]:
    """Return how far a study is, as plain JSON."""
    votes = list(counted_votes(study, standing))
    given = Counter(each.item for each in votes if not each.repeat and not each.check)
    wanted = dealt_votes(study)
    short = [
        {"item": item, "about": study.stands[item].about, "votes": given[item], "wanted": count}
        for item, count in sorted(wanted.items(), key=lambda entry: study.stands[entry[0]].about)
        if given[item] < count
    ]
    held = {seat for seat in study.seats if seat in standing.holders}
    done = {seat for seat in study.seats if not open_places(study, standing, seat)}
    return {
        "study": study.protocol.name,
        "task": study.protocol.task,
        "protocol": {"version": study.protocol.version, "sha256": study.protocol.sha256},
        "versions": _by_version(study, Counter(each.vote.event.protocol for each in votes)),
        "simulated": study.protocol.simulated,
        "items": len(wanted),
        "votes": {
            "wanted": sum(wanted.values()),
            "given": sum(min(given[item], n) for item, n in wanted.items()),
        },
        "short": short,
        "seats": {
            "all": len(study.seats),
            "done": len(done),
            "held": len(held - done),
            "free": len(study.seats.keys() - held - done),
        },
        "people": [_person(study, standing, person, now) for _, person in sorted(standing.reviewers.items())],
        "not_loading": _not_loading(study, standing),
        "care": care(study, standing),
        "changed": sum(each.changes for each in votes),
        "decisions": len(standing.decisions),
    }


def _by_version(study: Study, votes: Counter[str]) -> list[dict[str, Json]]:
    return [
        {
            "version": version.version, "sha256": version.sha256, "created_at": version.created_at,
            "why": version.why, "votes": votes[version.sha256],
        }
        for version in versions(study.folder)
    ]  # fmt: skip


def _person(study: Study, standing: Standing, person: Reviewer, now: str) -> dict[str, Any]:
    work = {name: places for name, places in work_of(study, standing, person).items() if name != TRAINING}
    mine = list(counted_votes(study, Standing(reviewers={person.id: person}), hasty=True))
    times = [each.seconds for each in mine if each.seconds is not None]
    return {
        "reviewer": person.id, "role": person.role, "group": person.group, "state": state_of(person),
        "seat": person.seat, "answered": len(mine), "under_floor": sum(each.hasty for each in mine),
        "open": max(0, sum(map(len, work.values())) - sum(each.vote.seat == person.seat for each in mine)),
        "median_seconds": median(times) if times else None, "last": person.last or None,
        "training": person.trained, "publish": (person.agreed or {}).get("publish"),
        "simulated": person.id.startswith(SIMULATED), "as_of": now,
    }  # fmt: skip


def state_of(person: Reviewer) -> str:
    """Return where a person is, in one word."""
    if person.dropped:
        return "dropped"
    if person.revoked:
        return "revoked"
    if person.ended is not None:
        return person.ended
    if person.agreed is None:
        return "invited"
    return "working" if person.seat is not None else "waiting"


def _not_loading(study: Study, standing: Standing) -> list[dict[str, Json]]:
    return [
        {"item": key, "about": study.stands[key.partition("#")[0]].about, "reviewer": person.id, "what": what}
        for person in standing.reviewers.values()
        for key, what in sorted(person.broken.items())
    ]


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return how far a study is, for people."""
    votes, seats = document["votes"], document["seats"]
    yield f"{document['study']}: {document['task']}, protocol version {document['protocol']['version']}"
    if document["simulated"]:
        yield "reviewers are simulated: nothing of it may be published as gold"
    yield from care_lines(document["care"])
    share = 100 * votes["given"] / votes["wanted"] if votes["wanted"] else 0.0
    items = tallied(document["items"], "items")
    yield f"votes: {votes['given']:,} of {votes['wanted']:,} ({share:.1f} %) on {items}"
    yield f"seats: {seats['done']} done, {seats['held']} held, {seats['free']} free"
    for version in document["versions"] if len(document["versions"]) > 1 else ():
        yield f"  protocol version {version['version']}: {tallied(version['votes'], 'votes')}"
    if document["changed"]:
        yield f"votes changed before their part was closed: {document['changed']}"
    yield from _people_lines(document["people"])
    if document["short"]:
        drop = "; --drop of `fabula review invite` gives what was answered too fast to others"
        advice = drop if document["care"]["under_floor"] else ""
        yield f"short of votes: {tallied(len(document['short']), 'items')}{advice}"
        yield from (
            f"  {each['about']} ({each['item']}): {each['votes']} of {each['wanted']}"
            for each in document["short"][:SHOWN]
        )
        if len(document["short"]) > SHOWN:
            yield f"  and {len(document['short']) - SHOWN:,} more; --json lists them"
    for each in document["not_loading"][:SHOWN]:
        yield f"does not load: {each['about']} ({each['item']}), says {each['reviewer']}: {each['what']}"


def _people_lines(people: list[Mapping[str, Any]]) -> Iterator[str]:
    states = Counter(person["state"] for person in people)
    listed = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    yield f"people: {listed or 'none invited'}"
    for person in people[:SHOWN]:
        time = "" if person["median_seconds"] is None else f", {person['median_seconds']:.0f} s each (median)"
        seat = "" if person["seat"] is None else f", seat {person['seat']}, {person['open']} open"
        name = f"{person['reviewer']} ({person['role']}, {person['state']})"
        fast = f", {person['under_floor']} too fast to count" if person["under_floor"] else ""
        yield f"  {name}: {person['answered']} answered{fast}{seat}{time}"
    if len(people) > SHOWN:
        yield f"  and {len(people) - SHOWN} more; --json lists them"
