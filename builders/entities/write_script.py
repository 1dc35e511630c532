"""Stage: the script of a whole video: scenes, which shots begin anew, and a plain action for each."""

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import Field

from ...engine.stage import NoAnswer, Tools
from ...schemas.canonical import Json
from ..replies import Drafted, Problems, by_number
from ..step import PlannerSettings, Step
from .drafts import Entity, Repair, Script, ScriptShot
from .films import (
    Film,
    accounts_of,
    chunks_of,
)
from .names import joined
from .pictures import action_of_reply, attempt, check_english, maker_of, noted, why

Lines = Sequence[tuple[bool, bool, str]]
"""For each shot whether a scene begins, whether it goes on from the one before, and its action."""


class Settings(PlannerSettings):
    """Settings of the stage."""

    at_once: int = Field(default=24, ge=1, le=200, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


def _rules(film: Film, settings: Settings) -> Json:
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
    settings = tools.own(Settings)
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
    settings = tools.own(Settings)
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


STEP = Step(
    id="entities/write_script",
    version=1,
    writes=("draft",),
    by="draft_by",
    reads=("shots", "cast", "views", "local_registries", "identities"),
    sketch=Film.of,
    rules=_rules,
    ask=tell_film,
    settings=Settings,
)
