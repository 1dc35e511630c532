"""Stage: shots that do not qualify are rejected, each with a code; the reasons are in docs/shot_detection.md.

Quality is looked at first, then copies, then the content of the video as a whole: a shot has the code of the
first thing that speaks against it. What nobody measured speaks against nothing.
"""

from collections.abc import Iterator

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.values import Own
from .measure_quality import Quality, bars_of
from .names import Shot

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


class Settings(Own):
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


SPEC = StageSpec(
    name="filter_shots",
    version=1,
    shape="map",
    reads=("shot", "quality", "copy_of", "content"),
    writes=("kept",),
    reject_codes={**QUALITY, **CONTENT},
    keep={code: f"--set filter_shots.{setting}=..." for code, setting in DECIDES.items()},
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return which conditions nobody could check, or the first that the shot does not meet."""
    settings = tools.own(Settings)
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


def _size(shot: Shot, quality: Quality, settings: Settings) -> Iterator[Objection]:
    seconds, side, bars = shot.end - shot.start, min(quality.width, quality.height), bars_of(quality).area
    if settings.min_seconds is not None and seconds < settings.min_seconds:
        yield "too_short", f"{seconds:.3g} s; expected at least {settings.min_seconds:g}"
    if settings.max_seconds is not None and seconds > settings.max_seconds:
        yield "too_long", f"{seconds:.4g} s; expected at most {settings.max_seconds:g}"
    if settings.min_side is not None and side < settings.min_side:
        yield "low_resolution", f"{quality.width} x {quality.height}; expected a side of {settings.min_side}"
    if settings.max_bars is not None and bars > settings.max_bars:
        yield "black_bars", f"{bars:.0%} of the frame; expected at most {settings.max_bars:.0%}"


def _light(quality: Quality, settings: Settings) -> Iterator[Objection]:
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


def _beside(copy_of: str | None, content: Json, settings: Settings) -> Iterator[Objection]:
    if settings.copies and copy_of is not None:
        yield "copy", f"looks as {copy_of} does"
    for code, value, most in (
        ("subtitled", content["subtitles"], settings.max_subtitles),
        ("documentary", content["documentary"], settings.max_documentary),
    ):
        if most is not None and value is not None and value > most:
            yield code, f"{value:.0%} of what was looked at in its video; expected at most {most:.0%}"
