"""Stage: people of distant shots put together by a model that looks at crops; without one, as they are.

All people are shown at once, or, where they are many, the most seen ones with a part of the others at a time.
"""

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import Field, model_validator

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.problems import MediaProblem
from ...schemas.canonical import Json
from ..step import PlannerSettings
from .asking import Shown, ask
from .cluster_people import tracklets_of
from .consolidation import Proposal, Rule, consolidate
from .drafts import Person, Tracklet
from .pictures import portraits

PROMPT = "entities/consolidate_people"


class Settings(PlannerSettings):
    """Settings of the stage."""

    max_input_tokens: int = Field(
        default=400_000, ge=1, description="A request estimated to be longer is not sent; the item fails."
    )
    crops: int = Field(default=3, ge=1, le=16, description="Crops of each person that a model is shown.")
    max_side: int = Field(default=256, ge=32, le=2048, description="Longer side of a crop at most.")
    at_once: int = Field(default=40, ge=2, le=500, description="People that a model is shown at once.")
    anchors: int = Field(default=12, ge=1, le=400, description="The most seen ones, who are shown each time.")
    apart: Rule = Field(
        default="shot", description="Who stays apart: all who share a shot, or those in it at the same time."
    )

    @model_validator(mode="after")
    def _others_are_shown(self) -> "Settings":
        if self.anchors >= self.at_once:
            raise ValueError("anchors must be fewer than at_once")
        return self


SPEC = StageSpec(
    name="consolidate_people",
    version=1,
    shape="map",
    reads=("video", "shots", "people"),
    writes=("cast", "consolidation"),
    libraries=("pillow",),
    settings=Settings,
    asks=(PROMPT,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and what was proposed, made and refused."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    people = [Person.model_validate(one) for one in item["people"]]
    if not settings.models() or tools.asker is None or len(people) < 2:
        return Made({"cast": item["people"], "consolidation": _told([], [], 0)})
    tracklets = {one.tracklet_id: one for one in tracklets_of(item["shots"])}
    try:
        crops = await asyncio.to_thread(
            portraits, item["video"]["file"], people, tracklets, (settings.crops, settings.max_side),
            tools.store,
        )  # fmt: skip
    except MediaProblem as problem:
        return Failed(problem.code, str(problem))
    rounds = rounds_of(people, tracklets, settings)
    asked = await asyncio.gather(*(_ask(tools, some, crops) for some in rounds))
    made = consolidate(people, tracklets, asked, settings.apart)
    merges = [merge.as_json() for merge in made.merges]
    kept = [merge for merge in merges if merge["refused"] is None]
    refused = [merge for merge in merges if merge["refused"] is not None]
    return Made(
        {
            "cast": [person.as_json() for person in made.cast],
            "consolidation": _told(kept, refused, len(rounds)),
        }
    )


def rounds_of(
    people: Sequence[Person], tracklets: Mapping[str, Tracklet], settings: Settings
) -> list[list[Person]]:
    """Return who is shown together, in each round by first appearance."""
    if len(people) <= settings.at_once:
        return [list(people)]
    weight = {
        person.person_id: sum(len(tracklets[name].seen) for name in person.tracklets) for person in people
    }
    ordered = sorted(people, key=lambda person: (-weight[person.person_id], person.person_id))
    anchors, others = ordered[: settings.anchors], ordered[settings.anchors :]
    place = {person.person_id: at for at, person in enumerate(people)}
    step = settings.at_once - settings.anchors
    return [
        sorted([*anchors, *others[at : at + step]], key=lambda person: place[person.person_id])
        for at in range(0, len(others), step)
    ]


async def _ask(
    tools: Tools, people: Sequence[Person], crops: Mapping[str, tuple[str, ...]]
) -> list[Proposal]:
    shown = [Shown(f"Person {one.person_id}", crops.get(one.person_id, ())) for one in people]
    cast = [{"person": one.person_id, "shots": list(one.shots)} for one in people]
    told = await ask(tools, PROMPT, _read, shown, cast=cast)
    return [Proposal(tuple(people), reason, told.maker) for people, reason in told.value]


def _read(reply: Json) -> list[tuple[list[str], str]]:
    """Return who is said to be one person, and why; what cannot be is refused later, and recorded."""
    return [(list(one["persons"]), str(one["reason"])) for one in reply["same"]]


def _told(made: Sequence[Json], refused: Sequence[Json], rounds: int) -> Json:
    return {"rounds": rounds, "made": list(made), "refused": list(refused)}
