"""Where the pictures behind an evaluation are: in its run folder, or in folders of outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import parse_json, read_plain
from ..outputs.storyboards import Storyboards, check_outputs
from .model import Frame
from .page import Thumbnails

FRAMES = "frames.jsonl"
MOST = 6
"""Most pictures that one case shows."""

Place = tuple[str, str, int | None]
"""Method, unit and seed of a generation."""


@dataclass(frozen=True)
class Shown:
    """The pictures of one generation, in story order."""

    files: tuple[Path, ...]  # their files
    # which scene each shows; None for bridge frames, and where it is not known
    scenes: tuple[int | None, ...]


@dataclass
class Pictures:
    """Finds the pictures of generations and makes the frames of a report from them."""

    shown: Mapping[Place, Shown]  # method, unit and seed -> the pictures
    small: Thumbnails = field(default_factory=Thumbnails, repr=False)  # makes small pictures

    def of_scenes(self, place: Place, scenes: tuple[int, ...], texts: Mapping[int, str]) -> tuple[Frame, ...]:
        """Return the frames from the first to the last of some scenes, bridge frames between them included.

        Where it is not known which scene a picture shows, all pictures are returned, as panels.
        """
        shown = self.shown.get(place)
        if shown is None:
            return ()
        numbers = range(len(shown.files))
        wanted = [n for n in numbers if n < len(shown.scenes) and shown.scenes[n] in scenes]
        if wanted:
            numbers = range(min(wanted), max(wanted) + 1)
        return tuple(self._frame(shown, number, texts) for number in numbers[:MOST])

    def every(self, place: Place) -> tuple[Frame, ...]:
        """Return at most :data:`MOST` pictures of a generation, spread over its length."""
        shown = self.shown.get(place)
        if shown is None or not shown.files:
            return ()
        count = len(shown.files)
        kept = sorted({round(n * (count - 1) / max(1, MOST - 1)) for n in range(MOST)})
        return tuple(self._frame(shown, number, {}) for number in kept)

    def _frame(self, shown: Shown, number: int, texts: Mapping[int, str]) -> Frame:
        scene = shown.scenes[number] if number < len(shown.scenes) else None
        label = f"Panel {number + 1}" if scene is None else f"Scene {scene}"
        return self.small.frame(shown.files[number], label, None if scene is None else texts.get(scene))


def pictures_of_run(folder: Path) -> Pictures:
    """Return the pictures that an evaluation folder holds; none where it is an archive without them."""
    pictures: dict[Place, Shown] = {}
    try:
        lines = read_plain(folder / FRAMES, follow=True).splitlines()
    except OSError:
        return Pictures(pictures)
    for line in lines:
        try:
            row = parse_json(line)
            key = (str(row["method"]), str(row["unit"]), row.get("seed"))
            pictures[key] = _shown(folder, row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the page says where a picture is not at hand
    return Pictures(pictures)


def kept_picture(folder: Path, name: object) -> Path | None:
    """Return a picture that a run keeps; None where it is gone, or its name leads out of the folder."""
    if not isinstance(name, str):
        return None
    root = folder.resolve()
    path = (root / name).resolve()
    return path if path.is_relative_to(root) and path.is_file() else None


def pictures_of_outputs(
    folders: Sequence[Path], records: Sequence[StoryRecord], judged: Mapping[str, Any]
) -> Pictures:
    """Return the pictures in folders of outputs, one method each.

    ``judged``: method -> what the manifest says of its outputs.
    """
    pictures: dict[Place, Shown] = {}
    for folder in folders:
        report = check_outputs(folder, records)
        _check_judged(folder, report, judged)
        for board in report.valid:
            files, scenes = (panel.file for panel in board.files), (panel.scene for panel in board.files)
            pictures[report.method, board.unit, board.seed] = Shown(tuple(files), tuple(scenes))
    return Pictures(pictures)


def _check_judged(folder: Path, report: Storyboards, judged: Mapping[str, Any]) -> None:
    """Refuse outputs that judges did not see: the page would show them beside verdicts on others."""
    about = judged.get(report.method)
    seen = about.get("outputs_sha256") if isinstance(about, Mapping) else None
    if judged and about is None:
        expected, found = f"outputs of one of {', '.join(judged)}", f"outputs of {report.method}"
    elif seen in (None, report.sha256):
        return
    else:
        expected, found = f"the outputs that were judged, SHA-256 {seen}", f"SHA-256 {report.sha256}"
    fix = "give the folder as it was judged, or leave --outputs out"
    raise InputError([UserError(str(folder), expected=expected, found=found, fix=fix)])


def _shown(folder: Path, row: Mapping[str, Any]) -> Shown:
    """Return the pictures of one line; a name that leads out of the folder is no picture of it."""
    root = folder.resolve()
    files = []
    for frame in row["frames"]:
        path = (root / str(frame["file"])).resolve()
        files.append(path if path.is_relative_to(root) else root / "outside")
    scenes = [scene if isinstance(scene, int) else None for scene in row.get("scenes") or ()]
    return Shown(tuple(files), tuple(scenes))
