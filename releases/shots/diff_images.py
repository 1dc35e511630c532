"""Which reference images of characters differ between two releases of shot scripts, by their content."""

import base64
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import UserError
from ...media.images import encode, open_picture
from ...schemas.canonical import sha256_bytes
from ...schemas.plain_files import parse_json, read_plain
from ..diff.form import FileSection
from ..diff.sides import Side
from ..diff.version import Step
from .references import IMAGES
from .tree import FOLDER, REFERENCES, SHOT_SCRIPTS

Kind = Literal["added", "removed", "changed"]
Owner = tuple[str, str]
"""Story id and key of the character."""
_SIDE, _QUALITY = 112, 82
_MOST = 200
"""Most rows with pictures on a page; JSON has all changes."""


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A reference image that only one release has, or that has other content."""

    story_id: str  # the story
    character: str  # key of the character
    file: str  # path below the story's folder
    kind: Kind  # ``added``, ``removed``, or ``changed`` where another image stands in its place
    old: str | None  # SHA-256 of the old content; None where there was none
    new: str | None  # SHA-256 of the new content; None where there is none any more

    @property
    def path(self) -> str:
        """Path in a release."""
        return f"{FOLDER}/{self.story_id}/{self.file}"


def is_image(path: str) -> bool:
    """Whether a path of a release is that of a reference image."""
    parts = path.split("/")
    return len(parts) > 4 and parts[0] == FOLDER and parts[2] == IMAGES


def image_changes(old: Side, new: Side) -> tuple[ImageChange, ...]:
    """Return which reference images differ, by story, character and file.

    An image that the character has on both sides does not differ, whatever its file is called.
    """
    before, after = _images(old), _images(new)
    owners = sorted(before.keys() | after.keys())
    return tuple(change for owner in owners for change in _changes(owner, before[owner], after[owner]))


def image_reasons(changes: Sequence[ImageChange], old: Side, new: Side) -> Iterator[tuple[Step, str]]:
    """Yield the step that images ask for: generators are given them, and likeness is measured by them.

    Those of stories that came or went ask for nothing of their own.
    """
    there = old.records.get(SHOT_SCRIPTS, {}).keys() & new.records.get(SHOT_SCRIPTS, {}).keys()
    for kind in ("removed", "changed", "added"):
        count = sum(change.kind == kind and change.story_id in there for change in changes)
        if count:
            yield Step.MAJOR, f"{count} reference image{'s' if count > 1 else ''} {kind}"


def by_character(changes: Sequence[ImageChange]) -> list[list[ImageChange]]:
    """Return the changes of each character, in their order."""
    groups: dict[Owner, list[ImageChange]] = {}
    for change in changes:
        groups.setdefault((change.story_id, change.character), []).append(change)
    return list(groups.values())


def images_text(changes: Sequence[ImageChange]) -> str:
    """Return what became of the images of one character."""
    parts = []
    for kind in ("added", "removed", "changed"):
        names = [
            change.file.rpartition("/")[2]
            + (f" ({change.old[:8]} -> {change.new[:8]})" if change.old and change.new else "")
            for change in changes
            if change.kind == kind
        ]
        parts += [f"{kind} {', '.join(names)}"] if names else []
    return f"{changes[0].story_id} {changes[0].character}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One image that differs, small, for a page."""

    change: ImageChange  # what became of it
    before: str | None  # the old picture as a data address; None where there was none, or it cannot be shown
    after: str | None  # the new one likewise


def picture_rows(changes: Sequence[ImageChange], old: Path, new: Path) -> list[PictureRow]:
    """Return the first changes with their pictures, from the folders of the two releases."""
    return [
        PictureRow(change, _small(old / change.path, change.old), _small(new / change.path, change.new))
        for change in changes[:_MOST]
    ]


def _small(path: Path, sha256: str | None) -> str | None:
    """Return a picture as a data address; None where the file is not the stated one, or no picture."""
    if sha256 is None:
        return None
    try:
        data = read_plain(path)
        if sha256_bytes(data) != sha256:
            return None
        small = encode(open_picture(data), max_side=_SIDE, format="jpeg", quality=_QUALITY)
    except (OSError, UserError):
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(small).decode('ascii')}"


def _changes(owner: Owner, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ImageChange]:
    gone = {file: sha256 for file, sha256 in before.items() if sha256 not in after.values()}
    fresh = {file: sha256 for file, sha256 in after.items() if sha256 not in before.values()}
    for file in sorted(gone.keys() | fresh.keys()):
        kind: Kind = "changed" if file in gone and file in fresh else "removed" if file in gone else "added"
        yield ImageChange(*owner, file, kind, gone.get(file), fresh.get(file))


def _images(side: Side) -> defaultdict[Owner, dict[str, str]]:
    """Return file -> SHA-256 of the reference images of each character.

    A draft has no list of files yet; what packing wrote beside the scripts says it.
    """
    images: defaultdict[Owner, dict[str, str]] = defaultdict(dict)
    if side.files:
        for path in filter(is_image, side.files):
            _, story_id, file = path.split("/", 2)
            owner = story_id, file.split("/", 1)[1].rpartition("/")[0]
            images[owner][file] = str(side.files[path].get("sha256"))
        return images
    lines = side.folder / FOLDER / REFERENCES
    for row in map(parse_json, read_plain(lines).splitlines() if lines.is_file() else ()):
        images[row["story_id"], row["character"]][row["file"]] = row["sha256"]
    return images


REFERENCE_IMAGES = FileSection(
    "images",
    "characters with other reference images",
    image_changes,
    images_text,
    shown=by_character,
    reasons=image_reasons,
    owns=is_image,
    row=lambda said: ImageChange(**said, old=None, new=None),
    pictures=picture_rows,
)
