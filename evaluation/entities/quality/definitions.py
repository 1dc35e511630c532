"""How the picture quality of a shot is measured: settings, and two definitions (B.2, Table 12).

``paper`` is what the paper of EntityBench says (Eq. 2-6), ``vbench`` what VBench 0.1.5 computes, which the
public evaluator runs. Where the paper is silent, what we took is a setting, or a line of
``docs/episodes-evaluation.md``.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, field_validator

from ....errors import ConfigError
from ....models.vision.needs import VisionSettings, opened
from ....models.vision.registry import Kind
from ....schemas.values import Listed
from ..facts import QUALITY
from ..looking.settings import Grounding
from .meters import (
    Likeness,
    Meter,
    Motion,
    Rating,
    Reconstruction,
    Steadiness,
    around,
    each,
    mean,
    pairs,
    share_above,
    with_first,
)
from .vbench_results import read_results

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
        """Return the names of the models that measure."""
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
