"""Stage: what each entity of an episode looks like, for generators.

Faces and demographics of characters, without what they do and without camera words; visual properties of
objects; space and atmosphere of locations (EntityBench, section 3.1).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence

from pydantic import Field

from ...engine.stage import NoAnswer, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..replies import Drafted, Problems, by_number
from ..step import PlannerSettings, Step
from .drafts import Entity, EntityKind
from .films import (
    Episode,
    chunks_of,
    episode_of,
)
from .pictures import Shown, attempt, check_english, maker_of, noted, tidy, why

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


class Settings(PlannerSettings):
    """Settings of the stage."""

    at_once: int = Field(default=12, ge=1, le=100, description="Entities that a model describes at once.")
    pictures: int = Field(default=1, ge=0, le=4, description="Pictures of each that it is shown.")


def _rules(episode: Episode, settings: Settings) -> Json:
    texts = {entity.label: entity.description for entity in episode.entities}
    return {"described": texts, "description_repairs": []}


async def describe(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return label -> description, and what could not be described anew and keeps what was known."""
    settings = tools.own(Settings)
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
    settings = tools.own(Settings)
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


STEP = Step(
    id="entities/polish_descriptions",
    version=1,
    writes=("described", "description_repairs"),
    by="described_by",
    reads=("entities", "written", "pictures"),
    sketch=episode_of,
    rules=_rules,
    ask=describe,
    asks=tuple(_PROMPTS.values()),
    settings=Settings,
)
