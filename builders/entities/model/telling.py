"""What a model tells: scenes and plain actions, the overview, descriptions, actions in full."""

import asyncio
from collections.abc import Mapping, Sequence

from ....engine.asking import NoAnswer
from ....engine.stage import Tools
from ....schemas.canonical import Json
from ...replies import Drafted
from ..drafts import Entity, EntityKind, Repair, Script, ScriptShot
from ..planner import Episode, Film
from ..registries import LocalRegistry, accounts_of, chunks_of
from ..rules.planner import action_of
from ..settings import EnrichSettings, PolishSettings, TellSettings
from .asking import Shown, ask, attempt, maker_of, why
from .read_registry import noted
from .read_texts import read_actions, read_descriptions, read_overview, read_script

_PROMPTS: Mapping[EntityKind, str] = {
    "character": "entities/polish_characters",
    "location": "entities/polish_locations",
    "object": "entities/polish_objects",
}
Lines = Sequence[tuple[bool, bool, str]]
"""For each shot whether a scene begins, whether it goes on from the one before, and its action."""


async def tell_film(
    tools: Tools, film: Film, registries: Sequence[LocalRegistry], entities: Sequence[Entity]
) -> Drafted[Json]:
    """Return scenes, cut flags and plain actions; where a part has no answer, what is scheduled is told."""
    settings = tools.settings
    assert isinstance(settings, TellSettings)
    accounts, numbers = accounts_of(registries), film.numbers
    shown = {shot: [one for one in entities if shot in one.shots] for shot in numbers}
    persons = {person: one.name for one in entities for person in one.persons}
    known: list[Json] = [
        {
            "shot": shot,
            "account": accounts.get(shot, ""),
            "scheduled": [one.name for one in shown[shot]],
            "people": {
                person.person_id: persons[person.person_id]
                for person in film.people_in(shot)
                if person.person_id in persons
            },
        }
        for shot in numbers
    ]
    parts = chunks_of(len(numbers), settings.at_once)
    told = await asyncio.gather(*(_tell_part(tools, known, part, shown) for part in parts))
    repairs: list[Repair] = []
    lines: list[tuple[bool, bool, str]] = []
    for part, one in zip(parts, told, strict=True):
        if isinstance(one, Drafted):
            lines += one.value
            continue
        for place in part:
            lines.append((False, False, action_of(shown[numbers[place]])))
            repairs.append(noted("untold", f"what is scheduled is told: {why(one)}", "left", numbers[place]))
    script = Script(overview="", shots=_scenes(numbers, lines), repairs=tuple(repairs))
    return Drafted(script.as_json(), maker_of(told))


async def _tell_part(
    tools: Tools, known: Sequence[Json], part: range, shown: Mapping[int, Sequence[Entity]]
) -> Drafted[list[tuple[bool, bool, str]]] | NoAnswer:
    settings = tools.settings
    assert isinstance(settings, TellSettings)
    before, here, after = _around(known, part, settings.context)
    numbers = [one["shot"] for one in here]
    labels = {entity.label: entity for number in numbers for entity in shown[number]}
    return await attempt(
        tools,
        "entities/write_script",
        lambda reply: read_script(reply, numbers),
        after=after,
        before=before,
        entities=[_sheet(entity) for entity in labels.values()],
        shots=here,
    )


def _around(known: Sequence[Json], part: range, context: int) -> tuple[list[Json], list[Json], list[Json]]:
    """Return what stands before a part, in it, and after it."""
    start, stop = part.start, part.stop
    return (
        list(known[max(0, start - context) : start]),
        list(known[start:stop]),
        list(known[stop : stop + context]),
    )


def _scenes(numbers: Sequence[int], lines: Lines) -> tuple[ScriptShot, ...]:
    """Return the shots with scenes numbered from 1; what begins a scene is a cut."""
    shots: list[ScriptShot] = []
    scene = 0
    for number, (begins, goes_on, action) in zip(numbers, lines, strict=True):
        new = begins or not shots
        scene += new
        shots.append(ScriptShot(number=number, scene=scene, cut=new or not goes_on, action=action))
    return tuple(shots)


def _sheet(entity: Entity) -> Json:
    return {"kind": entity.kind, "name": entity.name, "looks": entity.description}


async def tell_story(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return the overview."""
    return await ask(
        tools,
        "entities/write_overview",
        read_overview,
        entities=[_sheet(entity) for entity in episode.entities],
        shots=[shot.action for shot in episode.script.shots],
    )


async def describe(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return label -> description, and what could not be described anew and keeps what was known."""
    settings = tools.settings
    assert isinstance(settings, PolishSettings)
    batches = [
        same[part.start : part.stop]
        for kind in _PROMPTS
        if (same := [entity for entity in episode.entities if entity.kind == kind])
        for part in chunks_of(len(same), settings.at_once)
    ]
    told = await asyncio.gather(*(_describe_some(tools, episode, batch) for batch in batches))
    texts: dict[str, str] = {}
    repairs: list[Json] = []
    for batch, one in zip(batches, told, strict=True):
        if isinstance(one, Drafted):
            texts.update(zip((entity.label for entity in batch), one.value, strict=True))
            continue
        for entity in batch:
            texts[entity.label] = entity.description
            said = f"{entity.name} keeps the first description: {why(one)}"
            repairs.append(noted("undescribed", said, "left", None, entity.label).as_json())
    return Drafted([texts, repairs], maker_of(told))


async def _describe_some(
    tools: Tools, episode: Episode, batch: Sequence[Entity]
) -> Drafted[list[str]] | NoAnswer:
    settings = tools.settings
    assert isinstance(settings, PolishSettings)
    return await attempt(
        tools,
        _PROMPTS[batch[0].kind],
        lambda reply: read_descriptions(reply, batch),
        [
            Shown(f"Number {number}", _files(episode, entity, settings.pictures))
            for number, entity in enumerate(batch, 1)
        ],
        entities=[
            {"number": number, "name": entity.name, "looks": entity.description}
            for number, entity in enumerate(batch, 1)
        ],
    )


def _files(episode: Episode, entity: Entity, most: int) -> tuple[str, ...]:
    """Return pictures of an entity: crops of a person; else a frame of each of its first shots."""
    if entity.kind == "character":
        files = [name for person in entity.persons for name in episode.views.of_person(person).files]
    else:
        files = [name for shot in entity.shots for name in episode.views.of_shot(shot).files[:1]]
    return tuple(files[:most])


async def tell_in_full(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return the script with its actions told in full; a part without an answer keeps them, noted."""
    settings = tools.settings
    assert isinstance(settings, EnrichSettings)
    known = [shot_told(episode, shot) for shot in episode.script.shots]
    parts = chunks_of(len(known), settings.at_once)
    told = await asyncio.gather(*(_enrich(tools, episode, known, part) for part in parts))
    shots: list[ScriptShot] = []
    repairs = list(episode.script.repairs)
    for part, one in zip(parts, told, strict=True):
        old = episode.script.shots[part.start : part.stop]
        if isinstance(one, Drafted):
            pairs = zip(old, one.value, strict=True)
            shots += [shot.model_copy(update={"action": action}) for shot, action in pairs]
            continue
        shots += old
        said = f"keeps its plain action: {why(one)}"
        repairs += [noted("plain", said, "left", shot.number) for shot in old]
    script = episode.script.model_copy(update={"shots": tuple(shots), "repairs": tuple(repairs)})
    return Drafted(script.as_json(), maker_of(told))


async def _enrich(
    tools: Tools, episode: Episode, known: Sequence[Json], part: range
) -> Drafted[list[str]] | NoAnswer:
    settings = tools.settings
    assert isinstance(settings, EnrichSettings)
    before, here, after = _around(known, part, settings.context)
    numbers = [one["shot"] for one in here]
    shown = [one for one in episode.entities if set(one.shots) & set(numbers)]
    return await attempt(
        tools,
        "entities/enrich_actions",
        lambda reply: read_actions(reply, numbers),
        after=after,
        before=before,
        entities=[_sheet(entity) for entity in shown],
        overview=episode.script.overview,
        shots=here,
    )


def shot_told(episode: Episode, shot: ScriptShot) -> Json:
    """Return a shot as prompts show it."""
    return {
        "shot": shot.number,
        "scene": shot.scene,
        "goes_on": not shot.cut,
        "scheduled": [entity.name for entity in episode.scheduled(shot.number)],
        "action": shot.action,
    }
