"""Stage: how good a shot looks: sharpness, light, bars, motion, and its beauty to a predictor."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import encode_image, fitted
from ...media.problems import MediaProblem
from ...media.quality import luma
from ...media.video import even_indices
from ...models.vision.looking import VisionSettings, opened
from .drafts import Shot
from .pictures import frames_of, keep
from .shot_quality import looked_at, quality_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...media.quality import Luma


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
    version=1,
    shape="map",
    reads=("shot", "among"),
    writes=("quality",),
    libraries=("av", "pillow", "numpy", "scipy"),
    settings=Settings,
    patience=10,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return what is measured of each shot; see :class:`.shot_quality.Quality`.

    A shot whose frames cannot be decoded fails, the others of its video do not.
    """
    settings = tools.settings
    assert isinstance(settings, Settings)
    shots = [(Shot.model_validate(item["shot"]), int(item["among"])) for item in items]
    made: dict[str, Outcome] = {}
    for _, some in groupby(shots, key=lambda one: one[0].video.file):
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
    for one in shots:
        made |= _measured([one], tools)
    return made


def _looks(shots: Sequence[tuple[Shot, int]], tools: Tools) -> Iterator[tuple[str, Outcome]]:
    settings = tools.settings
    assert isinstance(settings, Settings)
    by_id = {shot.shot_id: (shot, among) for shot, among in shots}
    pairs = {key: looked_at(shot, settings.frames) for key, (shot, _) in by_id.items()}
    wanted = {key: sorted({frame for pair in some for frame in pair}) for key, some in pairs.items()}
    held: dict[str, dict[int, Luma]] = {key: {} for key in by_id}
    middles: dict[str, Image] = {}
    for frame, keys in frames_of(shots[0][0].video.file, wanted):
        small = luma(frame.image)
        for key in keys:
            held[key][frame.index] = small
            if frame.index == pairs[key][len(pairs[key]) // 2][0]:
                middles[key] = frame.image
            if frame.index == wanted[key][-1]:
                seen = held.pop(key)
                shot, among = by_id[key]
                quality = quality_of(shot, [(seen[one], seen[other]) for one, other in pairs[key]])
                more = _more(middles.pop(key), shot, among, tools)
                yield key, Made({"quality": {**quality.as_json(), **more}})


def _more(middle: "Image", shot: Shot, among: int, tools: Tools) -> dict[str, Any]:
    """Return what else comes of the middle frame: its beauty, and the file that a judge is shown."""
    settings = tools.settings
    assert isinstance(settings, Settings)
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
