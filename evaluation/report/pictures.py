"""Pictures of a report: found in a run folder or in outputs, made small, within a budget."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, UserError
from ...media.images import encode_image, fitted, open_picture
from ...models.vision.store import Box, cut
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import parse_json, read_plain
from ..outputs.layout import VIDEOS
from ..outputs.storyboards import Storyboards, check_outputs
from .model import Frame, Snap

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE, SHOT_SIDE, CROP_SIDE, QUALITY = 360, 240, 96, 70
"""Longer sides in pixels of frames, shots and crops, and quality, of embedded pictures."""
MEGABYTES = 12.0
"""Size of all embedded pictures together, where no other is asked for."""
GONE, SPENT = "picture not available", "left out: there is no room for more pictures in this page"


@dataclass
class Thumbnails:
    """Makes small JPEGs without metadata as data URLs, until their budget is spent."""

    side: int = SIDE  # longer side of frames
    budget: int | None = None  # characters of data that are left; None for no limit
    made: int = 0  # pictures that were embedded
    gone: int = 0  # pictures that were not at hand
    spent: int = 0  # pictures that the budget left out
    _frames: dict[Path | None, Snap] = field(default_factory=dict, repr=False)
    _last: "tuple[Path, Image] | None" = field(default=None, repr=False)

    @classmethod
    def within(cls, megabytes: float) -> "Thumbnails":
        """Return what makes so many megabytes of pictures."""
        return cls(budget=int(megabytes * 1_000_000))

    def frame(self, path: Path | None, label: str, text: str | None = None) -> Frame:
        """Return the frame for a file, made once; without its picture where it cannot be opened."""
        if path not in self._frames:
            self._frames[path] = self.whole(path, self.side)[0]
        snap = self._frames[path]
        return Frame(label=label, text=text, width=snap.width, height=snap.height, data=snap.data)

    def whole(self, file: Path | None, side: int = SHOT_SIDE) -> tuple[Snap, tuple[int, int] | None]:
        """Return a picture, and its size before it was made small; None where there is none."""
        image = self._open(file)
        if image is None:
            return self.none(), None
        return self._small(image, side), (image.width, image.height)

    def crop(self, file: Path | None, box: Sequence[float] | None) -> Snap:
        """Return the part of a picture in a box; all of it without one."""
        image = self._open(file)
        part = (
            image
            if image is None or box is None
            else cut(image, Box(box[0], box[1], box[2], box[3]), "clamped")
        )
        return self.none() if part is None else self._small(part, CROP_SIDE)

    def none(self) -> Snap:
        """Return the place of a picture that is not at hand."""
        self.gone += 1
        return Snap(lost=GONE)

    def _open(self, file: Path | None) -> "Image | None":
        """Return a picture, of a clip its first frame; None where it is gone or cannot be opened."""
        if file is None:
            return None
        if self._last is None or self._last[0] != file:
            try:
                if file.suffix.lower() in VIDEOS:
                    from ...media.video import first_frame

                    self._last = file, first_frame(file).image
                else:
                    self._last = file, open_picture(file).image
            except UserError:
                return None
        return self._last[1]

    def _small(self, image: "Image", side: int) -> Snap:
        small = fitted(image, side)
        data = encode_image(small, format="jpeg", quality=QUALITY)
        text = f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
        if self.budget is not None and len(text) > self.budget:
            self.budget, self.spent = 0, self.spent + 1
            return Snap(lost=SPENT)
        if self.budget is not None:
            self.budget -= len(text)
        self.made += 1
        return Snap(width=small.width, height=small.height, data=text)


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
    small: Thumbnails = field(default_factory=lambda: Thumbnails.within(MEGABYTES), repr=False)
    # method -> what its pictures are called that show no scene that is known; panels where it does not say
    nouns: Mapping[str, str] = field(default_factory=dict)

    def of_scenes(self, place: Place, scenes: tuple[int, ...], texts: Mapping[int, str]) -> tuple[Frame, ...]:
        """Return the frames from the first to the last of some scenes, bridge frames between them included.

        Where it is not known which scene a picture shows, all pictures are returned.
        """
        shown = self.shown.get(place)
        if shown is None:
            return ()
        numbers = range(len(shown.files))
        wanted = [n for n in numbers if n < len(shown.scenes) and shown.scenes[n] in scenes]
        if wanted:
            numbers = range(min(wanted), max(wanted) + 1)
        return tuple(self._frame(place, number, texts) for number in numbers[:MOST])

    def every(self, place: Place) -> tuple[Frame, ...]:
        """Return at most :data:`MOST` pictures of a generation, spread over its length."""
        shown = self.shown.get(place)
        if shown is None or not shown.files:
            return ()
        count = len(shown.files)
        kept = sorted({round(n * (count - 1) / max(1, MOST - 1)) for n in range(MOST)})
        return tuple(self._frame(place, number, {}) for number in kept)

    def _frame(self, place: Place, number: int, texts: Mapping[int, str]) -> Frame:
        shown = self.shown[place]
        scene = shown.scenes[number] if number < len(shown.scenes) else None
        label = f"{self.nouns.get(place[0], 'Panel')} {number + 1}" if scene is None else f"Scene {scene}"
        return self.small.frame(shown.files[number], label, None if scene is None else texts.get(scene))


def pictures_of_run(folder: Path, nouns: Mapping[str, str] | None = None) -> Pictures:
    """Return the pictures that an evaluation folder holds; none where it is an archive without them."""
    pictures: dict[Place, Shown] = {}
    try:
        lines = read_plain(folder / FRAMES, follow=True).splitlines()
    except OSError:
        return Pictures(pictures, nouns=nouns or {})
    for line in lines:
        try:
            row = parse_json(line)
            key = (str(row["method"]), str(row["unit"]), row.get("seed"))
            pictures[key] = _shown(folder, row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the page says where a picture is not at hand
    return Pictures(pictures, nouns=nouns or {})


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
