"""The people of an episode: vectors of their tracklets, which of these are one person, and a second look."""

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ...engine.stage import Failed, Item, Made, Outcome, Tools, batch_stage, stage
from ...media.images import MediaProblem
from ...media.video import Frame
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import VectorStore
from ...schemas.canonical import Json
from ...schemas.values import Own
from ..step import PlannerSettings
from .names import Merge, Person, Shot, Tracklet, Video
from .pictures import (
    ModelName,
    Shown,
    ViewWeights,
    ask,
    best,
    candidates,
    cut_out,
    frames_of,
    portraits,
    qualities,
    sharpness_of,
)

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Stage: which tracklets of an episode are one person (EntityBench section 3.1)
#
# Agglomerative clustering with average linkage within the episode; tracklets that are seen at the same time
# in the same shot are never together. A tracklet without vectors stays a person of its own and is counted.

# -- How far two tracklets are apart, and their clusters under constraints; exact, on every machine the same
#
#     d = (w_face * d_face / limit_face + w_body * d_body / limit_body) / (w_face + w_body)
#
# with d_face and d_body one minus cosine, over what both tracklets have. A limit is the distance at which a
# pair is as likely the same person as not. Two tracklets with nothing in common are :data:`UNKNOWN` apart:
# not merged by themselves, and with little weight in an average. Components of vectors become whole numbers
# of 2^-24, whose sums float64 holds exactly in any order.
#
# The clusters of least average distance are merged as long as that is at most a threshold and no pair across
# them is forbidden: a forbidden pair is so far apart that no average with it comes near the threshold. Of
# equal distances, that of the pair of items that comes first counts as smaller, by less than float32 shows.

Rows = NDArray[np.float32]


def packed(vector: Rows) -> str:
    """Return a vector, shape (dimensions,), as text."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpacked(text: str) -> Rows:
    """Return the vector that :func:`packed` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def packed_rows(rows: Sequence[Rows | None]) -> Json:
    """Return vectors of one length, some of which may be missing, as plain JSON."""
    return [None if row is None else packed(row) for row in rows]


def mean_vector(rows: Sequence[Rows]) -> Rows | None:
    """Return the unit vector in the direction of the mean of unit vectors.

    Rows with ``nan`` stand for pictures in which there was nothing to encode, and are left out.

    Returned: shape (dimensions,); None where no row is left, or where they cancel each other out.
    """
    there = [row.astype(np.float64) for row in rows if np.isfinite(row).all()]
    if not there:
        return None
    mean = np.mean(there, axis=0)
    length = float(np.sqrt((mean * mean).sum()))
    return (mean / length).astype(np.float32) if length > 1e-6 else None


Distances = NDArray[np.float32]
APART = np.float32(np.inf)
"""The distance of what must not be together."""
_TIES = 3e-8
"""What the last pair of items is farther apart than the first, where their distances are the same."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two clusters that became one, each named by its smallest member."""

    one: int  # the smaller; the cluster goes on under its name
    other: int  # the larger
    distance: float  # average over all pairs of their members, to six digits


@dataclass(frozen=True, slots=True)
class Grouping:
    """What clustering made."""

    labels: tuple[int, ...]  # for every item, the smallest member of its cluster
    joins: tuple[Join, ...]  # in order

    def groups(self) -> list[list[int]]:
        """Return the members of each cluster, by smallest member."""
        groups: dict[int, list[int]] = {}
        for item, label in enumerate(self.labels):
            groups.setdefault(label, []).append(item)
        return [groups[label] for label in sorted(groups)]


def cluster(distances: Distances, threshold: float) -> Grouping:
    """Return clusters of average linkage.

    ``distances``: shape (n, n), symmetric, not negative, infinite where two must not be together.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    count = len(distances)
    _check(distances)
    labels = np.arange(count)
    if count < 2:
        return Grouping(tuple(labels.tolist()), ())
    pairs = squareform(distances, checks=False).astype(np.float64)
    apart = np.isinf(pairs)
    highest = min(threshold, float(pairs.max(initial=0.0, where=~apart))) + 2 * _TIES
    pairs[apart] = (highest + 1) * count**2  # so that no average with it is below the highest
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        block += np.arange(start, start + len(block)) * (_TIES / len(pairs))
    names, joins = list(range(count)), []
    for first, second, distance, _ in linkage(pairs, method="average"):
        first_name, other = sorted((names[int(first)], names[int(second)]))
        names.append(first_name)
        if distance <= highest:
            joins.append(Join(first_name, other, round(float(distance), 6)))
    for join in reversed(joins):
        labels[join.other] = labels[join.one]
    return Grouping(tuple(labels.tolist()), tuple(joins))


def forbid(distances: Distances, pairs: Iterable[tuple[int, int]]) -> int:
    """Set the distances of pairs that must not be together to infinite, in place; return how many."""
    count = 0
    for row, other in pairs:
        distances[row, other] = distances[other, row] = APART
        count += 1
    return count


def overlapping(places: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of tracklets that are seen at the same time, each once, the smaller first."""
    by_shot: dict[int, list[int]] = {}
    for item, (shot, _, _) in enumerate(places):
        by_shot.setdefault(shot, []).append(item)
    for items in by_shot.values():
        for at, span in enumerate(items):
            for other in items[at + 1 :]:
                if places[span][1] <= places[other][2] and places[other][1] <= places[span][2]:
                    yield span, other


def _check(distances: Distances) -> None:
    count = len(distances)
    if distances.shape != (count, count) or distances.dtype != np.float32:
        raise ValueError(f"a square matrix of float32 is needed, not {distances.shape} of {distances.dtype}")
    for start in range(0, count, _ROWS):
        some = distances[start : start + _ROWS]
        if np.isnan(some).any() or (some < 0).any():
            raise ValueError("distances are numbers from 0 on")
        if not np.array_equal(some, distances[:, start : start + _ROWS].T):
            raise ValueError("distances are the same in both directions")


_BLOCK = 1_000_000


UNKNOWN = 1.25
_WHOLE = float(2**24)
_ROWS = 256


@dataclass(frozen=True, slots=True)
class Weighed:
    """One kind of vectors of some tracklets."""

    rows: Sequence[Rows | None]  # unit vectors, all of one length; None where a tracklet has none
    limit: float  # cosine distance that counts as 1
    weight: float  # against the other kind


def fused(kinds: Sequence[Weighed]) -> Distances:
    """Return the distances of all pairs, shape (n, n), float32, exactly symmetric."""
    count = len(kinds[0].rows)
    made = np.empty((count, count), dtype=np.float32)
    whole = [(_whole(kind.rows), kind) for kind in kinds]
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        sums, weights = np.zeros((stop - start, count)), np.zeros((stop - start, count))
        for (table, there), kind in whole:
            both = np.outer(there[start:stop], there) * kind.weight
            cosines = np.clip(table[start:stop] @ table.T / _WHOLE**2, -1.0, 1.0)
            sums += both * ((1.0 - cosines) / kind.limit)
            weights += both
        known = weights > 0
        block = np.divide(sums, weights, out=np.full_like(sums, UNKNOWN), where=known)
        made[start:stop] = block.astype(np.float32)
    return made


def _whole(rows: Sequence[Rows | None]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return vectors in whole numbers, 0 where there is none, and 1 for each that is there, else 0."""
    lengths = {len(row) for row in rows if row is not None}
    if len(lengths) > 1:
        raise ValueError(f"vectors of one kind have the same length, not {sorted(lengths)}")
    table = np.zeros((len(rows), next(iter(lengths), 1)))
    for index, row in enumerate(rows):
        if row is not None:
            table[index] = np.rint(row.astype(np.float64) * _WHOLE)
    return table, np.array([float(row is not None) for row in rows])


# -- Which tracklets of an episode are one person (EntityBench section 3.1)

BY = "clustering"


class ClusterSettings(Own):
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


@dataclass(frozen=True, slots=True)
class Clustered:
    """What clustering made of the tracklets of an episode."""

    people: tuple[Person, ...]  # by first appearance
    without: tuple[str, ...]  # ids of tracklets without vectors
    apart: int  # pairs of tracklets that were kept apart


@stage(
    version=2,
    reads=("video", "shots"),
    writes=("people", "clustering"),
    libraries=("numpy", "scipy"),
    settings=ClusterSettings,
    patience=20,
)
def cluster_people(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and how they were told apart."""
    settings = tools.own(ClusterSettings)
    tracklets = tracklets_of(item["shots"])
    made = people_of(tracklets, settings)
    about: dict[str, Json] = {
        "tracklets": len(tracklets), "people": len(made.people), "apart": made.apart,
        "without_vectors": list(made.without), "threshold": settings.threshold,
    }  # fmt: skip
    return Made({"people": [person.as_json() for person in made.people], "clustering": about})


def tracklets_of(shots: Sequence[Json]) -> list[Tracklet]:
    tracklets = [Tracklet.model_validate(tracklet) for shot in shots for tracklet in shot["tracklets"]]
    return sorted(tracklets, key=lambda tracklet: tracklet.tracklet_id)


def people_of(tracklets: Sequence[Tracklet], settings: ClusterSettings) -> Clustered:
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


def _kinds(known: Sequence[Tracklet], settings: ClusterSettings) -> list[Weighed]:
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


# -- Stage: the vectors of each tracklet, from its best views: faces by ArcFace, bodies by DINOv2
#
# A vector is the direction of the mean over the best views. Vectors that came with a file of detections are
# used as they are; else the views are decoded and encoded, each crop once (the user's store of vectors).

KINDS = ("face", "body")


class EmbedSettings(VisionSettings):
    """Who encodes people, and which views of them."""

    face: ModelName = Field(default="arcface-r100", description="Encoder of faces, or none.")
    body: ModelName = Field(default="dinov2-l-14", description="Encoder of bodies, or none.")
    views: int = Field(default=5, ge=1, le=100, description="Best views of a tracklet that are encoded.")
    candidates: int = Field(default=12, ge=1, le=500, description="Views whose sharpness is looked at.")
    face_weight: float = Field(default=0.5, ge=0, description="How much the face counts in a view.")
    size_weight: float = Field(default=0.3, ge=0, description="How much size counts in a view.")
    sharp_weight: float = Field(default=0.2, ge=0, description="How much sharpness counts in a view.")
    around_face: float = Field(
        default=0.4, ge=0, le=2, description="Share of a face's sides around its crop."
    )

    def looking(self) -> tuple[str, ...]:
        return tuple(name for name in (self.face, self.body) if name is not None)

    def view_weights(self) -> ViewWeights:
        return ViewWeights(self.face_weight, self.size_weight, self.sharp_weight)


@dataclass(frozen=True, slots=True)
class _Work:
    tracklets: tuple[Tracklet, ...]  # of it
    # frame -> place of a tracklet, and of a view in it, for all views to be cut out of the frame
    wanted: Mapping[int, Sequence[tuple[int, int]]]
    # place of a tracklet and of a view -> the crops of body and face, as far as there are any
    crops: "dict[tuple[int, int], dict[str, Image]]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Encoders:
    """The encoders by kind, and what keeps their vectors."""

    models: Mapping[str, Any]
    store: VectorStore
    tools: Tools

    @property
    def settings(self) -> EmbedSettings:
        return self.tools.own(EmbedSettings)

    def by(self) -> dict[str, Json]:
        """Return who encodes."""
        return {kind: model.identity for kind, model in self.models.items()}


@batch_stage(
    version=2,
    reads=("shot", "tracklets", "given"),
    writes=("embedded", "embedding"),
    libraries=("pillow", "numpy"),
    settings=EmbedSettings,
    patience=20,
)
def embed_tracklets(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the tracklets of each shot with their vectors and best views, and counts."""
    settings = tools.own(EmbedSettings)
    made: dict[str, Outcome] = {}
    waiting: dict[str, dict[str, _Work]] = {}
    videos: dict[str, Video] = {}
    for item in items:
        shot = Shot.model_validate(item["shot"])
        tracklets = tuple(Tracklet.model_validate(tracklet) for tracklet in item["tracklets"])
        if item["given"] is not None:
            some = [_from_given(tracklet, item["given"], settings) for tracklet in tracklets]
            made[item.id] = _outcome(some, {"by": "given"})
        elif not tracklets or (settings.face is None and settings.body is None):
            made[item.id] = _outcome([_plain(tracklet, settings) for tracklet in tracklets], {"by": None})
        else:
            videos[shot.video.video_id] = shot.video
            waiting.setdefault(shot.video.video_id, {})[item.id] = _work(tracklets, settings)
    if waiting:
        names = {"face": settings.face, "body": settings.body}
        models = {
            kind: opened(name, settings, "encoder", {}) for kind, name in names.items() if name is not None
        }
        with VectorStore.of_user() as store:
            for name, works in waiting.items():
                made |= _encoded(videos[name], works, _Encoders(models, store, tools))
    return [made[item.id] for item in items]


def _plain(tracklet: Tracklet, settings: EmbedSettings) -> Tracklet:
    """Return a tracklet with its best views, by what is known without its pixels."""
    quality = dict(enumerate(qualities(tracklet.seen, settings.view_weights())))
    return tracklet.model_copy(update={"best": tuple(best(quality, settings.views))})


def _from_given(tracklet: Tracklet, given: Json, settings: EmbedSettings) -> Tracklet:
    """Return a tracklet with the vectors of a file: of each kind, those of the best views that have one."""
    quality = dict(enumerate(qualities(tracklet.seen, settings.view_weights())))
    vectors: dict[str, str | None] = {}
    for kind in KINDS:
        rows = {
            index: given[kind][look.row] for index, look in enumerate(tracklet.seen) if look.row is not None
        }
        there = {view: quality[view] for view, row in rows.items() if row is not None}
        chosen = [unpacked(rows[view]) for view in best(there, settings.views)]
        vectors[kind] = _packed(mean_vector(chosen))
    return tracklet.model_copy(update={"best": tuple(best(quality, settings.views)), **vectors})


def _work(tracklets: tuple[Tracklet, ...], settings: EmbedSettings) -> _Work:
    wanted: dict[int, list[tuple[int, int]]] = {}
    for index, tracklet in enumerate(tracklets):
        for view in candidates(tracklet.seen, settings.view_weights(), settings.candidates):
            wanted.setdefault(tracklet.seen[view].frame, []).append((index, view))
    return _Work(tracklets, wanted)


def _encoded(video: Video, works: Mapping[str, _Work], encoders: _Encoders) -> dict[str, Outcome]:
    """Encode the tracklets of some shots of a video; where it cannot be read, shot by shot."""
    made: dict[str, Outcome] = {}
    try:
        wanted = {name: sorted(work.wanted) for name, work in works.items()}
        for frame, names in frames_of(video, wanted, encoders.tools):
            for name in names:
                work = works[name]
                _crop(frame, work, encoders.settings)
                if frame.index == wanted[name][-1]:
                    some = [_with_vectors(index, work, encoders) for index in range(len(work.tracklets))]
                    made[name] = _outcome(some, {"by": encoders.by()})
                    work.crops.clear()
    except MediaProblem as problem:
        left = {name: work for name, work in works.items() if name not in made}
        if len(works) == 1:
            return made | {name: Failed(problem.code, str(problem)) for name in left}
        for name, work in left.items():
            work.crops.clear()
            made |= _encoded(video, {name: work}, encoders)
    return made


def _crop(frame: Frame, work: _Work, settings: EmbedSettings) -> None:
    for index, view in work.wanted[frame.index]:
        seen = work.tracklets[index].seen[view]
        body = cut_out(frame.image, seen.box)
        face = None if seen.face is None else cut_out(frame.image, seen.face, settings.around_face)
        crops: dict[str, Image | None] = {"body": body, "face": face}
        work.crops[index, view] = {kind: image for kind, image in crops.items() if image is not None}


def _with_vectors(index: int, work: _Work, encoders: _Encoders) -> Tracklet:
    settings, tracklet = encoders.settings, work.tracklets[index]
    crops = {view: some for (whose, view), some in work.crops.items() if whose == index}
    sharp = {view: sharpness_of(some["body"]) for view, some in crops.items() if "body" in some}
    quality = qualities(tracklet.seen, settings.view_weights(), sharp)
    chosen = best({view: quality[view] for view in crops}, settings.views)
    vectors: dict[str, str | None] = {}
    for kind, model in encoders.models.items():
        images = [crops[view][kind] for view in chosen if kind in crops[view]]
        rows: Sequence[Rows] = list(encoders.store.rows(model, images, settings.batch)) if images else ()
        vectors[kind] = _packed(mean_vector(rows))
    return tracklet.model_copy(update={"best": tuple(chosen), **vectors})


def _packed(vector: Rows | None) -> str | None:
    return None if vector is None else packed(vector)


def _outcome(tracklets: Sequence[Tracklet], more: Mapping[str, Json]) -> Made:
    counts = {
        "tracklets": len(tracklets),
        "with_face": sum(tracklet.face is not None for tracklet in tracklets),
        "with_body": sum(tracklet.body is not None for tracklet in tracklets),
        "without_vectors": sum(tracklet.face is None and tracklet.body is None for tracklet in tracklets),
    }
    return Made({"embedded": [track.as_json() for track in tracklets], "embedding": {**counts, **more}})


# -- Stage: people of distant shots are put together by a model that looks at crops; without one, they stay
#
# What it proposes is made only as far as constraints allow (EntityBench, section 3.1): people who are seen at
# the same time, have adjacent tracklets or (unless set otherwise) are both in one shot never become one. What
# is refused is kept with the reason, like what is made.

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


class ConsolidateSettings(PlannerSettings):
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
    def _others_are_shown(self) -> "ConsolidateSettings":
        if self.anchors >= self.at_once:
            raise ValueError("anchors must be fewer than at_once")
        return self


@stage(
    version=2,
    reads=("video", "shots", "people"),
    writes=("cast", "consolidation"),
    libraries=("pillow",),
    settings=ConsolidateSettings,
    asks=(PROMPT,),
)
async def consolidate_people(item: Item, tools: Tools) -> Outcome:
    """Return the people of an episode, and what was proposed, made and refused."""
    settings = tools.own(ConsolidateSettings)
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
    people: Sequence[Person], tracklets: Mapping[str, Tracklet], settings: ConsolidateSettings
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
