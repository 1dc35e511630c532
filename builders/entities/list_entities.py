"""Stage: local registries: what is seen in each chunk of a video's shots, and what happens there.

A reply is taken as far as it can be true: a shot or person that was not shown is left out, and what is named
twice becomes one; each such case is noted. Rules list places only: shots whose colours are alike are at one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import Field, model_validator

from ...engine.stage import Item, NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ...schemas.values import Own
from ..step import LONGEST_TEXT, Drafted, PlannerSettings, Problems, Step
from .names import Entity, EntityKind, Merge, Person, Repair, Script, place_name
from .pictures import Shown, Views, attempt, check_english, distance, maker_of, noted, why

# -- A video and an episode as far as they are known, as the steps that write scripts see them


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
        return tuple(shot.number for shot in self.script.shots)

    def scheduled(self, shot: int) -> list[Entity]:
        """Return what a shot shows, in the order of the registry."""
        return [entity for entity in self.entities if shot in entity.shots]

    def with_script(self, script: Script) -> "Episode":
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


# --

APART = 0.5
"""Distance of colours from which on rules tell places apart."""
LONG = Field(
    default=400_000, ge=1, description="A request estimated to be longer is not sent; the item fails."
)


T = TypeVar("T")
MOST = 24
"""Objects, and locations, of one chunk at most."""
_LISTS: Mapping[EntityKind, str] = {"location": "locations", "object": "objects"}


class Settings(PlannerSettings):
    max_input_tokens: int = LONG
    chunk: int = Field(default=12, ge=2, le=100, description="Shots that a model is shown at once.")
    overlap: int = Field(default=2, ge=0, le=50, description="Shots that a chunk shares with the one before.")
    crops: int = Field(default=2, ge=0, le=8, description="Crops of each person that a model is shown.")
    apart: float = Field(
        default=APART, gt=0, le=1, description="Distance of colours from which on rules tell places apart."
    )
    characters: bool = Field(
        default=False, exclude_if=lambda value: value is False,
        description="Whether a model names characters whom no tracker found, such as animals and creatures.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _chunks_go_on(self) -> "Settings":
        if self.overlap >= self.chunk:
            raise ValueError("overlap must be smaller than chunk")
        return self


def _rules(film: Film, settings: Settings) -> Json:
    """Return one registry of the whole film, with its places."""
    colours = [film.views.of_shot(number).colours for number in film.numbers]
    shots: dict[int, list[int]] = {}
    for number, spot in zip(film.numbers, places_of(colours, settings.apart), strict=True):
        shots.setdefault(spot, []).append(number)
    places = [
        Local(
            local_id=f"c01.location{spot}", kind="location", name=place_name(spot), shots=tuple(where),
            looks=f"A place in mostly {_tone(film, where)} colours, {place_name(spot)} of this video.",
        )
        for spot, where in shots.items()
    ]  # fmt: skip
    registry = LocalRegistry(chunk=1, shots=film.numbers, entities=tuple(places))
    return [registry.as_json()]


def _tone(film: Film, shots: Sequence[int]) -> str:
    """Return the colour word of most shots; of as many, the first by the alphabet."""
    words = Counter(tone for number in shots if (tone := film.views.of_shot(number).tone) is not None)
    return min(words, key=lambda word: (-words[word], word), default="unknown")


def places_of(colours: Sequence[Sequence[int]], apart: float) -> list[int]:
    """Return the number of each shot's place, numbered from 1 by first appearance.

    In order of the shots, each joins the place whose mean colours are nearest, if they are less than
    ``apart`` away, else it begins a new one; among equals the earlier place is taken. A shot without colours
    joins the one before it.

    ``colours``: histogram of each shot, as :func:`..colours.histogram` gives it; may be empty. ``apart``:
    distance from which on places differ, 0 to 1.
    """
    sums: list[list[int]] = []
    counts: list[int] = []
    numbers: list[int] = []
    for shot in colours:
        if not shot and numbers:
            numbers.append(numbers[-1])
            continue
        means = [[value / count for value in total] for total, count in zip(sums, counts, strict=True)]
        far = [distance(shot, [round(value) for value in mean]) for mean in means]
        nearest = min(range(len(far)), key=lambda index: (far[index], index), default=None)
        if nearest is None or far[nearest] >= apart:
            sums.append(list(shot))
            counts.append(1)
            nearest = len(sums) - 1
        else:
            sums[nearest] = [a + b for a, b in zip(sums[nearest], shot, strict=True)]
            counts[nearest] += 1
        numbers.append(nearest + 1)
    return numbers


async def list_chunks(tools: Tools, film: Film) -> Drafted[Json]:
    """Return the registry of each chunk, all asked for at once; one without an answer is empty and noted."""
    settings = tools.own(Settings)
    chunks = [
        [film.numbers[index] for index in places]
        for places in chunks_of(len(film.numbers), settings.chunk, settings.overlap)
    ]
    answers = await asyncio.gather(
        *(_list_chunk(tools, film, number, shots) for number, shots in enumerate(chunks, 1))
    )
    registries = [
        answer.value if isinstance(answer, Drafted) else _unlisted(number, shots, answer)
        for number, (shots, answer) in enumerate(zip(chunks, answers, strict=True), 1)
    ]
    if settings.characters:
        more = await asyncio.gather(
            *(_propose(tools, film, registry, settings.overlap) for registry in registries)
        )
        registries, makers = [registry for registry, _ in more], [maker for _, maker in more]
        maker = "; ".join(dict.fromkeys(name for name in (maker_of(answers), *makers) if name))
        return Drafted([registry.as_json() for registry in registries], maker)
    return Drafted([registry.as_json() for registry in registries], maker_of(answers))


async def _propose(
    tools: Tools, film: Film, registry: LocalRegistry, overlap: int
) -> tuple[LocalRegistry, str]:
    """Return a registry with the characters whom no tracker found, and who named them.

    Shots that are in the chunk before, too, are left to that one: whoever is seen in one shot is not one.
    """
    shots = registry.shots[overlap if registry.chunk > 1 else 0 :]
    found: list[Repair] = []
    answer = await _ask_of_chunk(
        tools, film, "entities/list_characters", shots,
        lambda reply: _entities(reply["characters"], registry.chunk, "character", shots, found),
    )  # fmt: skip
    if not isinstance(answer, Drafted):
        said = f"who else acts in shots {shots[0]} to {shots[-1]} is not listed: {why(answer)}"
        notes = (*registry.repairs, noted("unlisted", said, "left"))
        return registry.model_copy(update={"repairs": notes}), ""
    update = {"entities": (*registry.entities, *answer.value), "repairs": (*registry.repairs, *found)}
    return registry.model_copy(update=update), answer.maker


async def _list_chunk(
    tools: Tools, film: Film, number: int, shots: Sequence[int]
) -> Drafted[LocalRegistry] | NoAnswer:
    ids = [person.person_id for person in film.cast if set(person.shots) & set(shots)]
    return await _ask_of_chunk(
        tools, film, "entities/list_entities", shots, lambda reply: read_registry(reply, number, shots, ids)
    )


async def _ask_of_chunk(
    tools: Tools, film: Film, prompt: str, shots: Sequence[int], read: Callable[[Json], T]
) -> Drafted[T] | NoAnswer:
    """Ask about the frames of some shots and the crops of the people in them."""
    settings = tools.own(Settings)
    ids = [person.person_id for person in film.cast if set(person.shots) & set(shots)]
    crops = [Shown(f"Person {name}", film.views.of_person(name).files[: settings.crops]) for name in ids]
    people = [
        {"shot": shot, "people": [person.person_id for person in film.people_in(shot)]} for shot in shots
    ]
    return await attempt(
        tools, prompt, read, [*frames_of(film, shots), *crops], persons=ids, shots=people
    )  # fmt: skip


def frames_of(film: Film, shots: Sequence[int]) -> list[Shown]:
    """Return the keyframes of shots, as a model is shown them."""
    return [Shown(f"Shot {shot}", film.views.of_shot(shot).files) for shot in shots]


def _unlisted(number: int, shots: Sequence[int], failure: NoAnswer) -> LocalRegistry:
    said = f"shots {shots[0]} to {shots[-1]} are not listed: {why(failure)}"
    return LocalRegistry(chunk=number, shots=tuple(shots), repairs=(noted("unlisted", said, "left"),))


def read_registry(reply: Json, chunk: int, shots: Sequence[int], persons: Sequence[str]) -> LocalRegistry:
    repairs: list[Repair] = []
    problems = Problems()
    check_english(reply, problems)
    accounts = _accounts(reply["shots"], shots, repairs)
    if not accounts:
        problems.add(f"no account of any shot; the shots are {', '.join(map(str, shots))}")
    problems.settle()
    return LocalRegistry(
        chunk=chunk,
        shots=tuple(shots),
        persons=_persons(reply["persons"], persons, repairs),
        entities=tuple(
            entity
            for kind, listed in _LISTS.items()
            for entity in _entities(reply[listed], chunk, kind, shots, repairs)
        ),
        accounts=accounts,
        repairs=tuple(repairs),
    )


def _accounts(entries: Sequence[Json], shots: Sequence[int], repairs: list[Repair]) -> tuple[Account, ...]:
    accounts: dict[int, str] = {}
    for entry in entries:
        number, text = entry["shot"], normalize_text(entry["account"])
        if number not in shots:
            repairs.append(
                noted("unknown-shot", f"an account of shot {number}, which was not shown", "dropped")
            )
        elif normalize_answer(text):
            accounts.setdefault(number, text[:LONGEST_TEXT])
    missing = [number for number in shots if number not in accounts]
    repairs += [
        noted("no-account", "the model told nothing of the shot", "left", number) for number in missing
    ]
    return tuple(Account(shot=number, text=accounts[number]) for number in shots if number in accounts)


def _persons(
    entries: Sequence[Json], persons: Sequence[str], repairs: list[Repair]
) -> tuple[PersonNote, ...]:
    looks: dict[str, str | None] = {}
    for entry in entries:
        person, said_looks = entry["person"].strip(), entry["looks"]
        if person not in persons:
            said = f"a person {person[:40]!r}, who was not shown"
            repairs.append(noted("unknown-person", said, "dropped"))
        elif person in looks:
            repairs.append(noted("named-twice", f"{person} is described twice", "dropped"))
        else:
            looks[person] = None if said_looks is None else normalize_text(said_looks)[:LONGEST_TEXT]
    for person in persons:
        if person in looks and looks[person] is None:
            repairs.append(noted("unseen-person", f"no picture shows {person} there", "dropped"))
    return tuple(PersonNote(person=person, looks=looks[person]) for person in persons if person in looks)


def _entities(
    entries: Sequence[Json], chunk: int, kind: EntityKind, shots: Sequence[int], repairs: list[Repair]
) -> list[Local]:
    entities: dict[str, tuple[str, str, set[int]]] = {}
    for entry in entries:
        name, looks = normalize_text(entry["name"]), normalize_text(entry["looks"])[:LONGEST_TEXT]
        key = normalize_answer(name)
        inside = {number for number in entry["shots"] if number in shots}
        for number in sorted(set(entry["shots"]) - inside):
            said = f"{name[:80]} in shot {number}, which was not shown"
            repairs.append(noted("unknown-shot", said, "dropped"))
        if not key or not inside:
            said = f"{name[:80]!r}, which is in no shot" if key else f"a {kind} without a name"
            repairs.append(noted("no-shot" if key else "no-name", said, "dropped"))
        elif key in entities:
            repairs.append(noted("named-twice", f"{name[:80]} is listed twice", "merged"))
            entities[key][2].update(inside)
        elif len(entities) == MOST:
            repairs.append(noted("too-many", f"{name[:80]}, beyond {MOST} of one kind", "dropped"))
        else:
            entities[key] = (name[:80], looks, inside)
    return [
        Local(
            local_id=f"c{chunk:02d}.{kind}{number}", kind=kind, name=name, looks=looks,
            shots=tuple(sorted(inside)),
        )
        for number, (name, looks, inside) in enumerate(entities.values(), 1)
    ]  # fmt: skip


STEP = Step(
    id="entities/list_entities",
    version=2,
    writes=("local_registries",),
    by="listed_by",
    reads=("shots", "cast", "views"),
    sketch=Film.of,
    rules=_rules,
    ask=list_chunks,
    asks=("entities/list_entities", "entities/list_characters"),
    settings=Settings,
)
