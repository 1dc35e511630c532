"""Stage: the vectors of each tracklet, from its best views: faces by ArcFace, bodies by DINOv2.

A vector is the direction of the mean over the best views. Vectors that came with a file of detections are
used as they are; else the views are decoded and encoded, each crop once (the user's store of vectors).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem
from ...media.video import Frame
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import VectorStore
from ...schemas.canonical import Json
from .cluster_people import Rows, mean_vector, packed, unpacked
from .names import Shot, Tracklet, Video
from .pictures import ModelName, ViewWeights, best, candidates, cut_out, frames_of, qualities, sharpness_of

if TYPE_CHECKING:
    from PIL.Image import Image

KINDS = ("face", "body")


class Settings(VisionSettings):
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
        """Return the names of the models that encode."""
        return tuple(name for name in (self.face, self.body) if name is not None)

    def view_weights(self) -> ViewWeights:
        """Return the weights of views."""
        return ViewWeights(self.face_weight, self.size_weight, self.sharp_weight)


SPEC = StageSpec(
    name="embed_tracklets",
    version=2,
    shape="map",
    reads=("shot", "tracklets", "given"),
    writes=("embedded", "embedding"),
    libraries=("pillow", "numpy"),
    settings=Settings,
    patience=20,
)


@dataclass(frozen=True, slots=True)
class _Work:
    """One shot."""

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
    def settings(self) -> Settings:
        """The settings of the stage."""
        return self.tools.own(Settings)

    def by(self) -> dict[str, Json]:
        """Return who encodes."""
        return {kind: model.identity for kind, model in self.models.items()}


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the tracklets of each shot with their vectors and best views, and counts."""
    settings = tools.own(Settings)
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


def _plain(tracklet: Tracklet, settings: Settings) -> Tracklet:
    """Return a tracklet with its best views, by what is known without its pixels."""
    quality = dict(enumerate(qualities(tracklet.seen, settings.view_weights())))
    return tracklet.model_copy(update={"best": tuple(best(quality, settings.views))})


def _from_given(tracklet: Tracklet, given: Json, settings: Settings) -> Tracklet:
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


def _work(tracklets: tuple[Tracklet, ...], settings: Settings) -> _Work:
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


def _crop(frame: Frame, work: _Work, settings: Settings) -> None:
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
