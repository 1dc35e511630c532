"""Single shots as a report shows them: the picture with its boxes, whom they show, what the script asks.

Pictures are small JPEGs of shots, crops and references, within a budget.

Where the pictures behind an evaluation of shot images are: found by place, known by their hash.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import ConfigError, InputError, UserError
from ....media.images import encode_image, fitted
from ....releases.shots.references import IMAGES
from ....releases.shots.tree import FOLDER, SCRIPT
from ....schemas.canonical import sha256_file
from ....schemas.judgement import EvaluationManifest
from ....schemas.plain_files import composed, read_plain
from ....schemas.shots import Shot, ShotScript, TwoTexts
from ...archive.archive import sources_of
from ...metrics.story import FoundStory
from ...outputs.shot_folders import Choice, find_root, shot_number, story_folders
from ...report.model import DrawnBox, Onstage, ShotCard, Snap, StyleMatrix, WallCrop, WallRow
from ...report.pictures import kept_picture
from ..found import crop_of, open_shot
from ..load_stories import OUTPUTS, SHOTS
from ..references import generated_references
from ..scores import ImageScores
from ..tables import Key, ShotScore, style_table

if TYPE_CHECKING:
    from PIL.Image import Image


MOST_BYTES = 64_000_000
_MOST_FILES = 400


@dataclass
class ShotFiles:
    """Finds pictures of shots and references; gives a file only if it is the one that was evaluated."""

    folder: Path  # the evaluation folder
    roots: Mapping[str, Path]  # method -> folder of its outputs
    release: Path | None  # the set of scripts; None where it is not at hand
    choice: Choice  # which mode, language and time stamp of outputs
    first: int = 1  # number of the first shot in file names
    own_references: bool = False  # whether references were those that methods drew
    changed: set[str] = field(default_factory=set)  # files that are there and are not what was evaluated
    _listed: dict[str, dict[int, list[Path]]] = field(default_factory=dict, repr=False)
    _hashed: dict[Path, dict[str, Path]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, folder: Path, manifest: EvaluationManifest, release: Path | None, outputs: Sequence[Path]
    ) -> "ShotFiles":
        """Return what finds the pictures of an evaluation.

        ``release``: the set of scripts; None for the place that the evaluation names.
        """
        environment = manifest.environment
        selection = _mapping(environment.get("selection"))
        known = sources_of(folder, manifest)
        roots = {composed(path.name): path for role, path in known if role == OUTPUTS}
        roots |= _given(outputs, _mapping(manifest.subject.get("methods")))
        if release is None:
            release = next((path for role, path in known if role == SHOTS), None)
        choice = Choice(*(_option(selection.get(name)) for name in ("mode", "language", "timestamp")))
        own = manifest.protocol.get("references") == "generated"
        return cls(folder, roots, release, choice, 0 if selection.get("first_shot") == 0 else 1, own)

    def shot(self, method: str, story_id: str, number: int, sha256: str | None) -> Path | None:
        """Return the picture of a shot; None where it is not at hand."""
        if sha256 is None:
            return None
        files = self._of_method(method).get(_number(story_id), [])
        for file in files:
            said = shot_number(file)
            if said is not None and said + 1 - self.first == number:
                if _sha256(file) == sha256:
                    return file
                self.changed.add(f"{method}/{story_id}/{file.name}")
        return None

    def view(self, file: object) -> Path | None:
        """Return a picture that judging kept in the run folder."""
        return kept_picture(self.folder, file)

    def reference(self, story: FoundStory, sha256: str) -> Path | None:
        """Return a reference image of a story by its hash; None where it is not at hand."""
        if self.own_references:
            return self._drawn(story).get(sha256)
        folder = self.story_folder(story.story_id)
        return None if folder is None else self._by_hash(folder / IMAGES).get(sha256)

    def story_folder(self, story_id: str) -> Path | None:
        """Return the folder of a story's script and references; None where it is not at hand."""
        if self.release is None or not story_id.isdigit():
            return None
        root = self.release / FOLDER if (self.release / FOLDER).is_dir() else self.release
        return root / story_id if (root / story_id).is_dir() else None

    def _of_method(self, method: str) -> dict[int, list[Path]]:
        if method not in self._listed:
            listed: dict[int, list[Path]] = {}
            if method in self.roots:
                try:
                    for folder in story_folders(find_root(self.roots[method], self.choice), self.choice):
                        listed.setdefault(int(folder.story_id), []).extend(folder.files)
                except (InputError, ConfigError, OSError):
                    listed = {}  # the page says where a picture is not at hand
            self._listed[method] = listed
        return self._listed[method]

    def _drawn(self, story: FoundStory) -> dict[str, Path]:
        root = self.roots.get(story.method)
        if root is None:
            return {}
        key = root / story.story_id / "characters"
        if key not in self._hashed:
            try:
                drawn = generated_references(find_root(root, self.choice), self.choice)
                files = [file for some in drawn.get(_number(story.story_id), {}).values() for file in some]
            except (InputError, ConfigError, OSError):
                files = []
            self._hashed[key] = _hashes(files)
        return self._hashed[key]

    def _by_hash(self, folder: Path) -> dict[str, Path]:
        if folder not in self._hashed:
            files = sorted(folder.rglob("*")) if folder.is_dir() else []
            self._hashed[folder] = _hashes(files)
        return self._hashed[folder]


def _given(outputs: Sequence[Path], methods: Mapping[str, Any]) -> dict[str, Path]:
    given = {composed(path.resolve().name): path for path in outputs}
    problems = [
        UserError(
            str(path), what=f"{name} is none of the methods that were evaluated: {', '.join(methods)}",
            fix="give the folder as it was evaluated: its name is the method's",
        )
        for name, path in given.items()
        if name not in methods or not path.is_dir()
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return given


def _hashes(files: Sequence[Path]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for file in files[:_MOST_FILES]:
        sha256 = _sha256(file)
        if sha256 is not None:
            paths.setdefault(sha256, file)
    return paths


def _sha256(file: Path) -> str | None:
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        return sha256_file(file)
    except OSError:
        return None


def _number(story_id: str) -> int:
    return int(story_id) if story_id.isascii() and story_id.isdigit() else -1


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _option(value: object) -> str | None:
    return value if isinstance(value, str) else None


SHOT_SIDE, CROP_SIDE, QUALITY = 240, 96, 70
"""Longer sides in pixels of shots and of crops, and quality, of embedded pictures."""
MEGABYTES = 12.0
"""Size of all embedded pictures together, where no other is asked for."""
GONE, SPENT = "picture not available", "left out: there is no room for more pictures in this page"


@dataclass
class Snaps:
    """Makes small pictures until their budget is spent."""

    budget: int = int(MEGABYTES * 1_000_000)  # characters of data that are left
    made: int = 0  # pictures that were embedded
    gone: int = 0  # pictures that were not at hand
    spent: int = 0  # pictures that the budget left out
    _last: "tuple[Path, Image] | None" = field(default=None, repr=False)

    def whole(self, file: Path | None, side: int = SHOT_SIDE) -> tuple[Snap, tuple[int, int] | None]:
        """Return a shot's picture, and its size before it was made small; None where there is none."""
        image = self.open(file)
        if image is None:
            return self.none(), None
        return self._small(image, side), (image.width, image.height)

    def crop(self, file: Path | None, box: Sequence[float] | None) -> Snap:
        """Return the part of a picture in a box; all of it without one."""
        image = self.open(file)
        part = image if image is None or box is None else crop_of(image, box)
        return self.none() if part is None else self._small(part, CROP_SIDE)

    def none(self) -> Snap:
        """Return the place of a picture that is not at hand."""
        self.gone += 1
        return Snap(lost=GONE)

    def open(self, file: Path | None) -> "Image | None":
        """Return a picture; None where it is gone or cannot be opened."""
        if file is None:
            return None
        if self._last is None or self._last[0] != file:
            try:
                self._last = file, open_shot(file)
            except UserError:
                return None
        return self._last[1]

    def _small(self, image: "Image", side: int) -> Snap:
        small = fitted(image, side)
        data = encode_image(small, format="jpeg", quality=QUALITY)
        text = f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
        if len(text) > self.budget:
            self.budget, self.spent = 0, self.spent + 1
            return Snap(lost=SPENT)
        self.budget -= len(text)
        self.made += 1
        return Snap(width=small.width, height=small.height, data=text)


LANGUAGE = "en"
BOX = 5
"""Numbers of a box: left, top, right, bottom, score."""


@dataclass
class Looked:
    """An evaluation as its report looks at it."""

    scores: ImageScores  # the scores
    stories: Mapping[Key, FoundStory]  # method and story -> the line of the archive
    shots: Mapping[Key, tuple[ShotScore, ...]]  # method and story -> its shots
    files: ShotFiles  # where the pictures are
    snaps: Snaps  # makes them small
    # pictures that judges saw are smaller than the evaluated ones if a side is as long as this; 0 where that
    # is not known
    side: int = 0
    _scripts: dict[str, ShotScript | None] = field(default_factory=dict, repr=False)

    def by_method(self) -> dict[str, list[ShotScore]]:
        """Return method -> all its shots."""
        every: dict[str, list[ShotScore]] = {method.method: [] for method in self.scores.methods}
        for (method, _), some in self.shots.items():
            every[method].extend(some)
        return every

    def card(self, shot: ShotScore) -> ShotCard:
        """Return one shot."""
        story = self.stories[shot.method, shot.story_id]
        file, whole = self._picture(shot, story)
        picture, size = self.snaps.whole(file) if shot.sha256 is not None else (_NOTHING, None)
        who = {match.crop: match.character for match in shot.matches if match.crop is not None}
        boxes = []
        if size is not None and whole and picture.data is not None:
            for index, box in enumerate(shot.boxes or ()):
                drawn = _drawn(box, size, index + 1, who.get(index))
                boxes.extend([drawn] if drawn is not None else [])
        return ShotCard(
            method=shot.method,
            story_id=shot.story_id,
            number=shot.number,
            picture=picture,
            boxes=tuple(boxes),
            onstage=shot.onstage,
            found=None if shot.boxes is None else len(shot.boxes),
            cast=tuple(
                Onstage(
                    character=match.character,
                    box=None if match.crop is None else match.crop + 1,
                    similarity=match.cross,
                    missed=None if match.missed is None else match.missed.replace("image", "picture"),
                )
                for match in shot.matches
            ),
            values=dict(shot.values),
            missing=dict(shot.missing),
            texts=self._texts(story, shot.number),
        )

    def wall(self, story: FoundStory) -> tuple[WallRow, ...]:
        """Return the characters of a story, each with its references and crops."""
        if story.crops is None:
            return ()
        shots = self.shots[story.method, story.story_id]
        return tuple(self._row(story, key, tag, shots) for key, tag in story.characters.items())

    def _row(self, story: FoundStory, key: str, tag: str | None, shots: tuple[ShotScore, ...]) -> WallRow:
        boxes = reference_boxes(story, key)
        references = []
        for index, sha256 in enumerate(story.references.get(key, ())):
            box = boxes[index] if index < len(boxes) else None
            references.append(self.snaps.crop(self.files.reference(story, sha256), box))
        crops, missed = [], []
        for shot in shots:
            for match in shot.matches:
                if match.character != key:
                    continue
                if match.crop is None:
                    missed.append(f"{shot.number} ({(match.missed or '').replace('image', 'picture')})")
                    continue
                crops.append(
                    WallCrop(
                        shot=shot.number,
                        picture=self._crop(story, shot, key, match.crop),
                        similarity=match.cross,
                    )
                )
        known = [crop.similarity for crop in crops if crop.similarity is not None]
        mean = sum(known) / len(known) if known else None
        return WallRow(
            character=key, tag=tag, references=tuple(references), crops=tuple(crops), mean=mean,
            missed=tuple(missed),
        )  # fmt: skip

    def _crop(self, story: FoundStory, shot: ShotScore, key: str, index: int) -> Snap:
        box = (shot.boxes or ())[index] if index < len(shot.boxes or ()) else None
        file, whole = self._picture(shot, story)
        if file is not None and whole and box is not None:
            return self.snaps.crop(file, box)
        views = story.views.get("crops")
        for view in views if isinstance(views, list) else ():  # what a judge was shown of this very box
            wanted = {"shot": shot.number, "character": key, "box": list(box or ())}
            if isinstance(view, dict) and wanted.items() <= {name: view.get(name) for name in wanted}.items():
                return self.snaps.crop(self.files.view(view.get("file")), None)
        return self.snaps.none()

    def _picture(self, shot: ShotScore, story: FoundStory) -> tuple[Path | None, bool]:
        """Return a shot's picture, and whether boxes fit it: those that judges saw may be smaller."""
        file = self.files.shot(shot.method, shot.story_id, shot.number, shot.sha256)
        if file is not None:
            return file, True
        views = story.views.get("shots")
        view = views.get(str(shot.number)) if isinstance(views, dict) else None
        if not isinstance(view, dict):
            return None, False
        sides = [view.get("width"), view.get("height")]
        return self.files.view(view.get("file")), all(
            isinstance(side, int) and side < self.side for side in sides
        )

    def _texts(self, story: FoundStory, number: int) -> dict[str, str]:
        script = self._script(story)
        shot = None if script is None else next((shot for shot in script.shots if shot.index == number), None)
        if shot is None:
            return {}
        parts = {"Setting": shot.setting, "Framing": shot.perspective, "Description": shot.static}
        return {name: text for name, part in parts.items() if (text := _text(part))}

    def _script(self, story: FoundStory) -> ShotScript | None:
        """Return a story's script; None where it is not at hand, or names other shots or characters."""
        if story.story_id not in self._scripts:
            folder, script = self.files.story_folder(story.story_id), None
            try:
                if folder is not None:
                    script = ShotScript.model_validate_json(read_plain(folder / SCRIPT, follow=True))
            except (OSError, ValueError):
                script = None
            self._scripts[story.story_id] = script
        script = self._scripts[story.story_id]
        return script if script is not None and _fits(script, story) else None


_NOTHING = Snap(lost="no picture was generated")


def style_matrix(looked: Looked, key: Key) -> StyleMatrix | None:
    """Return how alike the styles of a story's pictures are; None where nobody looked."""
    styles = style_table(looked.stories[key])
    story = next(
        story for method in looked.scores.methods if method.method == key[0]
        for story in method.stories if story.story_id == key[1]
    )  # fmt: skip
    if styles is None or "csd_self" not in story.scores:
        return None
    numbers, table = styles
    cross = {shot.number: shot.values.get("csd_cross") for shot in looked.shots[key]}
    return StyleMatrix(
        shots=numbers,
        rows=tuple(tuple(None if isnan(cosine) else float(cosine) for cosine in row) for row in table),
        cross=tuple(cross.get(number) for number in numbers),
        score=story.scores["csd_self"],
    )


def reference_boxes(story: FoundStory, key: str) -> list[Sequence[float] | None]:
    """Return the box of each reference of a character; None where it counts whole, or has none."""
    boxes_of_characters = (story.boxes or {}).get("references")
    boxes = boxes_of_characters.get(key) if isinstance(boxes_of_characters, dict) else None
    return [
        some[0]
        if isinstance(some, list) and some and isinstance(some[0], list) and len(some[0]) == BOX
        else None
        for some in (boxes if isinstance(boxes, list) else ())
    ]


def _drawn(
    box: tuple[float, ...], size: tuple[int, int], number: int, character: str | None
) -> DrawnBox | None:
    """Return a box as shares of its picture; None where it lies outside."""
    left, top = max(0.0, box[0] / size[0]), max(0.0, box[1] / size[1])
    right, bottom = min(1.0, box[2] / size[0]), min(1.0, box[3] / size[1])
    if not (right > left and bottom > top):
        return None
    return DrawnBox(
        left=left, top=top, width=right - left, height=bottom - top, number=number, character=character
    )


def _fits(script: ShotScript, story: FoundStory) -> bool:
    def cast(shot: Shot) -> tuple[str, ...]:
        return tuple(key for key in dict.fromkeys(shot.characters) if key in script.characters)

    shots = [(shot.index, cast(shot)) for shot in script.shots]
    return shots == [(shot.number, shot.expected) for shot in story.shots]


def _text(texts: TwoTexts | None) -> str:
    return "" if texts is None else (texts.of(LANGUAGE) or texts.of("ch")).strip()
