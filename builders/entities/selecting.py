"""Which shots are kept: how each looks, burnt-in text, copies, kinds of footage, and the limits of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from ...engine.stage import (
    UNAVAILABLE,
    Failed,
    Item,
    Made,
    NoAnswer,
    Outcome,
    Rejected,
    Tools,
    batch_stage,
    stage,
)
from ...media.images import MediaProblem, encode_image, fitted
from ...media.quality import (
    Bars,
    TextReader,
    black_bars,
    difference,
    inside,
    luma,
    open_reader,
    picture_hash,
    sharpness,
)
from ...media.video import even_indices
from ...models.spec import ModelSettings
from ...models.vision.needs import VisionSettings, opened
from ...models.vision.store import Box
from ...schemas.canonical import Json
from ...schemas.values import Own
from .names import Shot
from .pictures import Shown, ask, frames_of, keep

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...media.quality import Luma


# -- Stage: how good a shot looks: sharpness, light, bars, motion, and its beauty to a predictor
#
# What is measured of a shot, the field ``quality``; and which of its frames are looked at.

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
    return Bars(*quality.bars)


def _median(values: Sequence[float]) -> float:
    """Return the middle value, rounded; of an even number the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    middle = ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2
    return round(middle, 4)


class QualitySettings(VisionSettings):
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
        return () if self.aesthetic is None else (self.aesthetic,)


@batch_stage(
    version=2,
    reads=("shot", "among"),
    writes=("quality",),
    libraries=("av", "pillow", "numpy", "scipy"),
    settings=QualitySettings,
    patience=10,
)
def measure_quality(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
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
    settings = tools.own(QualitySettings)
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
    settings = tools.own(QualitySettings)
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


# -- Stage: whether text stands where subtitles do, in a few frames of a shot. Optional: the extra ``ocr``

RAPID = "rapidocr"
_SHOWN = 3  # lines that are kept to look at


class SubtitleSettings(Own):
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


@batch_stage(
    version=2,
    reads=("shot",),
    writes=("subtitles",),
    libraries=("av", "pillow"),
    settings=SubtitleSettings,
    patience=10,
)
def read_subtitles(items: Sequence[Item], tools: Tools) -> Sequence[Outcome]:
    """Return how many frames of each shot were read, and how many have text; null where nobody reads.

    ``lines`` are the first lines that were read; ``by`` is who read them.
    """
    settings = tools.own(SubtitleSettings)
    if settings.reader is None:
        return [Made({"subtitles": None}) for _ in items]
    shots = [Shot.model_validate(item["shot"]) for item in items]
    made: dict[str, Outcome] = {}
    for _, some in groupby(shots, key=lambda shot: shot.video.file):
        made |= _read(list(some), tools)
    return [made[shot.shot_id] for shot in shots]


def _read(shots: Sequence[Shot], tools: Tools) -> Mapping[str, Outcome]:
    """Return outcomes of shots of one video: it is gone through once, or once per shot where one fails."""
    settings = tools.own(SubtitleSettings)
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


def _strip(image: "Image", settings: SubtitleSettings) -> "Image":
    """Return the lower part of a picture."""
    top = round(image.height * (1 - settings.band))
    return fitted(image.crop((0, min(top, image.height - 1), image.width, image.height)), settings.max_side)


def _text(line: str, settings: SubtitleSettings) -> bool:
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


# -- Stage: what shows only beside other shots: copies of a shot, and what footage its video is as a whole
#
# Two shots are copies where they are as long, and each of the frames that were looked at looks the same: that
# finds what was uploaded twice or encoded again, and leaves alone shots that come back to a place. Of copies
# one stays, and one that stayed before goes on to stay.


class CompareSettings(Own):
    """When two shots are copies."""

    bits: int = Field(
        default=40, ge=0, le=255, description="Bits, of 255, in which frames that look the same may differ."
    )
    length: float = Field(default=0.02, ge=0, le=1, description="Share by which their lengths may differ.")
    plain: float = Field(
        default=8.0, ge=0, description="Contrast of a plain shot at most: all of these look the same."
    )


@stage(
    version=1,
    shape="gather",
    reads=("shot", "quality", "subtitles", "style"),
    writes=("copy_of", "content"),
    libraries=("numpy",),
    settings=CompareSettings,
    stateful=True,
)
def compare_shots(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each shot the id of the shot that it is a copy of, or null; and what its video is.

    ``content`` holds the share of read frames with text (``subtitles``) and the share of judged shots that
    are documentary-style (``documentary``), null where nobody looked, with the numbers behind them.
    """
    settings = tools.own(CompareSettings)
    given = list(items)
    stayed = {key for key, fields in tools.previous.items() if fields["copy_of"] is None}
    order = sorted(given, key=lambda item: (item.id not in stayed, item.id))
    copies = copies_of([_Look.of(item) for item in order], settings)
    videos: dict[str, list[Item]] = {}
    for item in given:
        videos.setdefault(item["shot"]["video"]["video_id"], []).append(item)
    content = {name: content_of(shots) for name, shots in videos.items()}
    return {
        item.id: {"copy_of": copies.get(item.id), "content": content[item["shot"]["video"]["video_id"]]}
        for item in given
    }


@dataclass(frozen=True, slots=True)
class _Look:
    shot_id: str
    seconds: float
    hashes: tuple[str, ...]
    contrast: float

    @classmethod
    def of(cls, item: Item) -> "_Look":
        shot, quality = item["shot"], item["quality"]
        seconds = float(shot["end"]) - float(shot["start"])
        return cls(item.id, seconds, tuple(quality["hashes"]), float(quality["contrast"]))


def copies_of(looks: Sequence[_Look], settings: CompareSettings) -> dict[str, str]:
    """Return shots that are copies, each with the first of the others that it is a copy of and that stays."""
    import numpy as np

    distinct = [look for look in looks if look.contrast > settings.plain and look.hashes]
    if len(distinct) < 2:
        return {}
    lengths = np.array([look.seconds for look in distinct])
    by_length = np.argsort(lengths, kind="stable")
    ordered = lengths[by_length]
    middle = np.array([list(bytes.fromhex(look.hashes[len(look.hashes) // 2])) for look in distinct])
    ones = np.array([value.bit_count() for value in range(256)])
    stays = np.ones(len(distinct), dtype=bool)
    copies = {}
    for number, look in enumerate(distinct):
        least, most = look.seconds * (1 - settings.length), look.seconds * (1 + settings.length)
        near = by_length[np.searchsorted(ordered, least) : np.searchsorted(ordered, most, side="right")]
        near = np.sort(near[(near < number) & stays[near]])
        alike = near[ones[middle[near] ^ middle[number]].sum(axis=1) <= settings.bits]
        other = next(
            (distinct[index] for index in alike if _alike(distinct[index], look, settings.bits)), None
        )
        if other is not None:
            stays[number] = False
            copies[look.shot_id] = other.shot_id
    return copies


def _alike(first: _Look, other: _Look, bits: int) -> bool:
    pairs = zip(first.hashes, other.hashes, strict=False)
    return len(first.hashes) == len(other.hashes) and all(
        (int(a, 16) ^ int(b, 16)).bit_count() <= bits for a, b in pairs
    )


def content_of(shots: Sequence[Item]) -> Json:
    """Return what the shots of a video show of its content as a whole."""
    read = [item["subtitles"] for item in shots if item["subtitles"] is not None]
    kinds = [item["style"]["kind"] for item in shots if item["style"] is not None]
    kinds = [kind for kind in kinds if kind is not None]
    frames, text = sum(entry["frames"] for entry in read), sum(entry["with_text"] for entry in read)
    documentary = sum(kind in DOCUMENTARY for kind in kinds)
    return {
        "frames_read": frames,
        "subtitles": round(text / frames, 4) if frames else None,
        "shots_judged": len(kinds),
        "documentary": round(documentary / len(kinds), 4) if kinds else None,
    }


# -- What kind of footage a shot is, asked of a chat model about a few shots of each video. Optional

STYLE_PROMPT = "entities/judge_style"
DOCUMENTARY = ("documentary", "interview", "news", "presentation")
"""Kinds of documentary-style footage, in the words of the prompt."""


@stage(version=1, reads=("shot", "quality"), writes=("style",), settings=ModelSettings, asks=(STYLE_PROMPT,))
async def judge_style(item: Item, tools: Tools) -> Outcome:
    """Return the ``kind`` of footage, why, and who said so; null for shots that nobody is asked about.

    Where there is no answer the kind is null, with the reason why.
    """
    view = item["quality"]["view"]
    if tools.asker is None or view is None:
        return Made({"style": None})
    try:
        answer = await ask(tools, STYLE_PROMPT, read_kind, [Shown("The frame:", (view,))])
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return Made({"style": {"kind": None, "reason": failure.code, "by": None}})
    return Made({"style": {**answer.value, "by": answer.maker}})


def read_kind(reply: Json) -> dict[str, Json]:
    return {"kind": reply["kind"], "reason": str(reply["reason"])}


# -- Stage: shots that do not qualify are rejected, each with a code; the reasons are in
# docs/shot_detection.md
#
# Quality is looked at first, then copies, then the content of the video as a whole: a shot has the code of
# the first thing that speaks against it. What nobody measured speaks against nothing.

QUALITY = {
    "too_short": "The shot is shorter than a story's action takes.",
    "too_long": "The shot is longer than a shot of an episode may be.",
    "low_resolution": "The picture between its bars is too small to tell people by.",
    "black_bars": "Black bars cover too much of the frame.",
    "dark": "The shot is too dark.",
    "bright": "The shot is too bright.",
    "blurred": "Nothing in the shot has a crisp edge.",
    "static": "Nothing moves in the shot: a still, a title card or a frozen frame.",
    "low_aesthetic": "The predictor of beauty gives it a low value.",
    "copy": "The shot is a copy of another one that stays.",
}
"""Codes about one shot: the first stage of the curation funnel."""
CONTENT = {
    "subtitled": "Too many frames of its video have text where subtitles stand.",
    "documentary": "Too many shots of its video are documentary-style.",
}
"""Codes about a whole video: the second stage of the curation funnel."""

DECIDES = {
    "too_short": "min_seconds", "too_long": "max_seconds", "low_resolution": "min_side",
    "black_bars": "max_bars", "dark": "min_brightness", "bright": "max_brightness",
    "blurred": "min_sharpness", "static": "min_motion",
    "low_aesthetic": "min_aesthetic", "copy": "copies", "subtitled": "max_subtitles",
    "documentary": "max_documentary",
}  # fmt: skip
"""Code -> the setting that decides about it."""


class FilterSettings(Own):
    """What a shot must have; 0, or for an upper limit the highest value, leaves a condition out."""

    min_seconds: float | None = Field(default=1.0, ge=0, description="Length at least.")
    max_seconds: float | None = Field(default=None, gt=0, description="Length at most.")
    min_side: int | None = Field(default=240, ge=1, description="Shorter side of the picture, without bars.")
    max_bars: float | None = Field(
        default=0.35, ge=0, le=1, description="Share of the frame that bars cover."
    )
    min_brightness: float | None = Field(default=20.0, ge=0, le=255, description="Mean luma at least.")
    max_brightness: float | None = Field(default=235.0, ge=0, le=255, description="Mean luma at most.")
    min_sharpness: float | None = Field(default=20.0, ge=0, description="Variance of the Laplacian.")
    min_motion: float | None = Field(
        default=0.25, ge=0, description="Difference of frames a tenth of a second apart, or of any two."
    )
    min_aesthetic: float | None = Field(default=4.0, description="Value of the predictor, where one looked.")
    copies: bool = Field(default=True, description="Whether copies of other shots go.")
    max_subtitles: float | None = Field(
        default=0.5, ge=0, le=1, description="Share of a video's frames with subtitles at most."
    )
    max_documentary: float | None = Field(
        default=0.5, ge=0, le=1, description="Share of a video's judged shots of documentary style at most."
    )


@stage(
    version=1,
    reads=("shot", "quality", "copy_of", "content"),
    writes=("kept",),
    reject_codes={**QUALITY, **CONTENT},
    keep={code: f"--set filter_shots.{setting}=..." for code, setting in DECIDES.items()},
    settings=FilterSettings,
)
def filter_shots(item: Item, tools: Tools) -> Outcome:
    """Return which conditions nobody could check, or the first that the shot does not meet."""
    settings = tools.own(FilterSettings)
    shot, quality = Shot.model_validate(item["shot"]), Quality.model_validate(item["quality"])
    for code, reason in (
        *_size(shot, quality, settings),
        *_light(quality, settings),
        *_beside(item["copy_of"], item["content"], settings),
    ):
        return Rejected(code, reason)
    content = item["content"]
    values = {
        "low_aesthetic": quality.aesthetic, "subtitled": content["subtitles"],
        "documentary": content["documentary"],
    }  # fmt: skip
    return Made({"kept": {"unchecked": [code for code, value in values.items() if value is None]}})


Objection = tuple[str, str]


def _size(shot: Shot, quality: Quality, settings: FilterSettings) -> Iterator[Objection]:
    seconds, side, bars = shot.end - shot.start, min(quality.width, quality.height), bars_of(quality).area
    if settings.min_seconds is not None and seconds < settings.min_seconds:
        yield "too_short", f"{seconds:.3g} s; expected at least {settings.min_seconds:g}"
    if settings.max_seconds is not None and seconds > settings.max_seconds:
        yield "too_long", f"{seconds:.4g} s; expected at most {settings.max_seconds:g}"
    if settings.min_side is not None and side < settings.min_side:
        yield "low_resolution", f"{quality.width} x {quality.height}; expected a side of {settings.min_side}"
    if settings.max_bars is not None and bars > settings.max_bars:
        yield "black_bars", f"{bars:.0%} of the frame; expected at most {settings.max_bars:.0%}"


def _light(quality: Quality, settings: FilterSettings) -> Iterator[Objection]:
    light, beauty = quality.brightness, quality.aesthetic
    if settings.min_brightness is not None and light < settings.min_brightness:
        yield "dark", f"mean luma {light:.3g}; expected at least {settings.min_brightness:g}"
    if settings.max_brightness is not None and light > settings.max_brightness:
        yield "bright", f"mean luma {light:.4g}; expected at most {settings.max_brightness:g}"
    if settings.min_sharpness is not None and quality.sharpness < settings.min_sharpness:
        yield "blurred", f"sharpness {quality.sharpness:.3g}; expected at least {settings.min_sharpness:g}"
    if settings.min_motion is not None and max(quality.motion, quality.change) < settings.min_motion:
        yield "static", f"motion {quality.motion:.2g}; expected at least {settings.min_motion:g}"
    if settings.min_aesthetic is not None and beauty is not None and beauty < settings.min_aesthetic:
        yield "low_aesthetic", f"{beauty:.3g}; expected at least {settings.min_aesthetic:g}"


def _beside(copy_of: str | None, content: Json, settings: FilterSettings) -> Iterator[Objection]:
    if settings.copies and copy_of is not None:
        yield "copy", f"looks as {copy_of} does"
    for code, value, most in (
        ("subtitled", content["subtitles"], settings.max_subtitles),
        ("documentary", content["documentary"], settings.max_documentary),
    ):
        if most is not None and value is not None and value > most:
            yield code, f"{value:.0%} of what was looked at in its video; expected at most {most:.0%}"
