"""With how much care a study is answered: votes below the least time, and people whose answers say little.

What is seen here excludes nobody. Votes below the least time of the protocol do not count anywhere. Who
shows a sign of carelessness is named in the status, at export and at packing, which then needs
``--accept-careless``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...schemas.canonical import Json
from ...schemas.text import counted, tallied
from ...validators.careless import LEAST, Said, careless, hasty
from .folder import Study
from .points import upright
from .results import CHOOSING, consistency
from .standing import Standing
from .task import Question, place_of
from .votes import CONFIDENCE, Counted, counted_votes, rows_of

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
