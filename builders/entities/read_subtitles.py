"""Stage: whether text stands where subtitles do, in a few frames of a shot. Optional: the extra ``ocr``."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, metadata
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...media.images import MediaProblem, fitted
from ...media.quality import TextReader, open_reader
from ...schemas.canonical import Json
from ...schemas.values import Own
from .measure_quality import looked_at
from .names import Shot
from .pictures import frames_of

if TYPE_CHECKING:
    from PIL.Image import Image

RAPID = "rapidocr"
_SHOWN = 3  # lines that are kept to look at


class Settings(Own):
    """Who reads, and where."""

    reader: str | None = Field(
        default=None,
        description="rapidocr, or module:function that returns a reader; null: nobody reads.",
    )
    version: str | None = Field(default=None, description="Of that reader, as the run began with it.")
    frames: int = Field(default=3, ge=1, le=100, description="Frames of a shot, evenly inside it.")
    band: float = Field(
        default=0.3, gt=0, le=1, description="Lower share of a frame in which subtitles stand."
    )
    letters: int = Field(default=4, ge=1, description="Letters from which a line counts as text.")
    max_side: int = Field(default=1280, ge=64, le=8192, description="Longer side of what is read at most.")


SPEC = StageSpec(
    name="read_subtitles",
    version=2,
    shape="map",
    reads=("shot",),
    writes=("subtitles",),
    libraries=("av", "pillow"),
    settings=Settings,
    patience=10,
)


def run_batch(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return how many frames of each shot were read, and how many have text; null where nobody reads.

    ``lines`` are the first lines that were read; ``by`` is who read them.
    """
    settings = tools.own(Settings)
    if settings.reader is None:
        return [Made({"subtitles": None}) for _ in items]
    shots = [Shot.model_validate(item["shot"]) for item in items]
    made: dict[str, Outcome] = {}
    for _, some in groupby(shots, key=lambda shot: shot.video.file):
        made |= _read(list(some), tools)
    return [made[shot.shot_id] for shot in shots]


def _read(shots: Sequence[Shot], tools: Tools) -> Mapping[str, Outcome]:
    """Return outcomes of shots of one video: it is gone through once, or once per shot where one fails."""
    settings = tools.own(Settings)
    assert settings.reader is not None
    reader = reader_of(settings.reader)
    wanted = {shot.shot_id: [frame for frame, _ in looked_at(shot, settings.frames)] for shot in shots}
    lines: dict[str, list[tuple[str, ...]]] = {key: [] for key in wanted}
    made: dict[str, Outcome] = {}
    try:
        for frame, keys in frames_of(shots[0].video, wanted, tools):
            texts = tuple(
                line for line in reader.read(_strip(frame.image, settings)) if _text(line, settings)
            )
            for key in keys:
                lines[key].append(texts)
    except MediaProblem as problem:
        if len(shots) == 1:
            reason = f"expected {problem.expected}, found {problem.found}"
            return {shots[0].shot_id: Failed(problem.code, reason)}
        for shot in shots:
            made |= _read([shot], tools)
        return made
    return {key: Made({"subtitles": _told(some, settings.reader)}) for key, some in lines.items()}


def _told(lines: Sequence[tuple[str, ...]], reader: str) -> Json:
    shown = dict.fromkeys(line for some in lines for line in some)
    return {
        "frames": len(lines), "with_text": sum(bool(some) for some in lines), "lines": list(shown)[:_SHOWN],
        "by": identity_of(reader),
    }  # fmt: skip


def _strip(image: "Image", settings: Settings) -> "Image":
    """Return the lower part of a picture."""
    top = round(image.height * (1 - settings.band))
    return fitted(image.crop((0, min(top, image.height - 1), image.width, image.height)), settings.max_side)


def _text(line: str, settings: Settings) -> bool:
    return sum(char.isalpha() for char in line) >= settings.letters


@cache
def reader_of(name: str) -> TextReader:
    """Return a reader by its name, opened once in a process."""
    if name == RAPID:
        return open_reader()
    module, _, attribute = name.partition(":")
    reader: TextReader = getattr(import_module(module), attribute)()
    return reader


def identity_of(name: str) -> str:
    """Return the name of a reader, with the version of the library where it is ours."""
    return f"{RAPID}@{metadata.version(RAPID)}" if name == RAPID else name
