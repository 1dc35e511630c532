"""Stage: the six measures of a shot's picture quality, from one pass over its frames (B.2, Eq. 2-6).

The frames that later stages look at are kept on the way, so that a shot is decoded once for all pillars.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.stage import Item, Made, Outcome, Tools, stage
from ...errors import MissingRequirement
from ...media.images import MediaProblem
from ...models.vision.needs import opened
from ...models.vision.store import VectorStore, vector_key
from ...schemas.canonical import Json
from .archived import QUALITY
from .looking import FrameKeeper, ShotVideo
from .quality import QualitySettings, Results, Unmeasured, make_meters, read_off, read_results, reasons

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class _Measured:
    """What one pass over a shot gave."""

    values: dict[str, float | None]  # measure -> its value, None where there is none
    why: dict[str, str]  # measure -> why it has no value
    models: dict[str, str]  # measure -> identity of the model that it took
    taken: Json  # the frames that were kept, see :class:`.looking.FrameKeeper`; null where none were


@stage(
    version=2,
    reads=("shot",),
    writes=("quality", "taken"),
    libraries=("pillow", "av", "numpy"),
    settings=QualitySettings,
    patience=20,
)
def measure_quality(item: Item, tools: Tools) -> Outcome:
    """Return the values of a shot; null where nobody measures, or there is no video to be measured.

    A measure has a value, or a reason why there is none; never both, and never 0 for a failure.
    """
    settings, shot = tools.own(QualitySettings), item["shot"]
    video = shot["video"]
    if not settings.wanted or video["file"] is None or shot["code"] is not None:
        return Made({"quality": None, "taken": None})
    why, taken = reasons(settings), None
    models: dict[str, Json] = {}
    values: dict[str, float | None] = dict.fromkeys(QUALITY)
    for measure, value in _from_file(settings, video).items():
        values[measure], models[measure] = value, f"VBench's own results {str(settings.results_sha256)[:12]}"
        if value is None:
            why[measure] = "the file of VBench's results has no value for this video"
    try:
        measured = _measured(video, settings, tools.store)
        values, why, models = values | measured.values, why | measured.why, models | measured.models
        taken = measured.taken
    except MediaProblem as problem:
        reason = f"{problem.code}: expected {problem.expected}, found {problem.found}"
        why |= {name: reason for name in QUALITY if values[name] is None and name not in why}
    except Unmeasured as problem:
        why |= {name: str(problem) for name in QUALITY if values[name] is None and name not in why}
    quality = {
        "definition": settings.definition, "values": values,
        "why": dict(sorted(why.items())), "models": dict(sorted(models.items())),
    }  # fmt: skip
    return Made({"quality": quality, "taken": taken})


def _measured(video: Json, settings: QualitySettings, store: Path | None) -> _Measured:
    """Measure a shot while it is decoded."""
    shot = ShotVideo.of(video)
    info = shot.info
    meters = make_meters(settings, info.fps, (info.width, info.height), shot.count)
    if not meters:
        return _Measured({}, {}, {}, None)
    keeper = FrameKeeper(shot, settings.keeps, store)

    def images() -> "Iterator[tuple[Image, bytes]]":
        for index, image in shot.frames(range(shot.count)):
            keeper.add(index, image)
            yield image, vector_key("", image)

    with VectorStore.of_user() as vectors:
        values, why = read_off(meters, images(), vectors)
    names = ((name, settings.model_of(name)) for name in meters)
    models = {name: opened(model, settings, None).identity for name, model in names if model is not None}
    return _Measured(values, why, models, keeper.taken())


def _from_file(settings: QualitySettings, video: Json) -> dict[str, float | None]:
    """Return the values that a file has of a shot that is a video of its own, None where it has none."""
    if not settings.taken:
        return {}
    results = _results(str(settings.results))
    if results.sha256 != settings.results_sha256:
        raise MissingRequirement(
            "measure_quality.results",
            what="the file of VBench's results is not the one that the run began with",
            fix="put that one back, or give the command that began the run again",
        )  # fmt: skip
    own = video["start"] is None and video["stop"] is None
    values = results.videos.get(video["sha256"], {}) if own else {}
    return {measure: values.get(measure) for measure in settings.taken}


@lru_cache(maxsize=1)
def _results(path: str) -> Results:
    return read_results(Path(path))
