"""How far a study is, and with how much care it is answered.

People, seats, items short of votes, what did not load, versions of the protocol. Signs of carelessness
exclude nobody: votes below the least time of the protocol do not count anywhere; who shows a sign is named in
the status, at export and at packing, which then needs ``--accept-careless``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ...schemas.canonical import Json
from ...schemas.text import counted, tallied
from ...validators.careless import LEAST, Said, careless, hasty
from .flow import CONFIDENCE, Counted, counted_votes, dealt_votes, open_places, rows_of, work_of
from .folder import Study
from .points import upright
from .protocol import SIMULATED, versions
from .results import CHOOSING, consistency
from .standing import TRAINING, Reviewer, Standing
from .task import Question, place_of

# -- care

LEAST_CONSISTENT = 0.5
"""Share of repeated answers given as before, below which somebody is named."""
MOST_FAILED = 0.5
"""Share of failed gold items above which somebody is named."""


def care(study: Study, standing: Standing) -> dict[str, Any]:
    """Return what shows how carefully a study is answered, as plain JSON."""
    votes = list(counted_votes(study, standing, timed=False, hasty=True))
    given, under = Counter(each.person.id for each in votes), Counter[str]()
    under.update(each.person.id for each in votes if each.hasty)
    signs: dict[str, list[str]] = {who: [sign] for who, sign in hasty(under, given).items()}
    first = [each for each in votes if not each.repeat and not each.check]
    for who, shown in careless([said for each in first for said in _said(study, each)]).items():
        signs.setdefault(who, []).extend(shown)
    for who, sign in (*_failed(study, votes), *_inconsistent(study, votes)):
        signs.setdefault(who, []).append(sign)
    dealt = [asked for seat in study.seats.values() for asked in seat.places]
    floor = study.protocol.floor
    return {
        "floor": None if floor is None else floor.as_json(),
        "votes": len(votes),
        "under_floor": under.total(),
        "repeats": sum(asked.repeat > 0 for asked in dealt),
        "gold": sum(asked.check for asked in dealt),
        "people": dict(sorted(signs.items())),
    }


def _said(study: Study, vote: Counted) -> Iterator[Said]:
    """Yield the answers by choice of a vote."""
    item = study.items[vote.item]
    for question in study.task.card.questions:
        if question.type not in CHOOSING:
            continue
        values = [option.value for option in question.choices]
        for part in ("",) if question.each is None else item.part_ids.get(question.each, ()):
            answer = vote.vote.answers.get(place_of(question.name, part))
            first = answer[0] if isinstance(answer, list) and answer else answer
            if first is not None and not isinstance(first, list):
                number = values.index(first) if first in values else None
                kind = _kind(question, vote, first, values)
                yield Said(vote.person.id, (vote.item, part), question.name, kind, number)


def _kind(question: Question, vote: Counted, answer: Json, values: Sequence[str | int]) -> Json:
    """Return an answer as far as people should agree on it: of a scale, the side of its middle."""
    if question.name == CONFIDENCE:
        return None
    value = upright(question, vote, answer)
    if question.type != "scale" or not isinstance(value, int):
        return value
    middle = (min(map(int, values)) + max(map(int, values))) / 2
    return (value > middle) - (value < middle)


def _failed(study: Study, votes: Iterable[Counted]) -> Iterator[tuple[str, str]]:
    passed: dict[str, list[bool]] = {}
    for vote in votes:
        if vote.check:
            passed.setdefault(vote.person.id, []).extend(row.value == 1 for row in rows_of(study, vote))
    for who, own in sorted(passed.items()):
        if len(own) - sum(own) > MOST_FAILED * len(own):
            yield who, f"failed {len(own) - sum(own)} of {counted(len(own), 'gold item')}"


def _inconsistent(study: Study, votes: Sequence[Counted]) -> Iterator[tuple[str, str]]:
    for who, own in consistency(study, [vote for vote in votes if not vote.check]).items():
        if own["answers"] >= LEAST and own["same"] < LEAST_CONSISTENT * own["answers"]:
            yield who, f"answered {own['same']} of {own['answers']} repeated questions as before"


def care_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield for people what a reader of votes must know first."""
    if document["under_floor"]:
        votes = tallied(document["votes"], "votes")
        yield f"below the least time, on file and not counted: {document['under_floor']:,} of {votes}"
    for who, signs in document["people"].items():
        yield f"careless? {who}: {'; '.join(signs)}"
    if missing := missing_controls(document):
        yield missing


def missing_controls(document: Mapping[str, Any]) -> str:
    """Return which controls a study does not have; nothing where it has all."""
    lacks = {
        "no least time": document["floor"] is None, "no repeated items": not document["repeats"],
        "no gold items": not document["gold"],
    }  # fmt: skip
    missing = [what for what, is_missing in lacks.items() if is_missing]
    return f"controls of care that this study has not: {', '.join(missing)}" if missing else ""


# -- how far it is

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
