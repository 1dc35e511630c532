"""Stages: what a video or an episode is told with, part by part; each is one Step."""

import asyncio
import re
from collections.abc import Mapping, Sequence

from pydantic import Field

from ...engine.stage import NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..step import Drafted, PlannerSettings, Problems, Step, by_number
from .list_entities import (
    Episode,
    Film,
    accounts_of,
    chunks_of,
    episode_of,
)
from .names import Entity, EntityKind, Repair, Script, ScriptShot, joined
from .pictures import Shown, action_of_reply, attempt, check_english, maker_of, noted, tidy, why

# -- The script of a whole video: scenes, which shots begin anew, and a plain action for each

Lines = Sequence[tuple[bool, bool, str]]
"""For each shot whether a scene begins, whether it goes on from the one before, and its action."""


class ScriptSettings(PlannerSettings):
    at_once: int = Field(default=24, ge=1, le=200, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


def _rules_script(film: Film, settings: ScriptSettings) -> Json:
    """Return a scene for each stay at a place; a shot goes on where somebody of the one before is seen.

    Where neighbours show nobody, a shot at the same place goes on, too.
    """
    shots: list[ScriptShot] = []
    scene, before = 0, None
    for number in film.numbers:
        here = [entity for entity in film.entities if number in entity.shots]
        rules = {entity.label for entity in here if entity.kind == "location"}
        people = {entity.label for entity in here if entity.kind == "character"}
        same = before is not None and rules == before[0]
        goes_on = same and before is not None and (bool(people & before[1]) or people == before[1])
        scene += not same
        shots.append(ScriptShot(number=number, scene=scene, cut=not goes_on, action=action_of(here)))
        before = (rules, people)
    return Script(overview="", shots=tuple(shots)).as_json()


def action_of(entities: Sequence[Entity]) -> str:
    """Return a plain sentence about what a shot shows; what it says is what is scheduled."""
    names = {
        kind: [entity.name for entity in entities if entity.kind == kind] for kind in ("location", "object")
    }
    seen = [entity.name for entity in entities if entity.kind == "character"] + names["object"]
    where = joined(names["location"])
    if not seen:
        return f"{where} is seen, and nobody in it." if where else "Nobody is seen."
    said = f"{joined(seen)} {'is' if len(seen) == 1 else 'are'} seen."
    return f"At {where}, {said}" if where else f"{said[:1].upper()}{said[1:]}"


async def tell_film(tools: Tools, film: Film) -> Drafted[Json]:
    """Return scenes, cut flags and plain actions; where a part has no answer, what is scheduled is told."""
    settings = tools.own(ScriptSettings)
    accounts, numbers, entities = accounts_of(film.registries), film.numbers, film.entities
    shown = {shot: [entity for entity in entities if shot in entity.shots] for shot in numbers}
    persons = {person: entity.name for entity in entities for person in entity.persons}
    known: list[Json] = [
        {
            "shot": shot,
            "account": accounts.get(shot, ""),
            "scheduled": [entity.name for entity in shown[shot]],
            "people": {
                person.person_id: persons[person.person_id]
                for person in film.people_in(shot)
                if person.person_id in persons
            },
        }
        for shot in numbers
    ]
    parts = chunks_of(len(numbers), settings.at_once)
    answers = await asyncio.gather(*(_tell_part(tools, known, part, shown) for part in parts))
    repairs: list[Repair] = []
    lines: list[tuple[bool, bool, str]] = []
    for part, answer in zip(parts, answers, strict=True):
        if isinstance(answer, Drafted):
            lines += answer.value
            continue
        for index in part:
            lines.append((False, False, action_of(shown[numbers[index]])))
            repairs.append(
                noted("untold", f"what is scheduled is told: {why(answer)}", "left", numbers[index])
            )
    script = Script(overview="", shots=_scenes(numbers, lines), repairs=tuple(repairs))
    return Drafted(script.as_json(), maker_of(answers))


async def _tell_part(
    tools: Tools, known: Sequence[Json], part: range, shown: Mapping[int, Sequence[Entity]]
) -> Drafted[list[tuple[bool, bool, str]]] | NoAnswer:
    settings = tools.own(ScriptSettings)
    before, here, after = around(known, part, settings.context)
    numbers = [line["shot"] for line in here]
    labels = {entity.label: entity for number in numbers for entity in shown[number]}
    return await attempt(
        tools,
        "entities/write_script",
        lambda reply: read_script(reply, numbers),
        after=after,
        before=before,
        entities=[sheet_of(entity) for entity in labels.values()],
        shots=here,
    )


def around(known: Sequence[Json], part: range, context: int) -> tuple[list[Json], list[Json], list[Json]]:
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


def sheet_of(entity: Entity) -> Json:
    """Return an entity as prompts list it."""
    return {"kind": entity.kind, "name": entity.name, "looks": entity.description}


def read_script(reply: Json, numbers: Sequence[int]) -> list[tuple[bool, bool, str]]:
    """Return for each shot whether a scene begins, whether it goes on from the one before, and its action."""
    problems = Problems()
    check_english(reply, problems)
    made = []
    for entry in by_number(reply["shots"], "shot", numbers, "shots"):
        action = action_of_reply(entry["action"], f"shot {entry['shot']}", problems)
        made.append((bool(entry["new_scene"]), bool(entry["goes_on"]), action))
    problems.settle()
    return made


WRITE_SCRIPT = Step(
    id="entities/write_script",
    version=1,
    writes=("draft",),
    by="draft_by",
    reads=("shots", "cast", "views", "local_registries", "identities"),
    sketch=Film.of,
    rules=_rules_script,
    ask=tell_film,
    settings=ScriptSettings,
)


# -- The story of an episode in two to four sentences, from the actions of its shots

LONGEST_OVERVIEW = 160


def _rules_overview(episode: Episode, settings: PlannerSettings) -> Json:
    """Return how many shots there are, where, and who is seen in how many."""
    places = [entity.name for entity in episode.entities if entity.kind == "location"]
    people = [entity for entity in episode.entities if entity.kind == "character"]
    count = len(episode.numbers)
    where = f" at {joined(places)}" if places else ""
    seen = [f"{entity.name} in {len(entity.shots)}" for entity in people]
    seen[:1] = [f"{person.name} is seen in {_shots(len(person.shots))}" for person in people[:1]]
    said = joined(seen) if people else "Nobody is seen"
    return f"This episode has {_shots(count)}{where}. {said}."


def _shots(count: int) -> str:
    return "1 shot" if count == 1 else f"{count} shots"


def _show_overview(episode: Episode, settings: PlannerSettings) -> Json:
    return {
        "entities": [sheet_of(entity) for entity in episode.entities],
        "shots": [shot.action for shot in episode.script.shots],
    }


def read_overview(reply: Json) -> str:
    problems = Problems()
    check_english(reply, problems)
    text = tidy(reply["overview"])
    words = len(text.split())
    if not normalize_answer(text) or words > LONGEST_OVERVIEW:
        problems.add(f"the overview has {words} words; write two to four sentences")
    problems.settle()
    return text


WRITE_OVERVIEW = Step(
    id="entities/write_overview",
    version=1,
    writes=("overview",),
    by="overview_by",
    reads=("entities", "written", "pictures"),
    sketch=episode_of,
    rules=_rules_overview,
    show=_show_overview,
    read=lambda reply, episode, settings: read_overview(reply),
)


# -- What each entity of an episode looks like, for generators
# Faces and demographics of characters, without what they do and without camera words; visual properties of
# objects; space and atmosphere of locations (EntityBench, section 3.1).

_PROMPTS: Mapping[EntityKind, str] = {
    "character": "entities/polish_characters",
    "location": "entities/polish_locations",
    "object": "entities/polish_objects",
}


LONGEST_DESCRIPTION = 60
"""Words of a description; as the longest of the release."""
# A thing may have a frame or be a camera; what these words say is of the picture that was taken.
_CAMERA = re.compile(
    r"\b(close-?up|zoom(s|ed|ing)? (in|out)|in (the )?frame|(the|this) (camera|shot|video|footage|benchmark))"
    r"\b",
    re.IGNORECASE,
)


class DescriptionSettings(PlannerSettings):
    at_once: int = Field(default=12, ge=1, le=100, description="Entities that a model describes at once.")
    pictures: int = Field(default=1, ge=0, le=4, description="Pictures of each that it is shown.")


def _rules_descriptions(episode: Episode, settings: DescriptionSettings) -> Json:
    texts = {entity.label: entity.description for entity in episode.entities}
    return {"described": texts, "description_repairs": []}


async def describe(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return label -> description, and what could not be described anew and keeps what was known."""
    settings = tools.own(DescriptionSettings)
    batches = [
        same[part.start : part.stop]
        for kind in _PROMPTS
        if (same := [entity for entity in episode.entities if entity.kind == kind])
        for part in chunks_of(len(same), settings.at_once)
    ]
    answers = await asyncio.gather(*(_describe_some(tools, episode, batch) for batch in batches))
    texts: dict[str, str] = {}
    repairs: list[Json] = []
    for batch, answer in zip(batches, answers, strict=True):
        if isinstance(answer, Drafted):
            texts.update(zip((entity.label for entity in batch), answer.value, strict=True))
            continue
        for entity in batch:
            texts[entity.label] = entity.description
            said = f"{entity.name} keeps the first description: {why(answer)}"
            repairs.append(noted("undescribed", said, "left", None, entity.label).as_json())
    return Drafted({"described": texts, "description_repairs": repairs}, maker_of(answers))


async def _describe_some(
    tools: Tools, episode: Episode, batch: Sequence[Entity]
) -> Drafted[list[str]] | NoAnswer:
    settings = tools.own(DescriptionSettings)
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


def read_descriptions(reply: Json, entities: Sequence[Entity]) -> list[str]:
    """Return the description of each entity, with a full stop."""
    problems = Problems()
    check_english(reply, problems)
    made: list[str] = []
    numbers = range(1, len(entities) + 1)
    for entry in by_number(reply["entities"], "number", numbers, "entities"):
        text = tidy(entry["description"])
        words, where = len(text.split()), f"number {entry['number']}"
        if not normalize_answer(text):
            problems.add(f"{where}: the description says nothing")
        elif words > LONGEST_DESCRIPTION:
            problems.add(f"{where}: {words} words; write twelve to thirty")
        elif camera := _CAMERA.search(text):
            problems.add(f"{where}: the description says {camera[0]!r}; leave camera and footage out")
        elif text.rstrip(".") in (other.rstrip(".") for other in made):
            problems.add(f"{where}: the same description as another; tell the two apart")
        made.append(text if text.endswith((".", "!", "?")) else f"{text}.")
    problems.settle()
    return made


POLISH_DESCRIPTIONS = Step(
    id="entities/polish_descriptions",
    version=1,
    writes=("described", "description_repairs"),
    by="described_by",
    reads=("entities", "written", "pictures"),
    sketch=episode_of,
    rules=_rules_descriptions,
    ask=describe,
    asks=tuple(_PROMPTS.values()),
    settings=DescriptionSettings,
)


# -- The actions of an episode told in full: who does what with whom, with every entity named
# A model is given the registry, the story, and a window of neighbouring shots (EntityBench, section 3.1).
# Rules leave the script as it is.


class ActionSettings(PlannerSettings):
    at_once: int = Field(default=8, ge=1, le=100, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


async def tell_in_full(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return the script with its actions told in full; a part without an answer keeps them, noted."""
    settings = tools.own(ActionSettings)
    known = [shot_told(episode, shot) for shot in episode.script.shots]
    parts = chunks_of(len(known), settings.at_once)
    answers = await asyncio.gather(*(_enrich(tools, episode, known, part) for part in parts))
    shots: list[ScriptShot] = []
    repairs = list(episode.script.repairs)
    for part, answer in zip(parts, answers, strict=True):
        old = episode.script.shots[part.start : part.stop]
        if isinstance(answer, Drafted):
            pairs = zip(old, answer.value, strict=True)
            shots += [shot.model_copy(update={"action": action}) for shot, action in pairs]
            continue
        shots += old
        said = f"keeps its plain action: {why(answer)}"
        repairs += [noted("plain", said, "left", shot.number) for shot in old]
    script = episode.script.model_copy(update={"shots": tuple(shots), "repairs": tuple(repairs)})
    return Drafted(script.as_json(), maker_of(answers))


async def _enrich(
    tools: Tools, episode: Episode, known: Sequence[Json], part: range
) -> Drafted[list[str]] | NoAnswer:
    settings = tools.own(ActionSettings)
    before, here, after = around(known, part, settings.context)
    numbers = [line["shot"] for line in here]
    shown = [entity for entity in episode.entities if set(entity.shots) & set(numbers)]
    return await attempt(
        tools,
        "entities/enrich_actions",
        lambda reply: read_actions(reply, numbers),
        after=after,
        before=before,
        entities=[sheet_of(entity) for entity in shown],
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


def read_actions(reply: Json, numbers: Sequence[int]) -> list[str]:
    problems = Problems()
    check_english(reply, problems)
    made = [
        action_of_reply(entry["action"], f"shot {entry['shot']}", problems)
        for entry in by_number(reply["shots"], "shot", numbers, "shots")
    ]
    problems.settle()
    return made


ENRICH_ACTIONS = Step(
    id="entities/enrich_actions",
    version=1,
    writes=("enriched",),
    by="enriched_by",
    reads=("entities", "written", "pictures", "overview", "described"),
    sketch=episode_of,
    rules=lambda episode, settings: episode.script.as_json(),
    ask=tell_in_full,
    settings=ActionSettings,
)
