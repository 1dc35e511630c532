"""The folder of a study: what is in it, making it, opening it."""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ...engine.lock import keep_private
from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, canonical_bytes, new_folder, sha256_bytes, write_atomic, writing
from ...schemas.plain_files import json_lines, read_json, read_plain, reason_of, type_reason
from ...schemas.values import Own
from ...validators.katha.review_tables import SEEN
from .design import Place as SeatPlace
from .design import Plan, Seat, Unit, design
from .items import ITEMS, KEY, MEDIA, Drawn, Item, Media, Stands, distinct, hide, store_file
from .plan import Rules
from .protocol import PROTOCOL, SIMULATED, Protocol, versions, write_protocol
from .serve.access import enter_token
from .standing import TRAINING, Event, Standing, VoteJournal, read_events
from .task import Task, load_task, read_task, text_in

TASK, SEATS, SECRET, ADDRESS = "task.j2", "seats.json", "secret.key", "address.txt"
SECRET_BYTES = 32
Row = TypeVar("Row", bound=Own)
Progress = Callable[[int, int], None]
"""Told how many items are ready, of how many."""


@dataclass(frozen=True)
class StudyPlan:
    """What a study is made with."""

    name: str  # short name
    title: str  # what reviewers read at the top; the task's, if empty
    task: str  # the task, or the path of its file
    plan: Plan  # how items are dealt to people
    rules: Rules  # who is left out, and when
    created_at: str  # now, RFC 3339, UTC
    source: Mapping[str, Json] = field(default_factory=dict)  # what is reviewed: kind, path, hashes
    settings: Mapping[str, Any] = field(default_factory=dict)  # other fields of the protocol


@dataclass(frozen=True)
class Study:
    """A study on disk."""

    folder: Path  # its folder
    protocol: Protocol  # the protocol in force
    task: Task = field(repr=False)  # what is asked
    items: Mapping[str, Item] = field(repr=False)  # opaque id -> what the pages show
    stands: Mapping[str, Stands] = field(repr=False)  # opaque id -> what it stands for
    seats: Mapping[int, Seat] = field(repr=False)  # what each seat is asked, by number
    training: tuple[str, ...] = field(repr=False)  # ids of the training items, in order
    secret: bytes = field(repr=False)  # key of names, links and sessions

    @cached_property
    def units(self) -> dict[str, Unit]:
        """Opaque id -> the item as the design knows it."""
        return {item: unit_of(stands, self.items[item]) for item, stands in self.stands.items()}

    @cached_property
    def owner_of_media(self) -> dict[str, str]:
        """Name of a picture or video -> the item that shows it."""
        return {medium.name: item.item for item in self.items.values() for medium in item.media}

    def blocks(self, seat: int | None) -> dict[str, tuple[SeatPlace, ...]]:
        """Return block -> what is asked in it, in order: the training without a seat, else the seat's."""
        if seat is None:
            return {TRAINING: tuple(SeatPlace(item, 0) for item in self.training)} if self.training else {}
        return in_blocks(self.seats[seat].places)

    def seen(self, item: str) -> dict[str, Json]:
        """Return what a vote or decision on an item says of what was shown: its hash, of a record only."""
        seen = self.stands[item].seen
        return {} if seen is None else {SEEN: seen}

    def events(self) -> list[Event]:
        """Return all that happened, oldest first."""
        return read_events(self.folder)

    def standing(self) -> Standing:
        return Standing.of(self.events())


def in_blocks(places: Iterable[SeatPlace]) -> dict[str, tuple[SeatPlace, ...]]:
    """Return block -> its places, in order."""
    blocks: dict[str, list[SeatPlace]] = {}
    for place in places:
        blocks.setdefault(str(place.block), []).append(place)
    return {name: tuple(listed) for name, listed in blocks.items()}


def unit_of(stands: Stands, item: Item) -> Unit:
    """Return an item as the design knows it."""
    return Unit(
        item.item, stands.story, tuple(stands.methods), stands.condition, sides=max(1, len(item.sides))
    )


def make_study(
    folder: Path,
    plan: StudyPlan,
    drawn: Sequence[Drawn],
    training: Sequence[Drawn] = (),
    checks: Sequence[Drawn] = (),
    progress: Progress | None = None,
) -> Study:
    """Make the folder of a study: items, key, seats and the frozen protocol.

    ``folder``: a new or empty folder.
    """
    task = load_task(plan.task)
    listed = distinct(drawn)
    if not listed:
        raise ConfigError(
            "review init", what="there is nothing to review", fix="choose stories that are there"
        )
    secret = secrets.token_bytes(SECRET_BYTES)
    with new_folder(folder):
        (folder / MEDIA).mkdir()
        hidden = _hidden(folder, task, [*listed, *training, *checks], secret, progress)
        items = [item for item, _ in hidden]
        stands = {each.item: each for _, each in hidden}
        seats = _dealt(
            listed,
            checks,
            {
                each.named: item.item
                for each, (item, _) in zip([*listed, *training, *checks], hidden, strict=True)
            },
            plan.plan,
        )
        taught = [item.item for item in items[len(listed) : len(listed) + len(training)]]
        _write(folder, items, stands, seats, taught)
        (folder / TASK).write_bytes(task.content)
        _write_secret(folder / SECRET, secret)
        write_protocol(folder, _protocol(folder, plan, task, len(training)))
    keep_private(folder)
    return open_study(folder)


def drawn_units(drawn: Sequence[Drawn]) -> list[Unit]:
    """Return items as the design knows them, under names that do not depend on the study's secret."""
    return [
        Unit(each.named, each.story, each.methods, each.condition, sides=max(1, len(each.sides)))
        for each in drawn
    ]


def deal(drawn: Sequence[Drawn], checks: Sequence[Drawn], plan: Plan) -> tuple[Seat, ...]:
    """Return the seats of a study; they follow from the seed alone."""
    return design(drawn_units(drawn), drawn_units(checks), plan)


def _dealt(
    drawn: Sequence[Drawn], checks: Sequence[Drawn], opaque: Mapping[str, str], plan: Plan
) -> list[Seat]:
    """Return the seats with the opaque ids of their items."""
    return [
        replace(seat, places=tuple(replace(place, item=opaque[place.item]) for place in seat.places))
        for seat in deal(drawn, checks, plan)
    ]


def _hidden(
    folder: Path, task: Task, listed: Sequence[Drawn], secret: bytes, progress: Progress | None
) -> list[tuple[Item, Stands]]:
    problems: list[UserError] = []
    hidden: list[tuple[Item, Stands]] = []
    for number, each in enumerate(listed, 1):
        stored: list[list[tuple[str, Media]]] = []
        for side in each.sides:
            stored.append([])
            for path in side:
                try:
                    stored[-1].append(store_file(folder, path))
                except InputError as error:
                    problems.extend(error.problems)
                except UserError as error:
                    problems.append(error)
        hidden.append(hide(each, secret, stored))
        if shows_too_much(each, task):
            what = "it would show more than its evidence condition allows"
            fix = "leave out texts and details under image, pictures under text; or choose another condition"
            problems.append(UserError(f"{task.card.id}: {each.about}", what=what, fix=fix))
        if progress is not None:
            progress(number, len(listed))
    if problems:
        raise InputError(problems)
    return hidden


def shows_too_much(drawn: Drawn, task: Task) -> bool:
    """Return whether reviewers would see of an item what its evidence condition withholds.

    Under ``image`` there are pictures and questions, and no text, explanation or value of a record; under
    ``text`` there are no pictures.
    """
    if task.card.evidence == "image" or drawn.condition == "image":
        parts = [part for listed in drawn.parts.values() for part in listed]
        return bool(drawn.texts or drawn.values or any(part.detail or part.values for part in parts))
    return drawn.condition == "text" and any(drawn.sides)


def _write(
    folder: Path,
    items: Sequence[Item],
    stands: Mapping[str, Stands],
    seats: Sequence[Seat],
    training: Sequence[str],
) -> None:
    """Write items, key and seats; items are sorted by their opaque ids, so that their order tells nothing."""
    ordered = sorted(items, key=lambda item: item.item)
    write_atomic(folder / ITEMS, (canonical_bytes(item.as_json()) + b"\n" for item in ordered))
    write_atomic(folder / KEY, (canonical_bytes(stands[item.item].as_json()) + b"\n" for item in ordered))
    document = {"training": list(training), "seats": [asdict(seat) for seat in seats]}
    write_atomic(folder / SEATS, [canonical_bytes(document) + b"\n"])


def _write_secret(path: Path, secret: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secret.hex() + "\n")


def _protocol(folder: Path, plan: StudyPlan, task: Task, training: int) -> Protocol:
    hashes = {
        name: sha256_bytes(read_plain(folder / file)) for name, file in (("items", ITEMS), ("key", KEY))
    }
    dealt = asdict(plan.plan)
    seed = dealt.pop("seed")
    try:
        return Protocol(
            name=plan.name, title=plan.title or text_in(task.card.title, "en"), created_at=plan.created_at,
            task=task.label, task_sha256=task.sha256, source=dict(plan.source), items_sha256=hashes["items"],
            key_sha256=hashes["key"], seed=seed, plan=dealt, training=training, rules=plan.rules,
            **plan.settings,
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            f"review init {'.'.join(map(str, first['loc']))}",
            what=type_reason(first),
            fix="give another value",
        ) from error


def open_study(folder: Path) -> Study:
    """Return a study from its folder; what the protocol froze is checked by hash."""
    if not (folder / PROTOCOL).is_file():
        what, fix = "there is no such folder", "make one with fabula review init, or give its folder"
        if folder.is_dir():
            what = f"there is no study in this folder: it has no {PROTOCOL}"
            fix = "give a folder that fabula review init made, with all its files"
        raise ConfigError(str(folder), what=what, fix=fix)
    protocol = versions(folder)[-1]
    frozen = ((TASK, protocol.task_sha256), (ITEMS, protocol.items_sha256), (KEY, protocol.key_sha256))
    try:
        changed = [name for name, sha256 in frozen if sha256_bytes(read_plain(folder / name)) != sha256]
        document = read_json(folder / SEATS)
        seats = {
            number: Seat(number, tuple(SeatPlace(**place) for place in places))
            for number, places in ((seat["number"], seat["places"]) for seat in document["seats"])
        }
        training = tuple(map(str, document["training"]))
        secret = bytes.fromhex(read_plain(folder / SECRET).decode("ascii").strip())
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _damaged(folder, reason_of(error)) from error
    if changed:
        raise _damaged(folder, f"{', '.join(changed)} is not what the protocol froze")
    if len(secret) != SECRET_BYTES:
        raise _damaged(folder, f"{SECRET} is not a key")
    items = {item.item: item for item in _rows(folder, ITEMS, Item)}
    stands = {each.item: each for each in _rows(folder, KEY, Stands)}
    task = read_task(read_plain(folder / TASK), str(folder / TASK))
    return Study(folder, protocol, task, items, stands, seats, training, secret)


def _rows(folder: Path, name: str, row: type[Row]) -> Iterable[Row]:
    try:
        return [row.model_validate(line) for line in json_lines(folder / name)]
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{name}: {reason_of(error)[:200]}") from error


def _damaged(folder: Path, why: str) -> InputError:
    fix = "restore the folder from a backup; the votes are in votes.sqlite"
    return InputError.one(str(folder), what=f"the study is damaged: {why}", fix=fix)


def replace_protocol(study: Study, protocol: Protocol) -> None:
    """Put a new version of the protocol in force."""
    with writing(study.folder, "free the disk, or check its permissions"):
        write_protocol(study.folder, protocol)


# -- Who takes part: pseudonyms with personal links, links taken back, answers that count no more

ROLES = ("reviewer", "adjudicator")
_HERE = "http://127.0.0.1:"
USUAL_ADDRESS = f"{_HERE}8765"
MOST = 1000
"""Most people of one invitation."""


@dataclass(frozen=True, slots=True)
class Invited:
    """Somebody who may take part: pseudonym, role, group, and the link that is theirs alone."""

    reviewer: str
    role: str
    group: str | None
    link: str


def address_of(folder: Path) -> str:
    """Return under which address people reach the server of a study: the last that was given or served."""
    try:
        return read_plain(folder / ADDRESS).decode().strip()
    except FileNotFoundError:
        return USUAL_ADDRESS


def keep_address(folder: Path, address: str, *, served: bool = False) -> None:
    """Keep the address of a study's server; where it is served counts unless a public one was given."""
    if not served or address_of(folder).startswith(_HERE):
        write_atomic(folder / ADDRESS, [f"{address}\n".encode()])


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
