"""Stage: references cut from a method's own videos, instead of made before: an ablation (EntityBench, C.1).

An entity is cut from the first frame of the first shot that should show it, with a box where one is given,
else the whole frame is taken. What is wrong there gets into the reference: that is what is to be shown.
"""

from pathlib import Path

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem
from ...media.kept_files import keep_file
from ...media.video import frames_at
from ...schemas.canonical import sha256_bytes, sha256_file
from .pictures import panorama_of, png_bytes
from .references import Reference, Source

SPEC = StageSpec(
    name="crop_references", version=2, shape="map", reads=("reference",), writes=("cropped",),
    libraries=("pillow",),
)  # fmt: skip


def run(item: Item, tools: Tools) -> Outcome:
    """Return the ``file`` of the crop in the run's store, or why there is none; null where none is wanted."""
    reference = Reference.model_validate(item["reference"])
    if reference.made != "outputs" or reference.needs is None or reference.kept:
        return Made({"cropped": None})
    if reference.source is None:
        return Made({"cropped": {"file": None, "reason": "no shot that should show it has a video"}})
    try:
        data = _crop(reference, reference.source)
    except MediaProblem as problem:
        return Made({"cropped": {"file": None, "reason": f"the video cannot be read: {problem.code}"}})
    name = f"{sha256_bytes(data)}.png"
    if tools.store is not None:
        keep_file(data, name, tools.store)
    return Made({"cropped": {"file": name, "reason": None}})


def _crop(reference: Reference, source: Source) -> bytes:
    path = Path(source.path)
    if not path.is_file() or sha256_file(path) != source.sha256:
        what = "other bytes, or nothing"
        raise MediaProblem(
            str(path), code="unreadable", expected="the video that the run began with", found=what,
            fix="put it back",
        )  # fmt: skip
    (frame,) = frames_at(path, [source.start])
    image = frame.image
    if source.where.box is not None:
        left, top, right, bottom = source.where.box
        edges = (
            round(left * image.width), round(top * image.height),
            max(round(left * image.width) + 1, round(right * image.width)),
            max(round(top * image.height) + 1, round(bottom * image.height)),
        )  # fmt: skip
        image = image.crop(edges)
    return png_bytes(panorama_of(image) if reference.needs == "panorama" else image)
