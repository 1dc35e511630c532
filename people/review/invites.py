"""Who takes part: pseudonyms with personal links, links taken back, answers that count no more."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import ConfigError
from .folder import Study
from .journal import Event, VoteJournal
from .protocol import SIMULATED
from .serve.access import enter_token
from .standing import Standing

ROLES = ("reviewer", "adjudicator")
USUAL_ADDRESS = "http://127.0.0.1:8765"
MOST = 1000
"""Most people of one invitation."""


@dataclass(frozen=True, slots=True)
class Invited:
    """Somebody who may take part: pseudonym, role, group, and the link that is theirs alone."""

    reviewer: str
    role: str
    group: str | None
    link: str


def link_of(study: Study, reviewer: str, address: str = USUAL_ADDRESS) -> str:
    """Return the personal link of a reviewer at an address of the server."""
    return f"{address.rstrip('/')}/enter/{enter_token(study.secret, reviewer)}"


def invite(
    study: Study,
    journal: VoteJournal,
    now: str,
    count: int = 1,
    *,
    role: str = "reviewer",
    group: str | None = None,
) -> list[Invited]:
    """Let people take part; each gets a pseudonym that tells nothing, and a personal link."""
    groups = study.protocol.groups
    if role not in ROLES:
        raise ConfigError("--role", expected=" or ".join(ROLES), found=repr(role), fix="choose one of them")
    if group is not None and group not in groups:
        named = ", ".join(groups) or "no group: the protocol names none"
        raise ConfigError("--group", expected=named, found=repr(group), fix="choose one, or leave it out")
    if not 1 <= count <= MOST:
        raise ConfigError("--count", expected=f"1 to {MOST}", found=str(count), fix="invite fewer at once")
    begin = SIMULATED if study.protocol.simulated else "r-" if role == "reviewer" else "a-"
    taken = set(Standing.of(journal.events()).reviewers)
    people: list[str] = []
    while len(people) < count:
        name = f"{begin}{secrets.token_hex(4)}"
        if name not in taken:
            taken.add(name)
            people.append(name)
    body = {"role": role, "group": group}
    made = [
        Invited(name, role, group, link_of(study, name)) for name in people
    ]  # may fail: nobody is invited then
    journal.add_now(*(_event(study, now, name, "invited", **body) for name in people))
    return made


def invited(study: Study, standing: Standing, address: str = USUAL_ADDRESS) -> Iterator[Invited]:
    """Yield all who may take part, with their links."""
    for name, person in sorted(standing.reviewers.items()):
        if not person.revoked:
            yield Invited(name, person.role, person.group, link_of(study, name, address))


def revoke(study: Study, journal: VoteJournal, now: str, reviewers: Sequence[str]) -> None:
    """Take links back: they open nothing any more, and what is unanswered goes to others. Answers stay."""
    _require(journal, reviewers)
    events = []
    for name in reviewers:
        events += [_event(study, now, name, "left", why="revoked"), _event(study, now, name, "revoked")]
    journal.add_now(*events)


def drop(study: Study, journal: VoteJournal, now: str, reviewers: Sequence[str], why: str) -> None:
    """Have others answer anew what some people answered; their votes stay on file and do not count."""
    _require(journal, reviewers)
    if not why.strip():
        raise ConfigError("--why", what="nothing is written there", fix="say why their answers do not count")
    events = []
    for name in reviewers:
        events += [
            _event(study, now, name, "left", why=why, answers_dropped=True),
            _event(study, now, name, "ended", why="returned"),
        ]
    journal.add_now(*events)


def _require(journal: VoteJournal, reviewers: Sequence[str]) -> None:
    known = Standing.of(journal.events()).reviewers
    if strange := sorted(set(reviewers) - set(known)):
        raise ConfigError(
            ", ".join(strange), what="nobody of that name takes part",
            fix="see who does with fabula review status STUDY",
        )  # fmt: skip


def _event(study: Study, now: str, reviewer: str, kind: str, **body: object) -> Event:
    name = f"{reviewer}/{secrets.token_hex(12)}"
    return Event(name, now, study.protocol.sha256, reviewer, kind, None, body)
