"""Storyboards as Semantic Compass handles them: frames in order, and folders of outputs made of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import TargetError
from ...evaluation.outputs.layout import nothing_to_judge
from ...evaluation.outputs.named import MANIFEST
from ...evaluation.outputs.storyboards import check_outputs
from ...schemas.canonical import Json, link_or_copy, pretty_bytes, sha256_file, write_atomic
from ...schemas.katha import StoryRecord
from .scoring import inserted

Seed = int | None


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a storyboard."""

    file: Path  # where it lies
    sha256: str  # of the file
    # index of the scene that it shows; None where that is not known, and for an inserted frame
    scene: int | None = None
    inserted: bool = False  # whether Semantic Compass put it there


@dataclass(frozen=True, slots=True)
class Board:
    """A storyboard of one story."""

    story_id: str  # the story
    seed: Seed  # of the candidate that it is, or is made from; None where there is one per story
    frames: tuple[Frame, ...] = field(repr=False)  # its pictures, in order

    @property
    def bridges(self) -> tuple[int, ...]:
        """Numbers of inserted frames, from 1."""
        return tuple(number for number, frame in enumerate(self.frames, 1) if frame.inserted)

    def spans(self, record: StoryRecord) -> tuple[tuple[int, ...], ...]:
        """Return for each transition the frames from its first scene to its second, from 0.

        None of them where it is not known which frames show these scenes.
        """
        at = {frame.scene: index for index, frame in enumerate(self.frames) if frame.scene is not None}
        spans: list[tuple[int, ...]] = []
        for transition in record.transitions:
            first, last = at.get(transition.from_scene), at.get(transition.to_scene)
            if first is None or last is None or first >= last:
                spans.append(())
            else:
                spans.append(tuple(range(first, last + 1)))
        return tuple(spans)

    def with_frame(self, record: StoryRecord, transition: int, frame: Frame) -> "Board | None":
        """Return the storyboard with a frame behind the first frame of a transition (Eq. 28).

        None where it is not known which frames show the transition.

        ``transition``: its number, from 1.
        """
        span = self.spans(record)[transition - 1]
        if not span:
            return None
        return replace(self, frames=inserted(self.frames, span[0] + 1, replace(frame, inserted=True)))


@dataclass(frozen=True)
class Candidates:
    """The candidate storyboards of a method."""

    method: str  # name of the method
    seeds: tuple[Seed, ...]  # all seeds, in the order in which ties are decided
    boards: Mapping[str, tuple[Board, ...]] = field(repr=False)  # story id -> its valid storyboards, by seed
    invalid: tuple[tuple[str, Seed], ...]  # story id and seed of each generation that cannot be used


def read_candidates(folder: Path, records: Sequence[StoryRecord], known: Iterable[StoryRecord]) -> Candidates:
    """Return the candidates in a method's folder of outputs."""
    report = check_outputs(folder, records, known=known)
    if not report.valid:
        raise nothing_to_judge("storyboard", [report])
    boards: dict[str, list[Board]] = {record.story_id: [] for record in records}
    for output in report.valid:
        frames = tuple(Frame(file.file.absolute(), file.sha256, file.scene) for file in output.files)
        boards[output.unit].append(Board(output.unit, output.seed, frames))
    invalid = tuple((output.unit, output.seed) for output in report.invalid)
    return Candidates(
        report.method, report.seeds, {story: tuple(some) for story, some in boards.items()}, invalid
    )


def frame_of(file: Path) -> Frame:
    """Return a picture as a frame that shows no scene of its own."""
    return Frame(file.absolute(), sha256_file(file))


def write_boards(folder: Path, method: str, boards: Iterable[Board], *, panels: int | None = None) -> Path:
    """Write storyboards as the outputs of a method; what lies there and is right stays, the rest goes."""
    wanted: dict[Path, Path] = {}
    bridges: dict[str, tuple[int, ...]] = {}
    seeds: set[int] = set()
    for board in boards:
        below = Path(board.story_id, *([] if board.seed is None else [f"seed_{board.seed}"]))
        if bridges.setdefault(board.story_id, board.bridges) != board.bridges:
            raise ValueError(f"{method}: bridges of {board.story_id} stand at several places")
        for number, frame in enumerate(board.frames, 1):
            path = below / f"{number:02}{frame.file.suffix.lower()}"
            if wanted.setdefault(path, frame.file) != frame.file:
                raise ValueError(f"{method}: two storyboards want {path}")
        seeds |= set() if board.seed is None else {board.seed}
    manifest: dict[str, Json] = {"method": method}
    manifest |= {"bridges": shown} if (shown := {key: list(at) for key, at in bridges.items() if at}) else {}
    manifest |= {"panels": panels} if panels is not None else {}
    manifest |= {"seeds": sorted(seeds)} if seeds else {}
    try:
        _lay_out(folder, wanted, manifest)
    except OSError as error:
        raise TargetError(
            str(folder), what=f"the folder cannot be written: {error.strerror or error}",
            fix="check the path, its permissions and the space on the disk",
        ) from error  # fmt: skip
    return folder


def _lay_out(folder: Path, wanted: Mapping[Path, Path], manifest: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder) not in wanted and path.name != MANIFEST:
            path.unlink()
    for below, source in wanted.items():
        _link(source, folder / below)
    write_atomic(folder / MANIFEST, [pretty_bytes(manifest)])


def _link(source: Path, target: Path) -> None:
    """Put a picture at a place, without a copy where the disk can do so."""
    if target.exists():
        if target.samefile(source) or sha256_file(target) == sha256_file(source):
            return
        target.unlink()
    link_or_copy(source, target)
