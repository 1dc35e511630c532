"""Frames that are asked for: who asks says what they show, somebody else has them made.

A frame follows from story, transition, what it shows and seed, whatever storyboard it is tried in. So arms
that ask for the same frame share it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from ...errors import MissingRequirement, TargetError
from ...models.generators.drawn.scene import DrawnScene
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.katha import StoryRecord
from ...schemas.values import Own
from .annotations import Shows, planned_frame
from .boards import Seed

SUFFIXES = ("png", "jpg", "jpeg", "webp")
WANTED = "frames_wanted.jsonl"


class FrameRequest(Own):
    """One frame that is to be made."""

    story_id: str = Field(description="The story.")
    transition: int = Field(ge=1, description="Number of the transition that it stands at, from 1.")
    shows: Shows = Field(description="What it shows.")
    seed: Seed = Field(description="Generation seed; null for a system that takes none.")
    prompt: str = Field(description="What is to be seen, in words.")
    scene: DrawnScene = Field(description="The same as data, for the one model that draws from data.")

    @property
    def key(self) -> str:
        """Its name, and its path below a folder of frames, without ending."""
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        return f"{self.story_id}/t{self.transition}/{self.shows}{seed}"


Frames: TypeAlias = Mapping[str, Path | None]
"""Key of a request -> its picture; None where the generator made none."""
Render: TypeAlias = Callable[[Sequence[FrameRequest]], Frames]
"""Has frames made; asked again for the same, it gives the same pictures and pays nothing."""


def requests_for(
    record: StoryRecord, transition: int, shows: Shows, seeds: Iterable[Seed]
) -> tuple[FrameRequest, ...]:
    """Return the requests for a frame at a transition, one for each seed."""
    panel = planned_frame(record, transition, shows)
    return tuple(
        FrameRequest(
            story_id=record.story_id, transition=transition, shows=shows, seed=seed, prompt=panel.prompt,
            scene=panel.drawn,
        )
        for seed in seeds
    )  # fmt: skip


def frames_in(folder: Path) -> Render:
    """Return what takes frames from a folder, where somebody put them.

    They are called by the keys of requests: ``STORY/t2/transition/seed_42.png``. Where some are missing, the
    folder gets ``frames_wanted.jsonl``, a line with the prompt for each, and the call stops.
    """

    def render(requests: Sequence[FrameRequest]) -> Frames:
        """Return the pictures.

        Raises:
            MissingRequirement: some are not there. TargetError: the list of them cannot be written.
        """
        there = {request.key: _file(folder, request.key) for request in requests}
        missing = [request for request in requests if there[request.key] is None]
        if missing:
            _write_wanted(folder, missing)
            raise MissingRequirement(
                str(folder),
                what=f"{len(missing)} of {len(requests)} frames are not there; {WANTED} lists them",
                fix="have them made, put each under its key, and give the command again",
            )  # fmt: skip
        return there

    return render


def _file(folder: Path, key: str) -> Path | None:
    paths = (folder / f"{key}.{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _write_wanted(folder: Path, missing: Sequence[FrameRequest]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = ({"file": f"{request.key}.png", **request.as_json()} for request in missing)
        write_atomic(folder / WANTED, jsonl_lines(rows))
    except OSError as error:
        raise TargetError(
            str(folder), what=f"the list of frames cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
