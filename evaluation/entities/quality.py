"""The picture quality of shots (EntityBench, B.2, Table 12): its definitions and the models that measure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, get_args

import numpy as np
from pydantic import Field, field_validator

from ...errors import ConfigError, InputError, TargetError, UserError, mismatch
from ...models.vision.flow import margins
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.networks import pixels_of
from ...models.vision.registry import Kind
from ...models.vision.store import Encoder, Flow, Predictor, Rows, VectorStore, group_key
from ...models.vision.weights import library
from ...schemas.canonical import Json, canonical_bytes, sha256_bytes, sha256_file, write_atomic, writing
from ...schemas.plain_files import composed, parse_json, read_plain
from ...schemas.text import tallied
from ...schemas.values import Listed
from ..metrics.vectors import Floats
from ..outputs.layout import VIDEOS
from .archived import QUALITY
from .looking import Grounding

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Measures of a shot taken while its frames go by: each keeps the few frames that its next groups need

# -- What is measured of two or three frames: likeness, difference, motion, and the frame between two others
#
# A measure makes one number of each group of frames. Groups of one measure share frames, and each frame goes
# through an encoder once in a batch.

Group: TypeAlias = "tuple[Image, ...]"

FASTEST = 0.05
"""Share of the pixels, those that move most, whose mean is the motion of a pair (VBench)."""


class Measure(Protocol):
    """Makes numbers of groups of frames."""

    @property
    def identity(self) -> str:
        """What its numbers depend on; empty where they are not worth keeping."""
        ...

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        ...


class Likeness:
    """How alike the vectors of a frame are to those of frames before it.

    The last frame of a group is compared with each of the others. One other: their cosine (Eq. 2). Several:
    the mean of the cosines, none of them below 0 (VBench: the previous and the first frame).
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def identity(self) -> str:
        return f"{self._encoder.identity}/likeness"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        images = {id(image): image for group in groups for image in group}
        rows = self._encoder.encode(list(images.values())).astype(np.float64)
        by_image = dict(zip(images, rows, strict=True))
        return _column([self._value([by_image[id(image)] for image in group]) for group in groups])

    def _value(self, rows: Sequence[Any]) -> float:
        cosines = [float(row @ rows[-1]) for row in rows[:-1]]
        if len(cosines) == 1:
            return cosines[0]
        return sum(cosine if np.isnan(cosine) else max(0.0, cosine) for cosine in cosines) / len(cosines)


class Steadiness:
    """1 minus the mean absolute difference of two frames, whose pixels are taken from 0 to 1 (Eq. 3)."""

    identity = ""

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        return _column([1 - _difference(pixels_of(first), pixels_of(second)) for first, second in groups])


class Motion:
    """How many pixels the fastest twentieth of a picture moves to the next one, as VBench has it.

    Edges are repeated up to sides that are multiples of 8 before that, as there, and count.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @property
    def identity(self) -> str:
        return f"{self._flow.identity}/motion"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        flows = self._flow.flows([(_padded(first), _padded(second)) for first, second in groups])
        return _column([fastest(flow) for flow in flows])


def fastest(flow: Rows) -> float:
    """Return the mean length of the longest twentieth of the vectors of a flow, shape (2, height, width)."""
    lengths = np.sqrt(np.square(flow.astype(np.float64)).sum(axis=0)).ravel()
    return float(np.sort(lengths)[::-1][: max(1, int(lengths.size * FASTEST))].mean())


class Reconstruction:
    """How well two frames foretell the one between them: 1 minus the mean absolute difference from it.

    Flow from each of the two to the other gives that to their middle (0 to 1/2: -F01/4 + F10/4, and
    mirrored), as if every pixel moved evenly and straight. Both frames are moved there. A pixel is the mean
    of both, or that of one of them where it would come from outside the other.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @property
    def identity(self) -> str:
        return f"{self._flow.identity}/reconstruction-visible"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        ends = [pair for first, _, last in groups for pair in ((first, last), (last, first))]
        flows = self._flow.flows(ends)
        made = []
        for number, (first, middle, last) in enumerate(groups):
            there, back = flows[2 * number], flows[2 * number + 1]
            between = self._between(pixels_of(first), pixels_of(last), (back - there) / 4)
            made.append(1 - _difference(between, pixels_of(middle)))
        return _column(made)

    def _between(self, first: Rows, last: Rows, shift: Rows) -> Rows:
        """Return the frame between two; ``shift`` says where it finds itself in the first."""
        early, seen_early = _moved(first, shift)
        late, seen_late = _moved(last, -shift)
        mean = (early + late) / 2
        single = np.where(seen_early, early, late)
        return np.asarray(np.where(seen_early == seen_late, mean, single), dtype=np.float32)


class Rating:
    """What a predictor says of a single frame, times a factor."""

    def __init__(self, predictor: Predictor, factor: float) -> None:
        self._predictor, self._factor = predictor, factor

    @property
    def identity(self) -> str:
        return f"{self._predictor.identity}/times-{self._factor}"

    def values(self, groups: "Sequence[Group]") -> Rows:
        """Return shape (groups, 1)."""
        return _column(self._predictor.predict([image for (image,) in groups])[:, 0] * self._factor)


def _moved(pixels: Rows, shift: Rows) -> tuple[Rows, Any]:
    """Return a picture sampled at places that are shifted, and which of them lie in it, shape (h, w)."""
    torch = library()
    height, width = pixels.shape[-2:]
    across = np.arange(width, dtype=np.float32) + shift[0]
    down = np.arange(height, dtype=np.float32)[:, None] + shift[1]
    seen = (across >= 0) & (across <= width - 1) & (down >= 0) & (down <= height - 1)
    ends = (max(width - 1, 1), max(height - 1, 1))
    grid = np.stack([2 * across / ends[0] - 1, 2 * down / ends[1] - 1], axis=-1)
    sampled = torch.nn.functional.grid_sample(
        torch.from_numpy(pixels)[None], torch.from_numpy(grid.astype(np.float32))[None],
        mode="bilinear", padding_mode="border", align_corners=True,
    )  # fmt: skip
    return np.asarray(sampled[0].numpy(), dtype=np.float32), seen


def _padded(image: "Image") -> "Image":
    left, right, top, bottom = margins(*image.size)
    if not (left or right or top or bottom):
        return image
    from PIL import Image as Pillow

    return Pillow.fromarray(np.pad(np.asarray(image), ((top, bottom), (left, right), (0, 0)), mode="edge"))


def _difference(first: Rows, second: Rows) -> float:
    """Return the mean absolute difference of two pictures of 0 to 255, as a share of that."""
    return float(np.abs(first - second).mean(dtype=np.float64)) / 255


def _column(values: Sequence[float] | Rows) -> Rows:
    return np.asarray(values, dtype=np.float32).reshape(-1, 1)


# --


class Unmeasured(Exception):
    """A shot has no value of a measure; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A frame, and what its pixels are known by."""

    image: "Image" = field(repr=False)
    key: bytes


Window = Callable[[int, Picture], tuple[Picture, ...] | None]
"""Given every frame with its number, returns the group that it completes."""


def each(_: int, picture: Picture) -> tuple[Picture, ...]:
    """Return every frame by itself."""
    return (picture,)


def pairs(step: int = 1) -> Window:
    """Return a window on pairs: every ``step``-th frame and the one of them before it."""
    held: list[Picture] = []

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        if number % step:
            return None
        held.append(picture)
        return (held.pop(0), picture) if len(held) > 1 else None

    return add


def with_first() -> Window:
    """Return a window on every frame but the first, with that and the one before it."""
    first: list[Picture] = []
    following = pairs()

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        first.append(picture) if not first else None
        pair = following(number, picture)
        return None if pair is None else (first[0], *pair)

    return add


def around() -> Window:
    """Return a window on frames 2i, 2i + 1 and 2i + 2."""
    held: list[Picture] = []

    def add(number: int, picture: Picture) -> tuple[Picture, ...] | None:
        held.append(picture)
        if number % 2 or not number:
            return None
        group = tuple(held)
        del held[:2]
        return group

    return add


@dataclass(slots=True)
class Meter:
    """One measure of a shot."""

    window: Window  # which frames make a group
    measure: Measure  # makes a number of each group
    conclude: Callable[[Floats], float]  # makes the shot's value of the numbers, in their order
    batch: int  # groups that are measured at once
    least: int  # frames that a shot needs at least
    numbers: list[float] = field(default_factory=list)
    waiting: list[tuple[Picture, ...]] = field(default_factory=list)

    def add(self, number: int, picture: Picture, store: VectorStore) -> None:
        """Take in the next frame of the shot."""
        group = self.window(number, picture)
        if group is not None:
            self.waiting.append(group)
        if len(self.waiting) >= self.batch:
            self._measure(store)

    def value(self, frames: int, store: VectorStore) -> float:
        """Return the value of a shot of so many frames."""
        if self.waiting:
            self._measure(store)
        if not self.numbers:
            raise Unmeasured(f"it takes at least {self.least} frames, and the shot has {frames}")
        values = np.array(self.numbers, dtype=np.float64)
        if not np.isfinite(values).all():
            lost = int((~np.isfinite(values)).sum())
            raise Unmeasured(f"the model gave no number for {lost} of {len(values)} groups of frames")
        return self.conclude(values)

    def _measure(self, store: VectorStore) -> None:
        def make(groups: Sequence[tuple[Picture, ...]]) -> Rows:
            return self.measure.values([tuple(picture.image for picture in group) for group in groups])

        identity = self.measure.identity
        if identity:
            keys = [group_key(identity, [picture.key for picture in group]) for group in self.waiting]
            rows = store.kept(keys, self.waiting, make, self.batch)
        else:
            rows = make(self.waiting)
        self.numbers += [float(value) for value in rows[:, 0]]
        self.waiting = []


def mean(values: Floats) -> float:
    return float(values.mean())


def share_above(threshold: float) -> Callable[[Floats], float]:
    """Return what says which share of values is above a threshold."""
    return lambda values: float((values > threshold).mean())


def read_off(
    meters: Mapping[str, Meter], images: "Iterable[tuple[Image, bytes]]", store: VectorStore
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the values of all meters, and for those without one the reason.

    ``images``: every frame of a shot in order, with what its pixels are known by. ``store``: keeps what
    models make of frames.
    """
    size, count = None, 0
    for number, (image, key) in enumerate(images):
        size, count = size or image.size, number + 1
        if image.size != size:
            text = f"{size[0]} x {size[1]} to {image.size[0]} x {image.size[1]}"
            raise Unmeasured(f"the frames change their size from {text} at frame {number}")
        for meter in meters.values():
            meter.add(number, Picture(image, key), store)
    values: dict[str, float | None] = {}
    why: dict[str, str] = {}
    for name, meter in meters.items():
        try:
            values[name] = meter.value(count, store)
        except Unmeasured as reason:
            values[name], why[name] = None, str(reason)
    return values, why


# -- How the picture quality of a shot is measured: settings, and two definitions (B.2, Table 12)
#
# ``paper`` is what the paper of EntityBench says (Eq. 2-6), ``vbench`` what VBench 0.1.5 computes, which the
# public evaluator runs. Where the paper is silent, what we took is a setting, or a line of
# ``docs/episodes-evaluation.md``.

# -- VBench's own result files: read, matched to videos by name, kept under the hashes of these videos
#
# VBench writes ``{dimension: [summary, [{"video_path": ..., "video_results": ...}]]}``. Its summaries are not
# used: one of them is a mean over frames, another one a hundredth of the values.

FORM = "fabula.vbench_results/1"
_BOOLEAN = "dynamic_degree"


@dataclass(frozen=True, slots=True)
class Results:
    """What :func:`write_results` wrote."""

    sha256: str  # of the file
    measures: tuple[str, ...]  # those that it has, in the order of Table 12
    videos: Mapping[str, Mapping[str, float]] = field(repr=False)  # SHA-256 of a video -> measure -> value


@dataclass(frozen=True, slots=True)
class Matched:
    """What came of matching results to videos."""

    document: Json = field(repr=False)  # what is written
    values: int  # how many values found their video
    strangers: tuple[str, ...]  # results without a video, each with the reason
    without: tuple[str, ...]  # videos without any result
    others: tuple[str, ...]  # dimensions that are none of the six measures

    def as_json(self) -> dict[str, Any]:
        return {
            "measures": self.document["measures"], "videos": len(self.document["videos"]),
            "values": self.values, "strangers": list(self.strangers), "without": list(self.without),
            "others": list(self.others),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        measures = ", ".join(self.document["measures"])
        videos = tallied(len(self.document["videos"]), "videos")
        yield f"{tallied(self.values, 'values')} of {videos}: {measures}"
        yield from (f"not used: {name}" for name in self.strangers)
        yield from (f"no result: {name}" for name in self.without)
        if self.others:
            yield f"dimensions that are not among the six measures: {', '.join(self.others)}"


def match_results(files: Sequence[Path], folders: Sequence[Path]) -> Matched:
    """Match VBench's results to videos.

    A result belongs to the video of the same name in a folder of the same name (``EPISODE/001_002.mp4``),
    where the folder of the result may have words before (``vbench_batch_EPISODE``); else to the only video of
    that name.
    """
    problems: list[UserError] = []
    records, others = [], Counter[str]()
    for file in files:
        for dimension, rows in _dimensions(file, problems):
            if dimension not in QUALITY:
                others[dimension] += 1
                continue
            records += [(dimension, path, value) for path, value in _rows(file, dimension, rows, problems)]
    paths = [path for folder in folders for path in _videos(folder, problems)]
    if problems:
        raise InputError(problems)
    names = _Names(paths)
    hashes = {path: sha256_file(path) for path in paths}
    videos: dict[str, dict[str, Json]] = {}
    strangers: list[str] = []
    for dimension, name, value in records:
        path = names.find(name)
        if isinstance(path, str):
            strangers.append(f"{dimension} of {name}: {path}")
            continue
        video = videos.setdefault(hashes[path], {"name": f"{path.parent.name}/{path.name}", "values": {}})
        if video["values"].setdefault(dimension, value) != value:
            strangers.append(f"{dimension} of {name}: another value than {video['values'][dimension]} before")
    if not videos:
        raise InputError(
            [mismatch(str(files[0]), "a result of one of the videos", strangers[0] if strangers else "none",
                      "give the folder with the videos that VBench saw")]
        )  # fmt: skip
    measures = [name for name in QUALITY if any(name in video["values"] for video in videos.values())]
    document = {
        "form": FORM, "measures": measures, "videos": videos,
        "files": [{"name": file.name, "sha256": sha256_file(file)} for file in files],
    }  # fmt: skip
    without = sorted({f"{path.parent.name}/{path.name}" for path in paths if hashes[path] not in videos})
    values = sum(len(video["values"]) for video in videos.values())
    return Matched(document, values, tuple(strangers), tuple(without), tuple(sorted(others)))


def write_results(out: Path, matched: Matched) -> None:
    """Write the values under the hashes of their videos into a new file."""
    fix = "choose another file, or move that one away"
    if out.exists():
        raise TargetError(str(out), what="the file is there already", fix=fix)
    with writing(out, fix, what="it"):
        write_atomic(out, [canonical_bytes(matched.document), b"\n"])


def read_results(path: Path) -> Results:
    """Read what :func:`write_results` wrote."""
    wanted = "a file that fabula import vbench-results wrote"
    try:
        content = read_plain(path, follow=True)
        document = parse_json(content)
        if document["form"] != FORM:
            raise ValueError(f"the form {document['form']!r}")
        measures = tuple(name for name in QUALITY if name in document["measures"])
        videos = {
            str(sha256): {str(name): _number(name, value) for name, value in video["values"].items()}
            for sha256, video in document["videos"].items()
        }
    except OSError as error:
        actual = str(error.strerror)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        actual = f"{type(error).__name__}: {error}"
    else:
        return Results(sha256_bytes(content), measures, videos)
    raise InputError([mismatch(str(path), wanted, actual[:200], "give that one")])


def _dimensions(file: Path, problems: list[UserError]) -> Iterator[tuple[str, Any]]:
    try:
        document = parse_json(read_plain(file, follow=True))
        if not isinstance(document, dict) or not document:
            raise ValueError(f"a {type(document).__name__}")
    except (OSError, ValueError) as error:
        actual = getattr(error, "strerror", None) or str(error)
        problems.append(_problem(str(file), "an object of dimensions", str(actual)))
        return
    for dimension, content in document.items():
        summed = isinstance(content, list) and len(content) == 2 and isinstance(content[1], list)
        if not summed:
            problems.append(_problem(f"{file}: {dimension}", "[summary, [results of videos]]", str(content)))
            continue
        yield dimension, content[1]


def _rows(
    file: Path, dimension: str, rows: Sequence[Any], problems: list[UserError]
) -> Iterator[tuple[str, float]]:
    for number, row in enumerate(rows):
        where = f"{file}: {dimension}[1][{number}]"
        try:
            path, value = row["video_path"], _number(dimension, row["video_results"])
            if not isinstance(path, str):
                raise TypeError(f"the path {path!r}")
        except (KeyError, TypeError, ValueError) as error:
            actual = f"{type(error).__name__}: {error}"
            problems.append(_problem(where, "video_path, and video_results as a number", actual))
            continue
        yield path, value


def _number(dimension: str, value: Any) -> float:  # noqa: ANN401 - any JSON value
    if isinstance(value, bool) and dimension != _BOOLEAN:
        raise ValueError(f"{value} is no number")
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _videos(folder: Path, problems: list[UserError]) -> list[Path]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in VIDEOS and path.is_file())
    if not paths:
        problems.append(_problem(str(folder), "a folder with videos", "none"))
    return paths


class _Names:
    """Finds videos by the paths that VBench saw."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._by_stem: dict[str, list[Path]] = {}
        for path in paths:
            self._by_stem.setdefault(_plain(path.stem), []).append(path)

    def find(self, name: str) -> Path | str:
        """Return the video, or why there is none."""
        path = PurePosixPath(name.replace("\\", "/"))
        stem = path.stem if path.suffix.lower() in VIDEOS else path.name
        there = self._by_stem.get(_plain(stem), [])
        folder = _plain(path.parent.name)
        for fits in (folder.__eq__, lambda known: folder.endswith(f"_{known}")):
            near = [video for video in there if fits(_plain(video.parent.name))]
            if len(near) == 1:
                return near[0]
        if len(there) == 1:
            return there[0]
        return "several videos have that name" if there else "there is no video of that name"


def _plain(name: str) -> str:
    return composed(name).replace(" ", "_")  # as VBench writes names of folders of frames


def _problem(where: str, expected: str, actual: str) -> UserError:
    return mismatch(where, expected, actual[:200], "give a *_eval_results.json of VBench")


# --

Definition = Literal["paper", "vbench"]
Quality = Literal[
    "subject_consistency", "temporal_flickering", "motion_smoothness", "dynamic_degree", "aesthetic_quality",
    "imaging_quality",
]  # fmt: skip
_SHARED = {"dynamic_degree": "raft-large", "imaging_quality": "musiq-spaq"}
MODELS: Mapping[Definition, Mapping[str, str]] = {
    "paper": {
        "subject_consistency": "dinov2-base", "motion_smoothness": "raft-large",
        "aesthetic_quality": "laion-b-32", **_SHARED,
    },
    "vbench": {"subject_consistency": "dino-b-16", "aesthetic_quality": "laion-l-14", **_SHARED},
}  # fmt: skip
"""Definition -> measure -> the model that it takes."""
_KINDS: Mapping[str, Kind] = {
    "subject_consistency": "encoder", "motion_smoothness": "flow", "dynamic_degree": "flow",
    "aesthetic_quality": "predictor", "imaging_quality": "predictor",
}  # fmt: skip
_SIDE, _MOMENT = 256, 8
"""Motion is in pixels of a picture whose shorter side has 256, in an eighth of a second (VBench)."""
_AMT = (
    "VBench takes AMT-S for it, which Fabula does not run;"
    " fabula import vbench-results reads the value from VBench's own results"
)


class QualitySettings(VisionSettings):
    """How the picture quality of shots is measured."""

    wanted: bool = Field(default=False, description="Whether anybody measures.")
    definition: Definition = Field(default="paper", description="Whose measures: paper or vbench.")
    measures: Listed[Quality] = Field(default=get_args(Quality), description="Measures that are taken.")
    models: dict[Quality, str] = Field(
        default_factory=dict, description="Measure -> a model in the place of the definition's."
    )
    moving: float = Field(
        default=6.0, gt=0, description="paper: a pair moves if its motion is above this, in pixels of"
        " a picture with a shorter side of 256, in an eighth of a second.",
    )  # fmt: skip
    interpolation: Literal["visible"] = Field(
        default="visible", description="paper: how two frames make the one between them."
    )
    pairs: int = Field(default=1, ge=1, le=64, description="Pairs of frames whose flow is found at once.")
    keeps: Grounding = Field(
        default="paper", description="Whose frames are kept on the way; follows take_frames.grounding."
    )
    results: str | None = Field(
        default=None, description="vbench: file that fabula import vbench-results wrote; what it has is not"
        " measured again.",
    )  # fmt: skip
    results_sha256: str | None = Field(
        default=None, description="Hash of that file, as the run began with it."
    )
    taken: tuple[Quality, ...] = Field(default=(), description="Measures that the file has.")

    @field_validator("measures")
    @classmethod
    def _in_order(cls, value: tuple[Quality, ...]) -> tuple[Quality, ...]:
        return tuple(sorted(set(value), key=QUALITY.index))

    def model_of(self, measure: str) -> str | None:
        """Return the model that a measure takes here; None without one."""
        if not self.wanted or measure not in self.measures or measure in self.taken:
            return None
        own = {str(name): model for name, model in self.models.items()}
        known = MODELS[self.definition].get(measure)
        return None if known is None else own.get(measure, known)

    def looking(self) -> tuple[str, ...]:
        names = (self.model_of(measure) for measure in QUALITY)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def pinned(self) -> Self:
        """Return the settings with the hash of the file of results, and which measures it has."""
        if self.results is None or not self.wanted:
            return self.model_copy(update={"results_sha256": None, "taken": ()})
        if self.definition != "vbench":
            raise ConfigError(
                "measure_quality.results", what="these are values of VBench, and the definition is paper",
                fix="set measure_quality.definition to vbench, or leave the file out",
            )  # fmt: skip
        results = read_results(Path(self.results))
        taken = tuple(measure for measure in self.measures if measure in results.measures)
        return self.model_copy(update={"results_sha256": results.sha256, "taken": taken})


def reasons(settings: QualitySettings) -> dict[str, str]:
    """Return which measures no shot has, and why."""
    why: dict[str, str] = {}
    for measure in QUALITY:
        if measure not in settings.measures:
            why[measure] = "left out: measure_quality.measures does not name it"
        elif (
            settings.definition == "vbench"
            and measure == "motion_smoothness"
            and measure not in settings.taken
        ):
            why[measure] = _AMT
    return why


def make_meters(
    settings: QualitySettings, fps: Fraction, size: tuple[int, int], frames: int
) -> dict[str, Meter]:
    """Return what measures a shot, for each measure that is not from a file and has no reason against it.

    ``fps``: frames per second of the shot. ``size``: width and height of its frames. ``frames``: how many it
    has.
    """
    makers = _VBENCH if settings.definition == "vbench" else _PAPER
    without = {*settings.taken, *reasons(settings)}
    shot = _Shot(settings, fps, min(size), frames)
    return {measure: makers[measure](shot) for measure in QUALITY if measure not in without}


class _Shot:
    """What meters of a shot are made from."""

    def __init__(self, settings: QualitySettings, fps: Fraction, side: int, frames: int) -> None:
        self.settings, self.fps, self.frames = settings, fps, frames
        self.scale = side / _SIDE

    def model(self, measure: str) -> Any:  # noqa: ANN401 - of the measure's kind
        name = self.settings.model_of(measure)
        assert name is not None
        return opened(name, self.settings, _KINDS[measure])


def _flicker(_: _Shot) -> Meter:
    return Meter(pairs(), Steadiness(), mean, 1, 2)


def _subject(shot: _Shot) -> Meter:
    return Meter(pairs(), Likeness(shot.model("subject_consistency")), mean, shot.settings.batch, 2)


def _subject_vbench(shot: _Shot) -> Meter:
    return Meter(with_first(), Likeness(shot.model("subject_consistency")), mean, shot.settings.batch, 2)


def _smoothness(shot: _Shot) -> Meter:
    measure = Reconstruction(shot.model("motion_smoothness"))
    return Meter(around(), measure, mean, shot.settings.pairs, 3)


def _dynamic(shot: _Shot) -> Meter:
    threshold = shot.settings.moving * shot.scale * float(_MOMENT / shot.fps)
    return Meter(
        pairs(), Motion(shot.model("dynamic_degree")), share_above(threshold), shot.settings.pairs, 2
    )


def _dynamic_vbench(shot: _Shot) -> Meter:
    step = max(1, round(shot.fps / _MOMENT))
    looked_at = -(-shot.frames // step)
    threshold, enough = 6.0 * shot.scale, round(4 * (looked_at / 16))

    def moves(values: Any) -> float:  # noqa: ANN401 - an array
        return float(int((values > threshold).sum()) >= enough)

    measure = Motion(shot.model("dynamic_degree"))
    return Meter(pairs(step), measure, moves, shot.settings.pairs, step + 1)


def _aesthetic(shot: _Shot) -> Meter:
    return Meter(each, Rating(shot.model("aesthetic_quality"), 0.1), mean, shot.settings.batch, 1)


def _imaging(shot: _Shot) -> Meter:
    return Meter(each, Rating(shot.model("imaging_quality"), 1.0), mean, shot.settings.batch, 1)


_PAPER = {
    "subject_consistency": _subject, "temporal_flickering": _flicker, "motion_smoothness": _smoothness,
    "dynamic_degree": _dynamic, "aesthetic_quality": _aesthetic, "imaging_quality": _imaging,
}  # fmt: skip
_VBENCH = {**_PAPER, "subject_consistency": _subject_vbench, "dynamic_degree": _dynamic_vbench}
