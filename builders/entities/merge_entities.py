"""Stage: the entities of a whole video: local ones put together and named, and looked for in the frames.

Rules make each person of the cast a character, and each place a location; there are no objects.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from pydantic import Field

from ...engine.stage import REHEARSED, NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ..step import LONGEST_TEXT, Drafted, PlannerSettings, Problems, Step, by_number, public_name
from .list_entities import LONG, Film, Identities, Local, chunks_of, frames_of
from .names import (
    Entity,
    EntityKind,
    Merge,
    Person,
    Repair,
    in_order,
    person_name,
    tidy_name,
    with_slots,
    with_unique_names,
    without_slots,
)
from .pictures import attempt, check_english, noted, tidy, why

# -- Reading the reply that puts local registries together into the entities of a video
#
# Nobody and nothing is lost or invented: what the reply leaves out stays an entity of its own, what it names
# twice belongs to the first, unknown ids are left out, and people who are seen in one shot stay apart.


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
    proposed: Mapping[str, Local]
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
                persons=tuple(name for name in ids if kind == "character" and name not in self.proposed),
            )
        )  # fmt: skip


def read_identities(
    reply: Json, cast: Sequence[Person], locals_: Sequence[Local], by: str, numbers: Sequence[int],
    proposed: Mapping[str, Local] = MappingProxyType({}),
) -> Merged:  # fmt: skip
    """Return the entities that a reply makes of people and local entities.

    ``proposed``: those of the cast whom no tracker found, by id.
    """
    known = {person.person_id for person in cast} | {local.local_id for local in locals_}
    problems = Problems()
    check_english(reply, problems)
    lists = (("characters", "persons"), ("locations", "members"), ("objects", "members"))
    used = {name for listed, key in lists for entry in reply[listed] for name in entry[key]}
    if known and not used & known:
        problems.add("none of the ids that you were given is in the reply; copy them letter for letter")
    problems.settle()
    making = _Making(by, proposed)
    _characters(reply["characters"], cast, making, frozenset(numbers))
    for kind, listed in (("location", "locations"), ("object", "objects")):
        _things(reply[listed], [local for local in locals_ if local.kind == kind], making)
    return Merged(tuple(making.entities), making.members, tuple(making.merges), tuple(making.repairs))


def unmerged(
    cast: Sequence[Person], locals_: Sequence[Local], numbers: Sequence[int], proposed: Mapping[str, Local]
) -> Merged:
    """Return every person and every local entity as an entity of its own."""
    making = _Making("", proposed)
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
            local = making.proposed.get(person.person_id)
            entry = _EMPTY if local is None else {"name": local.name, "aliases": [], "looks": local.looks}
            making.add("character", [person.person_id], entry, shots)


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


# -- The entities of a whole video

_ROUNDS = 4
"""Times that merged entities are merged again with those of other batches."""


class Seen(NamedTuple):
    """What a model sees of a shot: numbers of entries, and those that are another one, with the reason."""

    entries: tuple[int, ...]
    contradicted: tuple[tuple[int, str], ...]


class Settings(PlannerSettings):
    max_input_tokens: int = LONG
    at_once: int = Field(
        default=150, ge=10, le=2000, description="Local entities that a model is asked to merge at once."
    )
    verify: bool = Field(
        default=True, description="Whether a model looks for objects and locations in the frames again."
    )
    chunk: int = Field(default=12, ge=2, le=100, description="Shots whose frames it is shown at once for it.")


def _rules(film: Film, settings: Settings) -> Json:
    """Return each person of the cast as a character, and each place as a location."""
    kept = frozenset(film.numbers)
    people = [
        Entity(
            label=person.person_id, kind="character", name=person_name(number),
            description=_described(film, person.person_id, person_name(number)),
            shots=tuple(shot for shot in person.shots if shot in kept), persons=(person.person_id,),
        )
        for number, person in enumerate(film.cast, 1)
    ]  # fmt: skip
    places = [
        Entity(
            label=entity.local_id,
            kind=entity.kind,
            name=entity.name,
            description=entity.looks,
            shots=entity.shots,
        )
        for registry in film.registries
        for entity in registry.entities
    ]
    entities, labels = in_order([*people, *places])
    members = {label: (old,) for old, label in labels.items()}
    return Identities(entities=tuple(entities), members=members).as_json()


def _described(film: Film, person: str, name: str) -> str:
    tone = film.views.of_person(person).tone
    return f"{name}, a person in {'clothes of unknown colour' if tone is None else f'mostly {tone} clothes'}."


async def merge_chunks(tools: Tools, film: Film) -> Drafted[Json]:
    """Return the entities of the film: merged, named, and looked for in the frames."""
    settings = tools.own(Settings)
    merged, makers = await _merged(tools, film)
    entities, labels = in_order(merged.entities)
    members = {labels[old]: ids for old, ids in merged.members.items() if old in labels}
    entities, renamed = with_unique_names(entities, _spare)
    entities, places = _with_one_place(entities)
    repairs = [*merged.repairs, *renamed, *places]
    if settings.verify:
        entities, new_repairs, answers = await _looked_for(tools, film, entities)
        repairs += new_repairs
        makers += [answer.maker for answer in answers if isinstance(answer, Drafted)]
    repairs += [
        noted("not-seen", f"{entity.name} is seen in no shot", "dropped")
        for entity in entities
        if not entity.shots
    ]
    final, last = in_order(entities)
    made = Identities(
        entities=tuple(final),
        merges=merged.merges,
        repairs=tuple(
            repair.model_copy(update={"entity": last.get(repair.entity or "")}) for repair in repairs
        ),
        members={last[old]: ids for old, ids in members.items() if old in last},
    )
    return Drafted(made.as_json(), "; ".join(dict.fromkeys(makers)) or "rules@1")


async def _merged(tools: Tools, film: Film) -> tuple[Merged, list[str]]:
    """Return what the model makes of the local entities: of all at once, or of batches and then of these."""
    settings = tools.own(Settings)
    every = [entity for registry in film.registries for entity in registry.entities]
    locals_ = [entity for entity in every if entity.kind != "character"]
    cast = [*film.cast, *map(_as_person, film.proposed.values())]
    batches = _batches(locals_, settings.at_once)
    if len(batches) <= 1:
        return await _merge(tools, film, cast, locals_)
    makers: list[str] = []
    members: dict[str, tuple[str, ...]] = {local.local_id: (local.local_id,) for local in locals_}
    repairs: list[Repair] = []
    for _ in range(_ROUNDS):
        parts = await asyncio.gather(
            *(_merge(tools, film, (), batch) for batch in _batches(locals_, settings.at_once))
        )
        makers += [maker for _, by in parts for maker in by]
        repairs += [repair for merged, _ in parts for repair in merged.repairs]
        entities = [entity for merged, _ in parts for entity in merged.entities]
        joined = {label: ids for merged, _ in parts for label, ids in merged.members.items()}
        members = {
            label: tuple(deep for local in ids for deep in members[local]) for label, ids in joined.items()
        }
        before, locals_ = len(locals_), [_as_local(entity) for entity in entities]
        if len(locals_) <= settings.at_once or len(locals_) == before:
            break
    last, by = await _merge(tools, film, cast, locals_)
    deep = {
        label: tuple(deep for member in ids for deep in members.get(member, (member,)))
        for label, ids in last.members.items()
    }
    return Merged(last.entities, deep, last.merges, (*repairs, *last.repairs)), [*makers, *by]


def _batches(locals_: Sequence[Local], size: int) -> list[Sequence[Local]]:
    return [locals_[start : start + size] for start in range(0, len(locals_), size)]


def _as_person(local: Local) -> Person:
    """Return a character whom no tracker found as one of the cast, without tracklets."""
    return Person(person_id=local.local_id, tracklets=(), shots=local.shots)


def _as_local(entity: Entity) -> Local:
    return Local(
        local_id=entity.label, kind=entity.kind, name=entity.name, looks=entity.description,
        shots=entity.shots,
    )  # fmt: skip


async def _merge(
    tools: Tools,
    film: Film,
    cast: Sequence[Person],
    locals_: Sequence[Local],
) -> tuple[Merged, list[str]]:
    """Return what the model makes of people and local entities; nothing is asked where there are none."""
    settings = tools.own(Settings)
    by = public_name(settings)
    if not cast and not locals_:
        return Merged((), {}, (), ()), []
    answer = await attempt(
        tools,
        "entities/merge_entities",
        lambda reply: read_identities(reply, cast, locals_, by, film.numbers, film.proposed),
        cast=[_person(person, film) for person in cast],
        locals=[
            {"id": local.local_id, "name": local.name, "looks": local.looks, "shots": list(local.shots)}
            for local in locals_
        ],
    )
    if isinstance(answer, Drafted):
        return answer.value, [answer.maker]
    if answer.code != REHEARSED:
        raise answer
    # What is asked next is to be known in a rehearsal, too.
    return unmerged(cast, locals_, film.numbers, film.proposed), []


def _person(person: Person, film: Film) -> Json:
    notes = (note for registry in film.registries for note in registry.persons)
    looks = [note.looks for note in notes if note.person == person.person_id and note.looks]
    if (local := film.proposed.get(person.person_id)) is not None:
        looks = [f"{local.name}: {local.looks}"]
    return {"person": person.person_id, "shots": list(person.shots), "looks": looks}


def _spare(entity: Entity) -> str:
    number = int(entity.label.rpartition(" ")[2])
    if entity.kind == "character":
        return person_name(number)
    if entity.kind == "location":
        return f"Place {number}"
    return f"the thing numbered {number}"


def _with_one_place(entities: Sequence[Entity]) -> tuple[list[Entity], list[Repair]]:
    """Return entities of which no two places have one shot: the place with more shots keeps it."""
    places = [entity for entity in entities if entity.kind == "location"]
    owner: dict[int, Entity] = {}
    for location in sorted(places, key=lambda entity: -len(entity.shots)):
        for shot in location.shots:
            owner.setdefault(shot, location)
    repairs, made = [], []
    for entity in entities:
        lost = [
            shot for shot in entity.shots if entity.kind == "location" and owner[shot].label != entity.label
        ]
        repairs += [
            noted("several-places", f"{owner[shot].name} stays, {entity.name} goes", "dropped", shot)
            for shot in lost
        ]
        made.append(without_slots(entity, lost))
    return made, repairs


async def _looked_for(
    tools: Tools, film: Film, entities: Sequence[Entity]
) -> tuple[list[Entity], list[Repair], list[Drafted[tuple[dict[int, Seen], list[Repair]]] | NoAnswer]]:
    """Return entities that are scheduled where a model sees them again; without an answer as they were."""
    settings = tools.own(Settings)
    asked: list[tuple[list[int], list[Entity]]] = []
    for places in chunks_of(len(film.numbers), settings.chunk):
        shots = [film.numbers[index] for index in places]
        shown = [entity for entity in entities if not entity.persons and set(entity.shots) & set(shots)]
        if shown:
            asked.append((shots, shown))
    answers = await asyncio.gather(*(_look(tools, film, shots, shown) for shots, shown in asked))
    made = {entity.label: entity for entity in entities}
    repairs: list[Repair] = []
    for (shots, shown), answer in zip(asked, answers, strict=True):
        if not isinstance(answer, Drafted):
            said = f"shots {shots[0]} to {shots[-1]} were not looked at again: {why(answer)}"
            repairs.append(noted("unverified", said, "left"))
            continue
        seen, strange = answer.value
        repairs += strange
        for shot in shots:
            _take_seen(made, repairs, shot, seen[shot], shown)
    return list(made.values()), repairs, list(answers)


async def _look(
    tools: Tools, film: Film, shots: Sequence[int], shown: Sequence[Entity]
) -> Drafted[tuple[dict[int, Seen], list[Repair]]] | NoAnswer:
    numbers = {entity.label: number for number, entity in enumerate(shown, 1)}
    return await attempt(
        tools,
        "entities/check_registry",
        lambda reply: read_seen(reply, shots, len(shown)),
        frames_of(film, shots),
        entities=[
            {
                "number": numbers[entity.label],
                "kind": entity.kind,
                "name": entity.name,
                "looks": entity.description,
            }
            for entity in shown
        ],
        shots=[
            {"shot": shot, "entries": [numbers[entity.label] for entity in shown if shot in entity.shots]}
            for shot in shots
        ],
    )


def _take_seen(
    made: dict[str, Entity], repairs: list[Repair], shot: int, seen: Seen, shown: Sequence[Entity]
) -> None:
    """Schedule in one shot what is seen in it; of places only one, and none is taken away for nothing."""
    others = dict(seen.contradicted)
    inside = {shown[number - 1].label for number in seen.entries if number not in others}
    places = [entity.label for entity in shown if entity.kind == "location" and entity.label in inside]
    scheduled = [
        entity.label for entity in shown if entity.kind == "location" and shot in made[entity.label].shots
    ]
    kept = next((label for label in scheduled if label in places), places[0] if places else None)
    for number, entity in enumerate(shown, 1):
        label, name = entity.label, entity.name
        there = shot in made[label].shots
        wanted = label == kept if entity.kind == "location" else label in inside
        if entity.kind == "location" and kept is None and number not in others:
            continue
        if there and not wanted:
            why_not = f"the frames contradict it: {others[number]}" if number in others else "it is not seen"
            repairs.append(noted("not-seen", f"{name}: {why_not}", "dropped", shot, label))
            made[label] = without_slots(made[label], [shot])
        elif wanted and not there:
            repairs.append(noted("seen-besides", f"{name} is seen, too", "added", shot, label))
            made[label] = with_slots(made[label], [shot])


def read_seen(reply: Json, numbers: Sequence[int], entries: int) -> tuple[dict[int, Seen], list[Repair]]:
    """Return what is seen in each shot, and what the reply says of entries that there are not.

    ``entries``: how many entries there are, numbered from 1.
    """
    made: dict[int, Seen] = {}
    repairs: list[Repair] = []
    for entry in by_number(reply["shots"], "shot", numbers, "shots"):
        number = entry["shot"]
        others = [(against["entity"], tidy(against["why"])[:200]) for against in entry["contradicted"]]
        for strange in sorted(
            {*entry["seen"], *(number for number, _ in others)} - set(range(1, entries + 1))
        ):
            repairs.append(noted("unknown-entity", f"entry {strange} is not there", "dropped", number))
        made[number] = Seen(
            tuple(dict.fromkeys(number for number in entry["seen"] if 1 <= number <= entries)),
            tuple((number, said) for number, said in others if 1 <= number <= entries),
        )
    return made, repairs


STEP = Step(
    id="entities/merge_entities",
    version=2,
    writes=("identities",),
    by="merged_by",
    reads=("shots", "cast", "views", "local_registries"),
    sketch=Film.of,
    rules=_rules,
    ask=merge_chunks,
    asks=("entities/merge_entities", "entities/check_registry"),
    settings=Settings,
)
