"""Stage: which tracklets of an episode are one person (EntityBench section 3.1).

Agglomerative clustering with average linkage within the episode; tracklets that are seen at the same time in
the same shot are never together. A tracklet without vectors stays a person of its own and is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.values import Own
from .distances import Join, Weighed, cluster, forbid, fused, overlapping, unpacked
from .drafts import Merge, Person, Tracklet

BY = "clustering"


class Settings(Own):
    """How tracklets become people. The limits are our choice and were not fitted to any film."""

    threshold: float = Field(
        default=1.0, gt=0, description="Highest average distance of two groups that are merged, in limits."
    )
    face_limit: float = Field(
        default=0.6, gt=0, le=2, description="Cosine distance of two faces that counts as 1."
    )
    body_limit: float = Field(
        default=0.35, gt=0, le=2, description="Cosine distance of two bodies that counts as 1."
    )
    face_weight: float = Field(default=0.7, ge=0, description="Weight of faces, where both have one.")
    body_weight: float = Field(default=0.3, ge=0, description="Weight of bodies, where both have one.")
    constraints: bool = Field(
        default=True, description="Whether tracklets seen at the same time are kept apart."
    )


SPEC = StageSpec(
    name="cluster_people",
    version=2,
    shape="map",
    reads=("video", "shots"),
    writes=("people", "clustering"),
    libraries=("numpy", "scipy"),
    settings=Settings,
    patience=20,
)


@dataclass(frozen=True, slots=True)
class Clustered:
    """What clustering made of the tracklets of an episode."""

    people: tuple[Person, ...]  # by first appearance
    without: tuple[str, ...]  # ids of tracklets without vectors
    apart: int  # pairs of tracklets that were kept apart


def run(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and how they were told apart."""
    settings = tools.own(Settings)
    tracklets = tracklets_of(item["shots"])
    made = people_of(tracklets, settings)
    about: dict[str, Json] = {
        "tracklets": len(tracklets), "people": len(made.people), "apart": made.apart,
        "without_vectors": list(made.without), "threshold": settings.threshold,
    }  # fmt: skip
    return Made({"people": [person.as_json() for person in made.people], "clustering": about})


def tracklets_of(shots: Sequence[Json]) -> list[Tracklet]:
    """Return the tracklets of all shots of an episode, by id."""
    tracklets = [Tracklet.model_validate(tracklet) for shot in shots for tracklet in shot["tracklets"]]
    return sorted(tracklets, key=lambda tracklet: tracklet.tracklet_id)


def people_of(tracklets: Sequence[Tracklet], settings: Settings) -> Clustered:
    """Return the people that tracklets are; the order in which they are given does not matter."""
    ordered = sorted(tracklets, key=lambda tracklet: tracklet.tracklet_id)
    if len({tracklet.tracklet_id for tracklet in ordered}) != len(ordered):
        raise ValueError("two tracklets have the same id")
    known = [tracklet for tracklet in ordered if tracklet.face is not None or tracklet.body is not None]
    unknown = [tracklet for tracklet in ordered if tracklet.face is None and tracklet.body is None]
    groups, joins, apart = [[tracklet] for tracklet in unknown], _no_joins(), 0
    if known:
        distances = fused(_kinds(known, settings))
        if settings.constraints:
            apart = forbid(distances, overlapping([(tracklet.shot, *tracklet.span) for tracklet in known]))
        made = cluster(distances, settings.threshold)
        groups += [[known[member] for member in members] for members in made.groups()]
        joins = {known[join.one].tracklet_id: [] for join in made.joins}
        for join in made.joins:
            joins[known[made.labels[join.one]].tracklet_id].append(_merge(join, known, settings.threshold))
    return Clustered(
        numbered((members, joins.get(members[0].tracklet_id, [])) for members in groups),
        tuple(tracklet.tracklet_id for tracklet in unknown),
        apart,
    )


def numbered(groups: "Iterator[tuple[list[Tracklet], Sequence[Merge]]]") -> tuple[Person, ...]:
    """Return groups of tracklets as people, numbered by first appearance."""
    ordered = [(sorted(members, key=appearance), merges) for members, merges in groups]
    ordered.sort(key=lambda group: appearance(group[0][0]))
    return tuple(
        Person(
            person_id=f"p{number:03d}",
            tracklets=tuple(member.tracklet_id for member in members),
            shots=tuple(sorted({member.shot for member in members})),
            merges=tuple(merges),
        )
        for number, (members, merges) in enumerate(ordered, start=1)
    )


def appearance(tracklet: Tracklet) -> tuple[int, int, str]:
    """Return when a tracklet begins: shot, frame, and its id among those that begin at once."""
    return tracklet.shot, tracklet.span[0], tracklet.tracklet_id


def _kinds(known: Sequence[Tracklet], settings: Settings) -> list[Weighed]:
    faces = [None if tracklet.face is None else unpacked(tracklet.face) for tracklet in known]
    bodies = [None if tracklet.body is None else unpacked(tracklet.body) for tracklet in known]
    return [
        Weighed(faces, settings.face_limit, settings.face_weight),
        Weighed(bodies, settings.body_limit, settings.body_weight),
    ]


def _merge(join: Join, known: Sequence[Tracklet], threshold: float) -> Merge:
    distance = float(np.float32(join.distance))
    return Merge(
        one=known[join.one].tracklet_id,
        other=known[join.other].tracklet_id,
        by=BY,
        reason=f"average distance {distance:.4f}, at most {threshold:g}",
    )


def _no_joins() -> dict[str, list[Merge]]:
    return {}
