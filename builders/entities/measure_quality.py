"""Stage: how good a shot looks: sharpness, light, bars, motion, and its beauty to a predictor.

What is measured of a shot, the field ``quality``; and which of its frames are looked at.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem, encode_image, fitted
from ...media.quality import Bars, black_bars, difference, inside, luma, picture_hash, sharpness
from ...media.video import even_indices
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import Box
from ...schemas.values import Own
from .names import Shot
from .pictures import frames_of, keep

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...media.quality import Luma


INSIDE = 0.6
"""Share of a face that lies in the box of the person whose face it is, at least."""
_HEAD = 0.12  # of the height of a box, from its top: where the middle of a head is


def faces_of_people(people: Sequence[Box], faces: Sequence[Box]) -> list[int | None]:
    """Return for each person which face is theirs; None where there is none.

    A face may be that of a person whose box holds at least :data:`INSIDE` of it. As many faces as possible
    are given out, and of all ways to do so the one in which the distances of faces from heads, in heights of
    the people's boxes, have the least sum.
    """
    from scipy.optimize import linear_sum_assignment

    if not people or not faces:
        return [None] * len(people)
    far = float(10 * (len(people) + len(faces)))
    costs = np.full((len(people), len(faces)), far)
    for row, person in enumerate(people):
        for column, face in enumerate(faces):
            if _inside(face, person) >= INSIDE:
                costs[row, column] = min(_distance(face, person), 5.0)
    given: list[int | None] = [None] * len(people)
    for row, column in zip(*linear_sum_assignment(costs), strict=True):
        if costs[row, column] < far:
            given[int(row)] = int(column)
    return given


def _inside(face: Box, person: Box) -> float:
    width = min(face.right, person.right) - max(face.left, person.left)
    height = min(face.bottom, person.bottom) - max(face.top, person.top)
    return max(0.0, width) * max(0.0, height) / face.area


def _distance(face: Box, person: Box) -> float:
    height = person.bottom - person.top
    across = (face.left + face.right - person.left - person.right) / 2
    down = (face.top + face.bottom) / 2 - (person.top + _HEAD * height)
    return float(np.hypot(across, down)) / height


_STEP = 0.1  # seconds between the two frames whose difference is motion


class Quality(Own):
    """How good a shot looks; medians over the frames that were looked at."""

    sharpness: float  # variance of the Laplacian between the bars
    brightness: float  # mean luma between the bars, 0 to 255
    contrast: float  # standard deviation of luma between the bars
    # shares of the frame that are black bars: top, bottom, left, right
    bars: tuple[float, float, float, float]
    width: int  # of the picture between the bars, in pixels
    height: int  # of it
    motion: float  # mean absolute difference of frames a tenth of a second apart, 0 to 255
    change: float  # largest difference of any two frames that were looked at, 0 to 255
    hashes: tuple[str, ...]  # of the frames between the bars, 64 hexadecimal digits each, in order of time
    aesthetic: float | None = None  # what the predictor says of the middle frame; None where nobody looks
    view: str | None = None  # file of the middle frame in the run's store; None where none was kept
    frames: int  # how many frames were looked at


def looked_at(shot: Shot, count: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of frames of a shot: evenly spread, each with one a tenth of a second behind it.

    Frame i of n lies in the middle of the i-th of n equal parts. A shot of fewer frames gives all of them.
    """
    frames = shot.last - shot.first + 1
    step = max(1, round(shot.video.fps * _STEP))
    places = dict.fromkeys((2 * part + 1) * frames // (2 * count) for part in range(count))
    return tuple((shot.first + start, min(shot.first + start + step, shot.last)) for start in places)


def quality_of(shot: Shot, pairs: "Sequence[tuple[Luma, Luma]]") -> Quality:
    """Return what a shot's frames measure.

    ``pairs``: luma of the frames that :func:`looked_at` names, at least one pair.
    """
    frames = [frame for frame, _ in pairs]
    bars = black_bars([frame for pair in pairs for frame in pair])
    seen = [inside(frame, bars) for frame in frames]
    last = pairs[-1][1]
    return Quality(
        sharpness=_median([sharpness(frame) for frame in seen]),
        brightness=_median([float(frame.mean()) for frame in seen]),
        contrast=_median([float(frame.std()) for frame in seen]),
        bars=(round(bars.top, 4), round(bars.bottom, 4), round(bars.left, 4), round(bars.right, 4)),
        width=round(shot.video.width * (1 - bars.left - bars.right)),
        height=round(shot.video.height * (1 - bars.top - bars.bottom)),
        motion=_median([difference(*pair) for pair in pairs]),
        change=round(max(difference(frames[0], other) for other in [*frames[1:], last]), 4),
        hashes=tuple(f"{picture_hash(frame):064x}" for frame in seen),
        frames=len(frames),
    )  # fmt: skip


def bars_of(quality: Quality) -> Bars:
    """Return the bars of a shot."""
    return Bars(*quality.bars)


def _median(values: Sequence[float]) -> float:
    """Return the middle value, rounded; of an even number the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    middle = ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2
    return round(middle, 4)


class Settings(VisionSettings):
    """What is looked at, and who judges beauty."""

    frames: int = Field(default=5, ge=1, le=100, description="Frames of a shot, evenly inside it.")
    aesthetic: str | None = Field(
        default=None, description="Predictor, such as aesthetic-v2.5 (needs weights); null: nobody looks."
    )
    views: int = Field(
        default=8, ge=0, le=1000, description="Shots of a video whose middle frame is kept for judge_style."
    )
    max_side: int = Field(default=640, ge=64, le=4096, description="Longer side of a kept frame at most.")

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        return () if self.aesthetic is None else (self.aesthetic,)


SPEC = StageSpec(
    name="measure_quality",
    version=2,
    shape="map",
    reads=("shot", "among"),
    writes=("quality",),
    libraries=("av", "pillow", "numpy", "scipy"),
    settings=Settings,
    patience=10,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return what is measured of each shot; see :class:`Quality`.

    A shot whose frames cannot be decoded fails, the others of its video do not.
    """
    shots = [(Shot.model_validate(item["shot"]), int(item["among"])) for item in items]
    made: dict[str, Outcome] = {}
    for _, some in groupby(shots, key=lambda entry: entry[0].video.file):
        made |= _measured(list(some), tools)
    return [made[shot.shot_id] for shot, _ in shots]


def _measured(shots: Sequence[tuple[Shot, int]], tools: Tools) -> Mapping[str, Outcome]:
    """Return outcomes of shots of one video: it is gone through once, or once per shot where one fails."""
    made: dict[str, Outcome] = {}
    try:
        return dict(_looks(shots, tools))
    except MediaProblem as problem:
        if len(shots) == 1:
            reason = f"expected {problem.expected}, found {problem.found}"
            return {shots[0][0].shot_id: Failed(problem.code, reason)}
    for entry in shots:
        made |= _measured([entry], tools)
    return made


def _looks(shots: Sequence[tuple[Shot, int]], tools: Tools) -> Iterator[tuple[str, Outcome]]:
    settings = tools.own(Settings)
    by_id = {shot.shot_id: (shot, among) for shot, among in shots}
    pairs = {key: looked_at(shot, settings.frames) for key, (shot, _) in by_id.items()}
    wanted = {key: sorted({frame for pair in some for frame in pair}) for key, some in pairs.items()}
    held: dict[str, dict[int, Luma]] = {key: {} for key in by_id}
    middles: dict[str, Image] = {}
    for frame, keys in frames_of(shots[0][0].video, wanted, tools):
        small = luma(frame.image)
        for key in keys:
            held[key][frame.index] = small
            if frame.index == pairs[key][len(pairs[key]) // 2][0]:
                middles[key] = frame.image
            if frame.index == wanted[key][-1]:
                seen = held.pop(key)
                shot, among = by_id[key]
                quality = quality_of(shot, [(seen[first], seen[other]) for first, other in pairs[key]])
                more = _more(middles.pop(key), shot, among, tools)
                yield key, Made({"quality": {**quality.as_json(), **more}})


def _more(middle: "Image", shot: Shot, among: int, tools: Tools) -> dict[str, Any]:
    """Return what else comes of the middle frame: its beauty, and the file that a judge is shown."""
    settings = tools.own(Settings)
    beauty, view = None, None
    if settings.aesthetic is not None:
        predictor = opened(settings.aesthetic, settings, "predictor", {})
        beauty = round(float(predictor.predict([middle])[0][0]), 4)
    if shot.number in shown(among, settings.views):
        picture = encode_image(fitted(middle, settings.max_side), format="jpeg", quality=88)
        view = keep(picture, tools.store)
    return {"aesthetic": beauty, "view": view}


def shown(among: int, views: int) -> frozenset[int]:
    """Return the numbers of the shots whose middle frame is kept: evenly over the video."""
    if not views:
        return frozenset()
    return frozenset(index + 1 for index in even_indices(among, min(views, among)))
