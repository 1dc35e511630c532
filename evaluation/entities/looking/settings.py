"""How videos of episodes are looked at: settings of the stages, and the two definitions of grounding.

``paper`` is what the paper of EntityBench says (B.3.1), ``code`` what its public evaluator does. They differ
in the frames that are looked at, the words that are looked for, and how a crop is cut and rated.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from ....media.shot_detection import Method, networks_of
from ....media.video import even_indices
from ....models.vision.needs import VisionSettings
from ....models.vision.store import Device
from ....releases.entities.tree import EntitySet
from ....schemas.entities import LISTS, EpisodeShot
from ....schemas.values import Listed, Own
from ...judging.settings import ImageSettings
from ...outputs.entities import FEWEST
from ..archived import entity_key

Grounding = Literal["paper", "code"]
Locations = Literal["paper", "code"]
GROUND_FRAMES = FEWEST
"""Frames of a shot that are grounded (N_frame of Table 11)."""
GRID_FRAMES = 6
"""Frames of the action grid (Table 11)."""


@dataclass(frozen=True, slots=True)
class FrameChoice:
    """Which frames of a shot are looked at, by index."""

    # those in which entities are looked for; the canonical crop is cut from one of them
    ground: tuple[int, ...]
    # those that the action grid shows, in order; of a short shot one may be there twice
    grid: tuple[int, ...]

    @property
    def grounded(self) -> tuple[int, ...]:
        """All frames in which boxes are needed, ascending, each once."""
        return tuple(sorted({*self.ground, *self.grid}))


def frames_of(definition: Grounding, frames: int) -> FrameChoice:
    """Return which frames of a shot are looked at.

    ``paper`` says "evenly": number i of n is frame ``floor(i * (frames - 1) / (n - 1))``, for the five that
    are grounded and, apart from these, for the six of the grid. ``code`` takes five between the second frame
    and the last but one, for both; in a shot of five frames the last one counts twice.
    """
    if frames < FEWEST:
        raise ValueError(f"{frames} frames")
    if definition == "paper":
        return FrameChoice(
            even_indices(frames, GROUND_FRAMES), even_indices(frames, min(GRID_FRAMES, frames))
        )
    start, end = 1, frames - 2
    step = max(1.0, (end - start) / (GROUND_FRAMES - 1))
    taken = [min(int(start + number * step), frames - 1) for number in range(GROUND_FRAMES)]
    return FrameChoice(tuple(dict.fromkeys(taken)), tuple(taken))


def scheduled(shot: EpisodeShot) -> tuple[str, ...]:
    """Return the keys of the entities that a shot shows, in the order of its schedule, each once."""
    keys = (entity_key(kind, name) for kind in LISTS.values() for name in shot.scheduled.names(kind))
    return tuple(dict.fromkeys(keys))


@dataclass(frozen=True, slots=True)
class LookingBudget:
    """What looking at one method's videos takes, by the schedule: nothing is missing, shots are long."""

    shots: int  # scheduled shots
    frames: int  # frames that are grounded; each goes through the detector's backbone once
    queries: int  # pairs of a frame and an entity; each goes through the rest of the detector
    appearances: int  # pairs of a shot and an entity: crops at most
    boundaries: int  # first and last frames


def looking_budget(entity_set: EntitySet, definition: Grounding) -> LookingBudget:
    """Return what looking at the videos of a set takes for each method.

    Of a shot, ``code`` grounds five frames, and ``paper`` up to nine: five and six that share the first and
    the last one.
    """
    shots = [shot for episode in entity_set.episodes for shot in episode.script.shots()]
    appearances = sum(len(scheduled(shot)) for shot in shots)
    each = len(frames_of(definition, _LONG).grounded)
    return LookingBudget(len(shots), each * len(shots), each * appearances, appearances, 2 * len(shots))


_LONG = 1000  # frames of a shot that is long enough for its frames to be different ones


class EpisodeSelection(Own):
    """Which episodes are evaluated, and how the outputs of methods are read."""

    episodes: Listed[str] = Field(default=(), description="Only episodes with these ids; none: all.")
    tier: Listed[str] = Field(default=(), description="Only episodes of these tiers; none: all.")
    split: str | None = Field(
        default=None, description="Split file whose tiers count; null: the one that names most episodes."
    )
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")
    cuts_by: Method = Field(
        default="transnetv2",
        description="What finds shots in the video of a whole episode without a cut list.",
    )
    device: Device = Field(default="cpu", description="Where that runs: cpu, cuda or mps.")

    def networks(self) -> dict[str, Any]:
        """Return where what finds shots runs, and the versions of its libraries."""
        return networks_of(self.cuts_by, self.device)


class FrameSettings(Own):
    """Which frames of a shot are taken."""

    grounding: Grounding = Field(default="paper", description="Whose frames are grounded: paper or code.")
    locations: Locations = Field(
        default="paper", description="How sharp a frame is: Laplacian (paper) or first differences (code)."
    )


class GroundSettings(VisionSettings):
    """Who finds entities in frames, and which of what is found is taken."""

    detector: str | None = Field(default=None, description="Name of the detector; null: nobody looks.")
    text: str | None = Field(default=None, description="Encoder of crops and descriptions.")
    definition: Grounding = Field(default="paper", description="How queries, crops and scores are made.")
    present_from: float = Field(
        default=0.2,
        ge=-1,
        le=1,
        description="Least similarity to the description of what is present (Eq. 12).",
    )
    padding: float = Field(default=0.1, ge=0, le=1, description="Share of a box that is added on each side.")
    pairs: int | None = Field(
        default=None, ge=1, le=1024, description="Frames and queries at once; null: 1 on a CPU, 16 on a GPU."
    )

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models."""
        return tuple(name for name in (self.detector, self.text) if name is not None)

    @property
    def pairs_at_once(self) -> int:
        """How many pairs of a frame and a query the detector gets at once."""
        return self.pairs or (1 if self.device == "cpu" else 16)


class AppearanceSettings(VisionSettings):
    """Who makes vectors of crops and frames."""

    encoder: str | None = Field(default=None, description="Name of the encoder; null: nobody looks.")
    definition: Grounding = Field(
        default="paper", description="Whether a picture is seen whole (paper) or its middle (code)."
    )

    def looking(self) -> tuple[str, ...]:
        """Return the name of the encoder, if there is one."""
        return () if self.encoder is None else (self.encoder,)


class GridSettings(ImageSettings):
    """How the labelled grid of a shot's frames is drawn and encoded (Eq. 19)."""

    max_side: int | None = Field(default=None, ge=16, le=8192)
    cell_width: int = Field(default=360, ge=16, le=2048, description="Pixels of a cell across.")
    cell_height: int = Field(default=240, ge=16, le=2048, description="Pixels of a cell down.")
    drawing: Grounding = Field(
        default="paper", exclude_if=lambda value: value == "paper",
        description="Whose boxes, colours and letters: ours after the paper, or those of the public code.",
    )  # fmt: skip
    wanted: bool = Field(default=False, description="Whether somebody judges actions.")
