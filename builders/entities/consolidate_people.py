"""Stage: people of distant shots are put together by a model that looks at crops; without one, they stay.

What it proposes is made only as far as constraints allow (EntityBench, section 3.1): people who are seen at
the same time, have adjacent tracklets or (unless set otherwise) are both in one shot never become one. What
is refused is kept with the reason, like what is made.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, model_validator

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem
from ...schemas.canonical import Json
from ..step import PlannerSettings
from .cluster_people import appearance, tracklets_of
from .names import Merge, Person, Tracklet, Video
from .pictures import Shown, ask, portraits

Rule = Literal["shot", "time"]
"""Who is kept apart: all who are in one shot (the paper), or only those seen in it at the same time."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """People who are said to be one."""

    people: tuple[str, ...]  # their ids, as they were named
    reason: str  # what the model said
    by: str  # the model


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What proposals came to."""

    # the people, by first appearance; a merged one has the id of the part that appears first
    cast: tuple[Person, ...]
    merges: tuple[Merge, ...]  # every pair that was proposed, made or refused, in order


@dataclass(slots=True)
class _Groups:
    """People under way."""

    order: dict[str, int]  # id of a person -> place by first appearance
    members: dict[str, list[Tracklet]]  # id of a group, that of its first person -> tracklets
    group: dict[str, str]  # id of a person -> id of the group
    history: dict[str, list[Merge]]  # id of a group -> merges that concern it
    merges: list[Merge] = field(default_factory=list)  # all of them

    def propose(self, proposal: Proposal, named: set[str], rule: Rule) -> None:
        """Make of a proposal what can be made; ``named`` are those whom the same reply named before."""
        names = list(dict.fromkeys(proposal.people))
        fresh = sorted(
            (name for name in names if name in self.order and name not in named),
            key=lambda name: self.order[name],
        )
        for name in fresh[1:]:
            pair = {self.group[fresh[0]], self.group[name]}
            if len(pair) == 2:
                left, other = sorted(pair, key=lambda group: self.order[group])
                why = conflict(self.members[left], self.members[other], rule)
                self._note(Merge(one=left, other=other, by=proposal.by, reason=proposal.reason, refused=why))
        first = self.group[fresh[0]] if fresh else next(iter(names), "")
        for name in names:
            why = None if name in self.order else "nobody has this id"
            why = "named before in the same reply" if name in named else why
            if why is not None:
                self._note(Merge(one=first, other=name, by=proposal.by, reason=proposal.reason, refused=why))
        if len(names) < 2:
            alone = Merge(
                one=first, other=first, by=proposal.by, reason=proposal.reason, refused="nobody else"
            )
            self._note(alone)
        named.update(names)

    def _note(self, merge: Merge) -> None:
        self.merges.append(merge)
        if merge.one in self.history:
            self.history[merge.one].append(merge)
        if merge.refused is None:
            self.members[merge.one] += self.members.pop(merge.other)
            self.history[merge.one] += self.history.pop(merge.other)
            self.group = {name: merge.one if at == merge.other else at for name, at in self.group.items()}


def consolidate(
    people: Sequence[Person],
    tracklets: Mapping[str, Tracklet],
    replies: Sequence[Sequence[Proposal]],
    rule: Rule,
) -> Consolidated:
    """Return people after what was proposed of them, in order.

    ``tracklets``: id -> tracklet, of all people.
    """
    groups = _Groups(
        {person.person_id: index for index, person in enumerate(people)},
        {person.person_id: [tracklets[name] for name in person.tracklets] for person in people},
        {person.person_id: person.person_id for person in people},
        {person.person_id: list(person.merges) for person in people},
    )
    for proposals in replies:
        named: set[str] = set()
        for proposal in proposals:
            groups.propose(proposal, named, rule)
    cast = [_person(name, some, groups.history[name]) for name, some in groups.members.items()]
    cast.sort(key=lambda person: groups.order[person.person_id])
    return Consolidated(tuple(cast), tuple(groups.merges))


def conflict(ours: Sequence[Tracklet], other: Sequence[Tracklet], rule: Rule) -> str | None:
    """Return why two groups of tracklets cannot be one person; None where they can."""
    pairs = [(a, b) for a in ours for b in other if a.shot == b.shot]
    for a, b in pairs:
        if a.span[0] <= b.span[1] and b.span[0] <= a.span[1]:
            return f"seen at the same time in shot {a.shot}: {a.tracklet_id} and {b.tracklet_id}"
    for a, b in pairs:
        if abs(_number(a) - _number(b)) == 1:
            return f"adjacent tracklets: {a.tracklet_id} and {b.tracklet_id}"
    if pairs and rule == "shot":
        a, b = pairs[0]
        return f"both in shot {a.shot}: {a.tracklet_id} and {b.tracklet_id}"
    return None


def _person(name: str, members: Sequence[Tracklet], merges: Sequence[Merge]) -> Person:
    ordered = sorted(members, key=appearance)
    return Person(
        person_id=name,
        tracklets=tuple(tracklet.tracklet_id for tracklet in ordered),
        shots=tuple(sorted({tracklet.shot for tracklet in ordered})),
        merges=tuple(merges),
    )


def _number(tracklet: Tracklet) -> int:
    """Return the number at the end of a tracklet's id."""
    return int(tracklet.tracklet_id.rpartition("__t")[2])


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
    version=2,
    shape="map",
    reads=("video", "shots", "people"),
    writes=("cast", "consolidation"),
    libraries=("pillow",),
    settings=Settings,
    asks=(PROMPT,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and what was proposed, made and refused."""
    settings = tools.own(Settings)
    people = [Person.model_validate(person) for person in item["people"]]
    if not settings.models() or tools.asker is None or len(people) < 2:
        return Made({"cast": item["people"], "consolidation": _told([], [], 0)})
    tracklets = {tracklet.tracklet_id: tracklet for tracklet in tracklets_of(item["shots"])}
    try:
        crops = await asyncio.to_thread(
            portraits, Video.model_validate(item["video"]), people, tracklets,
            (settings.crops, settings.max_side), tools,
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
    order = {person.person_id: at for at, person in enumerate(people)}
    step = settings.at_once - settings.anchors
    return [
        sorted([*anchors, *others[at : at + step]], key=lambda person: order[person.person_id])
        for at in range(0, len(others), step)
    ]


async def _ask(
    tools: Tools, people: Sequence[Person], crops: Mapping[str, tuple[str, ...]]
) -> list[Proposal]:
    shown = [Shown(f"Person {person.person_id}", crops.get(person.person_id, ())) for person in people]
    cast = [{"person": person.person_id, "shots": list(person.shots)} for person in people]
    answer = await ask(tools, PROMPT, _read, shown, cast=cast)
    return [Proposal(tuple(people), reason, answer.maker) for people, reason in answer.value]


def _read(reply: Json) -> list[tuple[list[str], str]]:
    """Return who is said to be one person, and why; what cannot be is refused later, and recorded."""
    return [(list(entry["persons"]), str(entry["reason"])) for entry in reply["same"]]


def _told(made: Sequence[Json], refused: Sequence[Json], rounds: int) -> Json:
    return {"rounds": rounds, "made": list(made), "refused": list(refused)}
