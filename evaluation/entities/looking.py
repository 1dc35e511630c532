"""What is looked at in the shots of an episode: frames, where entities are in them, and their vectors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Tools, batch_stage, stage
from ...media.images import MediaProblem, encode_image, open_picture
from ...media.kept_files import keep_file, kept_bytes
from ...media.quality import sharpness
from ...media.shot_detection import Method, networks_of
from ...media.video import VideoInfo, even_indices, frames_at, outline, walk_frames
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import Box, Device, Grounder, GroundingStore, Rows, TextEncoder, VectorStore
from ...releases.entities.tree import EntitySet
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.entities import LISTS, EpisodeShot
from ...schemas.values import Listed, Own
from ..judging.settings import ImageSettings
from ..metrics.vectors import packed
from ..outputs.entities import FEWEST
from .archived import entity_key

if TYPE_CHECKING:
    from PIL.Image import Image


# -- How videos of episodes are looked at: settings of the stages, and the two definitions of grounding
#
# ``paper`` is what the paper of EntityBench says (B.3.1), ``code`` what its public evaluator does. They
# differ in the frames that are looked at, the words that are looked for, and how a crop is cut and rated.

Grounding = Literal["paper", "code"]
Locations = Literal["paper", "code"]
GROUND_FRAMES = FEWEST
"""Frames of a shot that are grounded (N_frame of Table 11)."""
GRID_FRAMES = 6
"""Frames of the action grid (Table 11)."""


@dataclass(frozen=True, slots=True)
class FrameChoice:
    """Which frames of a shot are looked at, by index."""

    # those in which entities are looked for; the canonical crop is cut from one of them
    ground: tuple[int, ...]
    # those that the action grid shows, in order; of a short shot one may be there twice
    grid: tuple[int, ...]

    @property
    def grounded(self) -> tuple[int, ...]:
        """All frames in which boxes are needed, ascending, each once."""
        return tuple(sorted({*self.ground, *self.grid}))


def frames_of(definition: Grounding, frames: int) -> FrameChoice:
    """Return which frames of a shot are looked at.

    ``paper`` says "evenly": number i of n is frame ``floor(i * (frames - 1) / (n - 1))``, for the five that
    are grounded and, apart from these, for the six of the grid. ``code`` takes five between the second frame
    and the last but one, for both; in a shot of five frames the last one counts twice.
    """
    if frames < FEWEST:
        raise ValueError(f"{frames} frames")
    if definition == "paper":
        return FrameChoice(
            even_indices(frames, GROUND_FRAMES), even_indices(frames, min(GRID_FRAMES, frames))
        )
    start, end = 1, frames - 2
    step = max(1.0, (end - start) / (GROUND_FRAMES - 1))
    taken = [min(int(start + number * step), frames - 1) for number in range(GROUND_FRAMES)]
    return FrameChoice(tuple(dict.fromkeys(taken)), tuple(taken))


def scheduled(shot: EpisodeShot) -> tuple[str, ...]:
    """Return the keys of the entities that a shot shows, in the order of its schedule, each once."""
    keys = (entity_key(kind, name) for kind in LISTS.values() for name in shot.scheduled.names(kind))
    return tuple(dict.fromkeys(keys))


@dataclass(frozen=True, slots=True)
class LookingBudget:
    """What looking at one method's videos takes, by the schedule: nothing is missing, shots are long."""

    shots: int  # scheduled shots
    frames: int  # frames that are grounded; each goes through the detector's backbone once
    queries: int  # pairs of a frame and an entity; each goes through the rest of the detector
    appearances: int  # pairs of a shot and an entity: crops at most
    boundaries: int  # first and last frames


def looking_budget(entity_set: EntitySet, definition: Grounding) -> LookingBudget:
    """Return what looking at the videos of a set takes for each method.

    Of a shot, ``code`` grounds five frames, and ``paper`` up to nine: five and six that share the first and
    the last one.
    """
    shots = [shot for episode in entity_set.episodes for shot in episode.script.shots()]
    appearances = sum(len(scheduled(shot)) for shot in shots)
    each = len(frames_of(definition, _LONG).grounded)
    return LookingBudget(len(shots), each * len(shots), each * appearances, appearances, 2 * len(shots))


_LONG = 1000  # frames of a shot that is long enough for its frames to be different ones


class EpisodeSelection(Own):
    """Which episodes are evaluated, and how the outputs of methods are read."""

    episodes: Listed[str] = Field(default=(), description="Only episodes with these ids; none: all.")
    tier: Listed[str] = Field(default=(), description="Only episodes of these tiers; none: all.")
    split: str | None = Field(
        default=None, description="Split file whose tiers count; null: the one that names most episodes."
    )
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")
    cuts_by: Method = Field(
        default="transnetv2",
        description="What finds shots in the video of a whole episode without a cut list.",
    )
    device: Device = Field(default="cpu", description="Where that runs: cpu, cuda or mps.")

    def networks(self) -> dict[str, Any]:
        """Return where what finds shots runs, and the versions of its libraries."""
        return networks_of(self.cuts_by, self.device)


class FrameSettings(Own):
    """Which frames of a shot are taken."""

    grounding: Grounding = Field(default="paper", description="Whose frames are grounded: paper or code.")
    locations: Locations = Field(
        default="paper", description="How sharp a frame is: Laplacian (paper) or first differences (code)."
    )


class GroundSettings(VisionSettings):
    """Who finds entities in frames, and which of what is found is taken."""

    detector: str | None = Field(default=None, description="Name of the detector; null: nobody looks.")
    text: str | None = Field(default=None, description="Encoder of crops and descriptions.")
    definition: Grounding = Field(default="paper", description="How queries, crops and scores are made.")
    present_from: float = Field(
        default=0.2,
        ge=-1,
        le=1,
        description="Least similarity to the description of what is present (Eq. 12).",
    )
    padding: float = Field(default=0.1, ge=0, le=1, description="Share of a box that is added on each side.")
    pairs: int | None = Field(
        default=None, ge=1, le=1024, description="Frames and queries at once; null: 1 on a CPU, 16 on a GPU."
    )

    def looking(self) -> tuple[str, ...]:
        return tuple(name for name in (self.detector, self.text) if name is not None)

    @property
    def pairs_at_once(self) -> int:
        """How many pairs of a frame and a query the detector gets at once."""
        return self.pairs or (1 if self.device == "cpu" else 16)


class AppearanceSettings(VisionSettings):
    """Who makes vectors of crops and frames."""

    encoder: str | None = Field(default=None, description="Name of the encoder; null: nobody looks.")
    definition: Grounding = Field(
        default="paper", description="Whether a picture is seen whole (paper) or its middle (code)."
    )

    def looking(self) -> tuple[str, ...]:
        return () if self.encoder is None else (self.encoder,)


class GridSettings(ImageSettings):
    """How the labelled grid of a shot's frames is drawn and encoded (Eq. 19)."""

    max_side: int | None = Field(default=None, ge=16, le=8192)
    cell_width: int = Field(default=360, ge=16, le=2048, description="Pixels of a cell across.")
    cell_height: int = Field(default=240, ge=16, le=2048, description="Pixels of a cell down.")
    drawing: Grounding = Field(
        default="paper", exclude_if=lambda value: value == "paper",
        description="Whose boxes, colours and letters: ours after the paper, or those of the public code.",
    )  # fmt: skip
    wanted: bool = Field(default=False, description="Whether somebody judges actions.")


# -- Stage: the frames of a shot that are looked at, kept without loss in the run's store
#
# Grounding, action grids, judges of locations and vectors of first and last frames take their pixels there.
# Where the shot's quality was measured, its frames were kept on the way, and no video is opened here.

# -- The frames of a shot that are looked at, kept without loss while its video is decoded
#
# Whoever decodes a shot keeps them for all: measures of quality need every frame of it, so where these are
# taken, no stage after them decodes the video again. One frame is in memory at a time.


@dataclass(frozen=True, slots=True)
class ShotVideo:
    """The video of a shot: a file of its own, or a part of a film."""

    path: Path  # the file
    info: VideoInfo  # what the file is
    span: tuple[int, int] | None  # first frame in the file, and the one behind the last; None for all of it

    @classmethod
    def of(cls, video: Json) -> "ShotVideo":
        """Return the video of a shot as ``list_shots`` describes it."""
        path, start, stop = Path(video["file"]), video["start"], video["stop"]
        return cls(path, outline(path), None if stop is None else (start or 0, stop))

    @property
    def count(self) -> int:
        return self.info.frames if self.span is None else self.span[1] - self.span[0]

    def frames(self, indices: Sequence[int]) -> "Iterator[tuple[int, Image]]":
        """Yield frames by their number in the shot, which ascend.

        A film is decoded where shots are; a shot's own video from end to end, as damage shows in no other
        way.
        """
        if self.span is None:
            decoded = walk_frames(self.path, indices)
        else:
            decoded = frames_at(self.path, [self.span[0] + index for index in indices])
        for index, frame in zip(indices, decoded, strict=True):
            yield index, frame.image


class FrameKeeper:
    """Keeps those frames of a shot that are grounded or stand at its ends, as they go by.

    ``shot``: the video. ``definition``: whose frames are grounded. ``store``: the folder that pictures are
    kept in; None keeps none.

    Attributes:
        wanted: the numbers of these frames, ascending; none of a shot that is too short to be looked at.
    """

    def __init__(self, shot: ShotVideo, definition: Grounding, store: Path | None) -> None:
        self._shot, self._definition, self._store = shot, definition, store
        self.wanted: tuple[int, ...] = ()
        self._ground: frozenset[int] = frozenset()
        if shot.count >= FEWEST:
            choice = frames_of(definition, shot.count)
            self.wanted = tuple(sorted({0, shot.count - 1, *choice.grounded}))
            self._ground = frozenset(choice.ground)
        self._pictures: dict[str, str] = {}
        self._sharp: dict[Locations, dict[str, float]] = {name: {} for name in get_args(Locations)}
        self._size = (0, 0)

    def add(self, index: int, image: "Image") -> None:
        if index not in self.wanted:
            return
        data = encode_image(image, format="png")
        self._pictures[str(index)], self._size = f"{sha256_bytes(data)}.png", image.size
        if self._store is not None:
            keep_file(data, self._pictures[str(index)], self._store)
        if index in self._ground:
            for definition, sharp in self._sharp.items():
                sharp[str(index)] = frame_sharpness(image, definition)

    def taken(self) -> Json:
        """Return what is kept, and how sharp it is under each definition; null where a frame is lacking."""
        if not self.wanted or len(self._pictures) < len(self.wanted):
            return None
        return {
            "definition": self._definition, "count": self._shot.count, "fps": str(self._shot.info.fps),
            "width": self._size[0], "height": self._size[1], "pictures": self._pictures, "sharp": self._sharp,
        }  # fmt: skip


def frame_sharpness(image: "Image", definition: Locations) -> float:
    """Return how sharp a frame is, for choosing those by which a location is judged.

    ``definition``: ``paper`` takes the variance of the Laplacian of luma (Eq. 8), ``code`` the sum of the
    variances of first differences of the mean of the channels, across and down.
    """
    if definition == "paper":
        return sharpness(np.asarray(image.convert("L"), dtype=np.float64))
    grey = np.asarray(image, dtype=np.float64).mean(axis=2)
    return float(np.diff(grey, axis=1).var() + np.diff(grey, axis=0).var())


# --


@stage(
    version=2,
    reads=("shot", "taken"),
    writes=("frames",),
    libraries=("pillow", "av", "numpy"),
    settings=FrameSettings,
    patience=4,
)
def take_frames(item: Item, tools: Tools) -> Outcome:
    """Return which frames were taken and where they are kept; for a shot without usable video, why not."""
    settings, shot, taken = tools.own(FrameSettings), item["shot"], item["taken"]
    file, code = shot["video"]["file"], shot["code"]
    if file is None or code is not None:
        return Made({"frames": _none(code or "missing", "there is no video of the shot")})
    try:
        if taken is None or taken["definition"] != settings.grounding:
            taken = _taken(shot["video"], settings, tools.store)
    except MediaProblem as problem:
        return Made({"frames": _none(problem.code, f"expected {problem.expected}, found {problem.found}")})
    return Made({"frames": _frames(taken, settings)})


def _none(code: str, reason: str) -> Json:
    return {
        "invalid": code, "reason": reason, "count": None, "fps": None, "width": None, "height": None,
        "pictures": {}, "ground": [], "grid": [], "scene": [], "first": None, "last": None,
    }  # fmt: skip


def _taken(video: Json, settings: FrameSettings, store: Path | None) -> Json:
    """Decode a shot and return what was kept of it."""
    shot = ShotVideo.of(video)
    if shot.count < FEWEST:
        raise MediaProblem(
            str(shot.path), code="too_few_frames", expected=f"at least {FEWEST} frames",
            found=str(shot.count), fix="generate the shot again",
        )  # fmt: skip
    keeper = FrameKeeper(shot, settings.grounding, store)
    for index, image in shot.frames(keeper.wanted):
        keeper.add(index, image)
    return keeper.taken()


def _frames(taken: Json, settings: FrameSettings) -> Json:
    count, sharp = taken["count"], taken["sharp"][settings.locations]
    choice = frames_of(settings.grounding, count)
    return {
        "invalid": None, "reason": None, "count": count, "fps": taken["fps"],
        "width": taken["width"], "height": taken["height"], "pictures": taken["pictures"],
        "ground": list(choice.ground), "grid": list(choice.grid),
        "scene": sorted(choice.ground, key=lambda index: (-sharp[str(index)], index)),
        "first": 0, "last": count - 1,
    }  # fmt: skip


# -- Stage: where the entities of a shot are in its frames, and the crop that stands for each (Eq. 7-12)
#
# The one grounding pass of a shot: judges of fidelity, of pairs and of actions, vectors and the page all use
# what is found here. Boxes and vectors are kept in the user's store, so that only what is new is looked for.

# -- Crops of entities: how a box becomes a crop, and how good a crop is (EntityBench, Eq. 7-11)
#
# Both definitions cut whole pixels with a margin, and rate a crop by the product of three numbers. ``paper``
# scales crops to 224 x 224 pixels and takes the variance of the Laplacian and the area of the box; ``code``
# leaves them in their size and takes second differences and the area of the padded crop. All functions are
# pure.

SIDE = 224
"""Pixels a side of a crop (Table 11)."""
QUERY_WORDS = 12
"""Words of a description that ``code`` looks for."""
_SHARP, _AREA = (100.0, 200.0), (2.0, 5.0)
"""Middle and spread of the logistic functions of sharpness, and of area in percent (Eq. 8 and 9)."""


class Pixels(NamedTuple):
    """A rectangle of whole pixels; ``right`` and ``bottom`` are beyond it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Rating:
    """How good a crop is."""

    clip: float  # similarity to the description, -1 to 1 (Eq. 7).
    sharpness: float  # 0 to 1 (Eq. 8).
    area: float  # 0 to 1 (Eq. 9).

    @property
    def selection(self) -> float:
        """The product, by which the canonical crop is chosen (Eq. 10)."""
        return self.clip * self.sharpness * self.area


def query_of(description: str, definition: Grounding) -> str:
    """Return what is looked for: the whole description, or its first twelve words."""
    return description if definition == "paper" else " ".join(description.split()[:QUERY_WORDS])


def padded(box: Box, size: tuple[int, int], padding: float) -> Pixels:
    """Return the pixels of a crop: those of the box and a margin, as far as they are in the picture.

    ``box``: in pixels. ``padding``: share of the box's width and height that is added on each side; whole
    pixels, rounded down.
    """
    left, top = max(0, int(box.left)), max(0, int(box.top))
    right, bottom = min(size[0], int(box.right)), min(size[1], int(box.bottom))
    across, down = int((right - left) * padding), int((bottom - top) * padding)
    return Pixels(
        max(0, left - across), max(0, top - down), min(size[0], right + across), min(size[1], bottom + down)
    )


def crop_of(image: "Image", pixels: Pixels, definition: Grounding) -> "Image | None":
    """Return the crop; None where no pixel is in it."""
    if not pixels.area:
        return None
    crop = image.crop(pixels)
    if definition == "code":
        return crop
    from PIL.Image import Resampling

    return crop.resize((SIDE, SIDE), Resampling.BICUBIC)


def crop_sharpness(crop: "Image", definition: Grounding) -> float:
    """Return how sharp a crop is, before it is brought to 0 to 1; 0 of less than 3 x 3 pixels."""
    if definition == "paper":
        return sharpness(np.asarray(crop.convert("L"), dtype=np.float64))
    grey = np.asarray(crop, dtype=np.uint8).mean(axis=2)
    if min(grey.shape) < 3:
        return 0.0
    return float(np.diff(grey, n=2, axis=1).var() + np.diff(grey, n=2, axis=0).var())


def area_percent(box: Box, pixels: Pixels, size: tuple[int, int], definition: Grounding) -> float:
    """Return the area of the box, or of the padded crop, in percent of the picture."""
    return 100.0 * (box.area if definition == "paper" else pixels.area) / (size[0] * size[1])


def rating_of(clip: float, sharp: float, percent: float) -> Rating:
    return Rating(clip, logistic((sharp - _SHARP[0]) / _SHARP[1]), logistic((percent - _AREA[0]) / _AREA[1]))


def best_of(ratings: Sequence[Rating]) -> int:
    """Return which rating is the best, the first of equals (Eq. 11)."""
    return max(range(len(ratings)), key=lambda index: (ratings[index].selection, -index))


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value))."""
    return 1.0 / (1.0 + math.exp(-value))


# --

ABSENT: Json = {"status": "absent", "boxes": {}, "canonical": None}


@dataclass(frozen=True)
class _Means:
    """Who looks, what keeps what they see, and where crops go."""

    detector: Grounder
    text: TextEncoder
    store: GroundingStore
    settings: GroundSettings
    folder: Path | None


@dataclass(frozen=True)
class _Candidate:
    """A box in one of the frames that are grounded, with its crop."""

    frame: int
    box: Box
    crop: "Image"
    percent: float


@batch_stage(
    version=2,
    reads=("shot", "frames"),
    writes=("grounded",),
    libraries=("pillow", "numpy"),
    settings=GroundSettings,
    patience=40,
)
def ground_entities(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the boxes of every entity in every frame, and its status and canonical crop.

    Null where nobody looks, and for a shot without frames.
    """
    settings = tools.own(GroundSettings)
    if settings.detector is None or settings.text is None or all(_invalid(item) for item in items):
        return [Made({"grounded": None}) for _ in items]
    detector = opened(settings.detector, settings, "grounder")
    text = opened(settings.text, settings, "text encoder")
    with GroundingStore.of_user() as store:
        means = _Means(detector, text, store, settings, tools.store)
        return [Made({"grounded": None if _invalid(item) else _grounded(item, means)}) for item in items]


def _invalid(item: Item) -> bool:
    return item["frames"]["invalid"] is not None


def _grounded(item: Item, means: _Means) -> Json:
    frames, entities = item["frames"], item["shot"]["entities"]
    assert means.folder is not None, "a run keeps its frames in a folder"
    indices = sorted({*frames["ground"], *frames["grid"]})
    images = {index: open_picture(means.folder / frames["pictures"][str(index)]).image for index in indices}
    descriptions = [entity["description"] for entity in entities]
    queries = [query_of(text, means.settings.definition) for text in descriptions]
    boxes = means.store.boxes(
        means.detector, list(images.values()), [queries] * len(images), means.settings.pairs_at_once
    )
    known = means.store.texts(means.text, descriptions, means.settings.batch)
    made = {}
    for number, entity in enumerate(entities):
        by_frame = {index: row[number] for index, row in zip(indices, boxes, strict=True)}
        candidates = [
            candidate
            for index in frames["ground"]
            for candidate in _candidates(index, images[index], by_frame[index], means.settings)
        ]
        row = _entity(by_frame, candidates, known.rows[number], means)
        made[entity["key"]] = {**row, "cut": known.cut[number]} if known.cut[number] else row
    return {
        "models": {"detector": means.detector.identity, "text": means.text.identity},
        "entities": made,
    }


def _candidates(
    frame: int, image: "Image", boxes: Sequence[Box], settings: GroundSettings
) -> "list[_Candidate]":
    made = []
    for box in boxes:
        pixels = padded(box, image.size, settings.padding)
        crop = crop_of(image, pixels, settings.definition)
        if crop is not None:
            percent = area_percent(box, pixels, image.size, settings.definition)
            made.append(_Candidate(frame, box, crop, percent))
    return made


def _entity(
    by_frame: Mapping[int, Sequence[Box]], candidates: Sequence[_Candidate], text: Rows, means: _Means
) -> Json:
    """Return what is known of one entity in a shot: absent without a box in the frames that are grounded."""
    boxes = {
        str(index): [[*_edges(box), box.score] for box in some] for index, some in by_frame.items() if some
    }
    if not candidates:
        return {**ABSENT, "boxes": boxes}
    rows = means.store.rows(means.text, [candidate.crop for candidate in candidates], means.settings.batch)
    ratings = [
        rating_of(float(row.astype(float) @ text.astype(float)),
                  crop_sharpness(candidate.crop, means.settings.definition), candidate.percent)
        for candidate, row in zip(candidates, rows, strict=True)
    ]  # fmt: skip
    best = best_of(ratings)
    present = ratings[best].clip >= means.settings.present_from
    return {
        "status": "present" if present else "weak",
        "boxes": boxes,
        "canonical": _canonical(candidates[best], ratings[best], means.folder),
    }


def _canonical(chosen: _Candidate, rating: Rating, folder: Path | None) -> Json:
    data = encode_image(chosen.crop, format="png")
    name = f"{sha256_bytes(data)}.png"
    if folder is not None:
        keep_file(data, name, folder)
    return {
        "frame": chosen.frame, "box": _edges(chosen.box), "score": chosen.box.score, "clip": rating.clip,
        "sharpness": rating.sharpness, "area": rating.area, "selection": rating.selection,
        "file": name, "width": chosen.crop.width, "height": chosen.crop.height,
    }  # fmt: skip


def _edges(box: Box) -> list[float]:
    return [box.left, box.top, box.right, box.bottom]


# -- Stage: vectors of the canonical crops of a shot, and of its first and last frame (EntityBench, B.4.2)

CENTRED = ("dinov2-base", "dinov2-l-14")
"""Encoders of ours that make the shorter side 256 pixels long and look at the 224 x 224 in the middle."""
_AROUND = 256
_AGAIN = "evaluate into a new folder with --reuse and this run"


@batch_stage(
    version=2,
    reads=("shot", "frames", "grounded"),
    writes=("vectors",),
    libraries=("pillow", "numpy"),
    settings=AppearanceSettings,
    patience=20,
)
def encode_appearances(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return the vectors, each of shape (1, dimensions); null where nobody looks, and without frames.

    Crops of weak appearances have vectors, too; absent entities have none.
    """
    settings = tools.own(AppearanceSettings)
    if settings.encoder is None or all(item["frames"]["invalid"] is not None for item in items):
        return [Made({"vectors": None}) for _ in items]
    encoder = opened(settings.encoder, settings, "encoder")
    whole = settings.definition == "paper" and settings.encoder in CENTRED
    with VectorStore.of_user() as store:

        def vectors(item: Item) -> Json:
            if item["frames"]["invalid"] is not None:
                return None
            names = _pictures(item)
            assert tools.store is not None, "a run keeps its pictures in a folder"
            contents = [kept_bytes(tools.store, name, fix=_AGAIN) for name in names.values()]
            images = [open_picture(content).image for content in contents]
            seen = [whole_view(image) for image in images] if whole else images
            rows = store.rows(encoder, seen, settings.batch)
            made = {key: packed(rows[number : number + 1]) for number, key in enumerate(names)}
            first, last = (made.pop(part) for part in ("first", "last"))
            return {"model": encoder.identity, "crops": made, "first": first, "last": last}

        return [Made({"vectors": vectors(item)}) for item in items]


def whole_view(image: "Image") -> "Image":
    """Return a picture of which an encoder of :data:`CENTRED` sees all, at 224 x 224 pixels (Table 11).

    The picture, made 224 x 224, is the middle of one of 256 x 256: what is cut off around it is not of it.
    """
    from PIL import Image as Pillow

    margin = (_AROUND - SIDE) // 2
    around = Pillow.new("RGB", (_AROUND, _AROUND))
    around.paste(image.resize((SIDE, SIDE), Pillow.Resampling.BICUBIC), (margin, margin))
    return around


def _pictures(item: Item) -> dict[str, str]:
    """Return ``first``, ``last`` or the key of an entity -> the file of what is encoded."""
    frames, grounded = item["frames"], item["grounded"]
    entities = {} if grounded is None else grounded["entities"]
    crops = {key: entity["canonical"]["file"] for key, entity in entities.items() if entity["canonical"]}
    ends = {part: frames["pictures"][str(frames[part])] for part in ("first", "last")}
    return {**crops, **ends}
