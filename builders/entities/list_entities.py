"""Stage: local registries: what is seen in each chunk of a video's shots, and what happens there.

A reply is taken as far as it can be true: a shot or person that was not shown is left out, and what is named
twice becomes one; each such case is noted. Rules list places only: shots whose colours are alike are at one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import Field, model_validator

from ...engine.stage import NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer, normalize_text
from ..step import LONGEST_TEXT, Drafted, PlannerSettings, Problems, Step
from .drafts import EntityKind, Repair
from .films import (
    Account,
    Film,
    Local,
    LocalRegistry,
    PersonNote,
    chunks_of,
)
from .names import place_name
from .pictures import Shown, attempt, check_english, distance, maker_of, noted, why

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
    """Settings of the stage."""

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
    """Return the registry of a chunk."""
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
