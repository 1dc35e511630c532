"""Reading the reply that puts local registries together into the entities of a video.

Nobody and nothing is lost or invented: what the reply leaves out stays an entity of its own, what it names
twice belongs to the first, unknown ids are left out, and people who are seen in one shot stay apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ..replies import LONGEST_TEXT, Problems
from .asking import check_english, noted
from .drafts import Entity, EntityKind, Merge, Person, Repair
from .films import Local
from .names import tidy_name


@dataclass(frozen=True, slots=True)
class Merged:
    """The entities of a reply, each with what it is made of; labels are those of the first of these."""

    entities: tuple[Entity, ...]
    members: Mapping[str, tuple[str, ...]]
    merges: tuple[Merge, ...]
    repairs: tuple[Repair, ...]


@dataclass(slots=True)
class _Making:
    """What was made of a reply so far."""

    by: str
    entities: list[Entity] = field(default_factory=list)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)

    def add(self, kind: EntityKind, ids: Sequence[str], entry: Json, shots: Sequence[int]) -> None:
        label = ids[0]
        self.members[label] = tuple(ids)
        self.entities.append(
            Entity(
                label=label, kind=kind, name=tidy_name(kind, entry["name"]),
                aliases=tuple(normalize_text(alias)[:60] for alias in entry["aliases"][:4]),
                description=normalize_text(entry["looks"])[:LONGEST_TEXT], shots=tuple(sorted(set(shots))),
                persons=tuple(ids) if kind == "character" else (),
            )
        )  # fmt: skip


def read_identities(
    reply: Json, cast: Sequence[Person], locals_: Sequence[Local], by: str, numbers: Sequence[int]
) -> Merged:
    """Return the entities that a reply makes of people and local entities."""
    known = {person.person_id for person in cast} | {local.local_id for local in locals_}
    problems = Problems()
    check_english(reply, problems)
    lists = (("characters", "persons"), ("locations", "members"), ("objects", "members"))
    used = {name for listed, key in lists for entry in reply[listed] for name in entry[key]}
    if known and not used & known:
        problems.add("none of the ids that you were given is in the reply; copy them letter for letter")
    problems.settle()
    making = _Making(by)
    _characters(reply["characters"], cast, making, frozenset(numbers))
    for kind, listed in (("location", "locations"), ("object", "objects")):
        _things(reply[listed], [local for local in locals_ if local.kind == kind], making)
    return Merged(tuple(making.entities), making.members, tuple(making.merges), tuple(making.repairs))


def unmerged(cast: Sequence[Person], locals_: Sequence[Local], numbers: Sequence[int]) -> Merged:
    """Return every person and every local entity as an entity of its own."""
    making = _Making("")
    _characters([], cast, making, frozenset(numbers))
    _things([], locals_, making)
    return Merged(tuple(making.entities), making.members, (), ())


def _characters(
    entries: Sequence[Json], cast: Sequence[Person], making: _Making, numbers: frozenset[int]
) -> None:
    people = {person.person_id: person for person in cast}
    taken: set[str] = set()
    apart: set[str] = set()
    for entry in entries:
        ids = list(_own(entry["persons"], people, taken, making))
        group: list[Person] = []
        for person in (people[name] for name in ids):
            together = sorted({shot for other in group for shot in other.shots} & set(person.shots))
            if not group:
                group.append(person)
                continue
            refused = f"both are seen in shot {together[0]}" if together else None
            making.merges.append(
                Merge(
                    one=group[0].person_id, other=person.person_id, by=making.by,
                    reason=f"listed as one character, {normalize_text(entry['name'])[:60]}", refused=refused,
                )
            )  # fmt: skip
            if refused is None:
                group.append(person)
            else:
                taken.discard(person.person_id)
                apart.add(person.person_id)
        if group:
            taken.update(person.person_id for person in group)
            shots = [shot for person in group for shot in person.shots if shot in numbers]
            making.add("character", [person.person_id for person in group], entry, shots)
    for person in cast:
        if person.person_id not in taken:
            shots = [shot for shot in person.shots if shot in numbers]
            how = "was put with somebody in the same shot" if person.person_id in apart else "was left out"
            making.repairs.append(noted("left-out", f"{person.person_id} {how}", "added"))
            making.add("character", [person.person_id], _EMPTY, shots)


_EMPTY: Json = {"name": "", "aliases": [], "looks": ""}


def _things(entries: Sequence[Json], locals_: Sequence[Local], making: _Making) -> None:
    known = {local.local_id: local for local in locals_}
    taken: set[str] = set()
    named: dict[str, str] = {}
    for entry in entries:
        ids = list(_own(entry["members"], known, taken, making))
        if not ids:
            continue
        kind = known[ids[0]].kind
        name = normalize_answer(tidy_name(kind, entry["name"]))
        shots = [shot for own in ids for shot in known[own].shots]
        first = named.get(name)
        if name and first is not None:
            making.repairs.append(noted("named-twice", f"{entry['name'][:80]} is listed twice", "merged"))
            making.members[first] += tuple(ids)
            at = next(at for at, entity in enumerate(making.entities) if entity.label == first)
            whole = tuple(sorted({*making.entities[at].shots, *shots}))
            making.entities[at] = making.entities[at].model_copy(update={"shots": whole})
            continue
        named[name] = ids[0]
        making.add(kind, ids, entry, shots)
    for local in locals_:
        if local.local_id not in taken:
            making.repairs.append(
                noted("left-out", f"{local.name} ({local.local_id}) is in no entry of the reply", "added")
            )
            entry = {"name": local.name, "aliases": [], "looks": local.looks}
            making.add(local.kind, [local.local_id], entry, local.shots)


def _own(
    names: Sequence[str], known: Mapping[str, object], taken: set[str], making: _Making
) -> Iterator[str]:
    """Yield the ids of an entry that exist and belong to no entry before."""
    for name in dict.fromkeys(text.strip() for text in names):
        if name not in known:
            making.repairs.append(noted("unknown-id", f"{name[:40]!r} was not given", "dropped"))
        elif name in taken:
            making.repairs.append(noted("named-twice", f"{name} is in two entries", "dropped"))
        else:
            taken.add(name)
            yield name
