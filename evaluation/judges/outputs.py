"""Generated storyboards on disk: which there are, which can be judged, and what is wrong with the rest.

The layout is described in ``docs/outputs.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...media.images import LIMITS, PictureLimits
from ...schemas.katha import StoryRecord
from ...validators.report import CheckReport


@dataclass(frozen=True, slots=True)
class Storyboard:
    """One generation that can be judged.

    Attributes:
        story_id: of which story.
        seed: seed of the generation; None where the folder holds one generation per story.
        files: its pictures, in panel order.
        scenes: per panel the index of the scene that it shows; None for a bridge frame, and for every panel
            where panels and scenes do not correspond one to one.
    """

    story_id: str
    seed: int | None
    files: tuple[Path, ...]
    scenes: tuple[int | None, ...]

    @property
    def panels(self) -> int:
        """How many pictures it has."""
        return len(self.files)


@dataclass(frozen=True, slots=True)
class InvalidGeneration:
    """One generation that cannot be judged, with the codes of what is wrong with it."""

    story_id: str
    seed: int | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputsReport(CheckReport):
    """The outputs of one method, checked; ``issues`` and ``checked`` as in every check of data.

    Attributes:
        method: the method's name, from ``outputs.json`` or else the folder's.
        folder: where the outputs are.
        seeds: the seeds expected of every story; ``(None,)`` where there is one generation per story.
        storyboards: the generations that can be judged, sorted by story and seed.
        invalid: the others, sorted likewise. Both together are what was requested.
        sha256: hash of the content of all valid storyboards.
    """

    method: str
    folder: Path
    seeds: tuple[int | None, ...]
    storyboards: tuple[Storyboard, ...] = field(repr=False)
    invalid: tuple[InvalidGeneration, ...] = field(repr=False)
    sha256: str

    def accounting(self) -> dict[str, Any]:
        """Return how many stories and generations were requested and are valid, and the invalid rate."""
        raise NotImplementedError


def check_outputs(
    folder: Path,
    records: Iterable[StoryRecord],
    *,
    known: Iterable[str] = (),
    limits: PictureLimits = LIMITS,
) -> OutputsReport:
    """Check the outputs of one method against the stories that are to be judged; decodes every picture.

    Args:
        folder: the outputs of one method.
        records: the stories that are to be judged.
        known: ids of more stories of the release, whose outputs may be there and are left alone.
        limits: what a picture may be at most.

    Raises:
        InputError: the folder is not there, or its ``outputs.json`` cannot be read.
    """
    raise NotImplementedError
