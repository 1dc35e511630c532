"""A video and an episode as far as they are known, as the steps that write scripts see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from ...engine.stage import Item
from ...schemas.values import Own
from .drafts import Entity, EntityKind, Merge, Person, Repair, Script
from .pictures import Views


class Local(Own):
    """An object or a location of one chunk, or a character whom no tracker found."""

    local_id: str  # such as ``c02.object3``: number of the chunk, kind, number there
    kind: EntityKind  # location or object; character
    name: str  # as the chunk's registry calls it
    looks: str = ""  # what it looks like there
    shots: tuple[int, ...] = ()  # numbers of the shots in which it is seen, ascending


class PersonNote(Own):
    """What a person of the cast looks like in one chunk."""

    person: str
    looks: str | None  # null where no picture of the chunk shows anybody there


class Account(Own):
    """What happens in a shot, in one or two sentences."""

    shot: int
    text: str


class LocalRegistry(Own):
    """What was found in one chunk of shots."""

    chunk: int  # its number, from 1
    shots: tuple[int, ...]  # numbers of its shots
    persons: tuple[PersonNote, ...] = ()  # those of the cast who are seen in it
    entities: tuple[Local, ...] = ()  # objects, locations, and characters whom no tracker found
    accounts: tuple[Account, ...] = ()  # what happens in its shots; not all of them need one
    repairs: tuple[Repair, ...] = ()  # what was wrong with the reply, and what was done about it


def chunks_of(count: int, size: int, overlap: int = 0) -> list[range]:
    """Return the chunks of a row by place: of one size but for the last, each overlapping the one before."""
    if not 0 <= overlap < size:
        raise ValueError(f"chunks of {size} cannot overlap by {overlap}")
    starts = range(0, max(count - overlap, 1), size - overlap)
    return [range(start, min(start + size, count)) for start in starts if start < count]


def accounts_of(registries: Sequence[LocalRegistry]) -> dict[int, str]:
    """Return the account of each shot that has one: the first, where chunks overlap."""
    accounts: dict[int, str] = {}
    for registry in registries:
        for account in registry.accounts:
            if account.text:
                accounts.setdefault(account.shot, account.text)
    return accounts


@dataclass(frozen=True, slots=True)
class Film:
    """A video as far as it is known: its kept shots in order, who is in them, and pictures."""

    numbers: tuple[int, ...]  # of the kept shots, ascending
    opens: Mapping[int, str]  # number of a shot -> how it begins: ``start``, ``cut`` or ``gradual``
    cast: tuple[Person, ...]  # the people; once they were listed, those whom pictures show
    views: Views  # pictures of shots and people
    registries: tuple[LocalRegistry, ...] = ()  # what was found in its chunks, once it was listed
    entities: tuple[Entity, ...] = ()  # its entities, once they were merged

    @classmethod
    def of(cls, item: Item) -> "Film":
        """Return the film that an item with ``shots``, ``cast`` and ``views`` is, and what it has besides."""
        listed, merged = item.fields.get("local_registries", ()), item.fields.get("identities")
        registries = tuple(LocalRegistry.model_validate(registry) for registry in listed)
        shots = [entry["shot"] for entry in item["shots"]]
        return cls(
            tuple(shot["number"] for shot in shots),
            {shot["number"]: shot["opens"] for shot in shots},
            _shown([Person.model_validate(person) for person in item["cast"]], registries),
            Views.model_validate(item["views"]),
            registries,
            () if merged is None else Identities.model_validate(merged).entities,
        )

    @property
    def proposed(self) -> dict[str, Local]:
        """The characters whom no tracker found, by id, as the registries of chunks have them."""
        entities = (entity for registry in self.registries for entity in registry.entities)
        return {entity.local_id: entity for entity in entities if entity.kind == "character"}

    def people_in(self, shot: int) -> list[Person]:
        """Return who is seen in a shot, in the order of the cast."""
        return [person for person in self.cast if shot in person.shots]


def _shown(cast: Sequence[Person], registries: Sequence[LocalRegistry]) -> tuple[Person, ...]:
    """Return the people in the shots that show them; who is left in none is not there.

    A shot does not show a person where a chunk says so and none that shares the shot describes the person.
    """
    people = []
    for person in cast:
        seen: dict[bool, set[int]] = {True: set(), False: set()}
        for registry in registries:
            for note in registry.persons:
                if note.person == person.person_id:
                    seen[note.looks is not None].update(registry.shots)
        shots = tuple(shot for shot in person.shots if shot not in seen[False] - seen[True])
        if shots or not person.shots:
            people.append(person.model_copy(update={"shots": shots}))
    return tuple(people)


class Identities(Own):
    """The entities of a video, and how they came about."""

    entities: tuple[Entity, ...]  # characters, locations and objects, each numbered by first appearance
    # people whom a model took for one character, and those whom it was not allowed to
    merges: tuple[Merge, ...] = ()
    repairs: tuple[Repair, ...] = ()  # what was found on the way
    # label of an entity -> ids of the persons, or of the local entities, that it is made of
    members: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """A window of shots that becomes an episode."""

    script: Script  # its shots, in order; numbers are those of the video, scenes count from 1
    entities: tuple[Entity, ...]  # those that are scheduled in it
    views: Views  # pictures of its shots and people

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its shots."""
        return tuple(shot.number for shot in self.script.shots)

    def scheduled(self, shot: int) -> list[Entity]:
        """Return what a shot shows, in the order of the registry."""
        return [entity for entity in self.entities if shot in entity.shots]

    def with_script(self, script: Script) -> "Episode":
        """Return the episode with another script."""
        return replace(self, script=script)


def episode_of(item: Item) -> Episode:
    """Return the episode that an item is, as far as the fields go that the stage reads."""
    fields = item.fields
    written = Script.model_validate(fields.get("enriched", fields["written"]))
    script = written.model_copy(update={"overview": fields.get("overview", "")})
    entities = tuple(Entity.model_validate(entity) for entity in fields["entities"])
    texts = fields.get("described", {})
    if texts:
        entities = tuple(
            entity.model_copy(update={"description": texts.get(entity.label, entity.description)})
            for entity in entities
        )
    return Episode(script, entities, Views.model_validate(fields["pictures"]))
