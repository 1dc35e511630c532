"""Stage: the six measures of a shot's picture quality, from one pass over its frames (B.2, Eq. 2-6)."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....errors import MissingRequirement
from ....media.images import MediaProblem
from ....media.video import frames_at, outline, walk_frames
from ....models.vision.needs import opened
from ....models.vision.store import VectorStore, vector_key
from ....schemas.canonical import Json
from ..entities import QUALITY
from .definitions import QualitySettings, make_meters, reasons
from .meters import Unmeasured, read_off
from .vbench_results import Results, read_results

if TYPE_CHECKING:
    from PIL.Image import Image

SPEC = StageSpec(
    name="measure_quality",
    version=1,
    shape="map",
    reads=("shot",),
    writes=("quality",),
    libraries=("pillow", "av", "numpy"),
    settings=QualitySettings,
    patience=20,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the values of a shot; null where nobody measures, or there is no video to be measured.

    A measure has a value, or a reason why there is none; never both, and never 0 for a failure.
    """
    settings, shot = tools.own(QualitySettings), item["shot"]
    video = shot["video"]
    if not settings.wanted or video["file"] is None or shot["code"] is not None:
        return Made({"quality": None})
    why = reasons(settings)
    models: dict[str, Json] = {}
    values: dict[str, float | None] = dict.fromkeys(QUALITY)
    for measure, value in _from_file(settings, video).items():
        values[measure], models[measure] = value, f"VBench's own results {str(settings.results_sha256)[:12]}"
        if value is None:
            why[measure] = "the file of VBench's results has no value for this video"
    try:
        measured, lacking, names = _measured(video, settings)
        values, why, models = {**values, **measured}, {**why, **lacking}, {**models, **names}
    except MediaProblem as problem:
        reason = f"{problem.code}: expected {problem.expected}, found {problem.found}"
        why |= {name: reason for name in QUALITY if values[name] is None and name not in why}
    except Unmeasured as problem:
        why |= {name: str(problem) for name in QUALITY if values[name] is None and name not in why}
    return Made(
        {
            "quality": {
                "definition": settings.definition, "values": values,
                "why": dict(sorted(why.items())), "models": dict(sorted(models.items())),
            }
        }
    )  # fmt: skip


def _measured(
    video: Json, settings: QualitySettings
) -> tuple[dict[str, float | None], dict[str, str], dict[str, str]]:
    """Return the values of what is measured here, the reasons for those without one, and the models."""
    path = Path(video["file"])
    info = outline(path)
    start, stop = video["start"], video["stop"]
    whole = start is None and stop is None
    start, stop = start or 0, info.frames if stop is None else stop
    meters = make_meters(settings, info.fps, (info.width, info.height), stop - start)
    if not meters:
        return {}, {}, {}
    indices = range(start, stop)
    # A film is decoded where shots are; a shot's own video from end to end, as damage shows in no other way.
    frames = walk_frames(path, indices) if whole else frames_at(path, indices)

    def images() -> "Iterator[tuple[Image, bytes]]":
        for frame in frames:
            yield frame.image, vector_key("", frame.image)

    with VectorStore.of_user() as store:
        values, why = read_off(meters, images(), store)
    names = ((name, settings.model_of(name)) for name in meters)
    return values, why, {
        name: opened(model, settings, None).identity for name, model in names if model is not None
    }  # fmt: skip


def _from_file(settings: QualitySettings, video: Json) -> dict[str, float | None]:
    """Return the values that a file has of a shot that is a video of its own, None where it has none.

    Raises:
        MissingRequirement: the file is another one than the run began with.
    """
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
