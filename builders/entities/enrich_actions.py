"""Stage: the actions of an episode told in full: who does what with whom, with every entity named.

A model is given the registry, the story, and a window of neighbouring shots (EntityBench, section 3.1). Rules
leave the script as it is.
"""

import asyncio
from collections.abc import Sequence

from pydantic import Field

from ...engine.stage import NoAnswer, Tools
from ...schemas.canonical import Json
from ..replies import Drafted, Problems, by_number
from ..step import PlannerSettings, Step
from .drafts import ScriptShot
from .films import (
    Episode,
    chunks_of,
    episode_of,
)
from .pictures import action_of_reply, attempt, check_english, maker_of, noted, why
from .write_script import around, sheet_of


class Settings(PlannerSettings):
    """Settings of the stage."""

    at_once: int = Field(default=8, ge=1, le=100, description="Shots that a model writes at once.")
    context: int = Field(default=3, ge=0, le=20, description="Shots before and after that it is shown.")


async def tell_in_full(tools: Tools, episode: Episode) -> Drafted[Json]:
    """Return the script with its actions told in full; a part without an answer keeps them, noted."""
    settings = tools.own(Settings)
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
    settings = tools.own(Settings)
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
    """Return the action of each shot."""
    problems = Problems()
    check_english(reply, problems)
    made = [
        action_of_reply(entry["action"], f"shot {entry['shot']}", problems)
        for entry in by_number(reply["shots"], "shot", numbers, "shots")
    ]
    problems.settle()
    return made


STEP = Step(
    id="entities/enrich_actions",
    version=1,
    writes=("enriched",),
    by="enriched_by",
    reads=("entities", "written", "pictures", "overview", "described"),
    sketch=episode_of,
    rules=lambda episode, settings: episode.script.as_json(),
    ask=tell_in_full,
    settings=Settings,
)
