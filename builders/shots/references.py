"""Reference images from folders into the tree of a run: ``<story>/<character>/*.jpg``, checked one by one.

Beside the folders may lie ``references.jsonl`` with the source and the rights of single files. An image
without rights, one that cannot be decoded and one that the story has already are reported and left out; the
others are copied byte for byte and noted in the tree's own ``references.jsonl``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from ...errors import InputError, UserError, mismatch
from ...media.images import LIMITS, Picture
from ...releases.loading import read_rows
from ...releases.shots.imports import with_provenance, write_facts
from ...releases.shots.tree import (
    IMAGES,
    MOST_REFERENCES,
    PICTURES,
    REFERENCES,
    SYSTEM_FILES,
    ShotSet,
    ShotStory,
    is_safe_name,
    read_reference,
    read_shot_set,
)
from ...releases.target import writing
from ...schemas.canonical import sha256_bytes, write_atomic
from ...schemas.plain_files import below, composed, open_plain
from ...schemas.shots import ReferenceImage
from ...schemas.values import Own
from ...validators.report import IssueBin, ValidationReport, show
from ...validators.shots.script_rules import issue
from .building import PRODUCERS

if TYPE_CHECKING:
    from PIL.Image import Image

_problem = partial(mismatch, fix="see docs/shots.md")

Sees = Callable[["Image"], bool]
"""Whether a face or a character is found in a picture."""

_ENDINGS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}


class Terms(Own):
    """Where an image comes from, and on what ground it may be used; a line of ``references.jsonl``."""

    file: str = Field(default="", description="Path below the folder that is imported.")
    source: str | None = Field(default=None, description="Where it comes from.")
    rights: str | None = Field(default=None, description="On what ground it may be used.")


@dataclass
class _Import:
    """One import."""

    folder: Path  # what is imported
    shots: ShotSet  # the set that takes the images
    terms: Mapping[str, Terms]  # file -> its own terms; ``default`` for all others
    default: Terms
    sees: Sees | None  # looks at each picture, if a detector is asked
    issues: IssueBin = field(default_factory=IssueBin)  # takes the findings; ``made`` the images that are new
    made: list[ReferenceImage] = field(default_factory=list)

    def story(self, path: Path, story: ShotStory) -> None:
        """Import the images of one story."""
        inner = path / IMAGES
        path = inner if inner.is_dir() and IMAGES not in story.script.characters else path
        seen = {picture.sha256: picture.file for some in story.references.values() for picture in some}
        known = {composed(key.split("/")[0]) for key in story.script.characters}
        for entry in sorted(path.iterdir()):
            if composed(entry.name) not in known and entry.name not in SYSTEM_FILES:
                where = entry.relative_to(self.folder).as_posix()
                near = [key for key in known if key.strip().casefold() == entry.name.strip().casefold()]
                hint = f"; {show(near[0])} differs only in space or case" if near else ""
                self.issues.add(
                    issue("unknown-folder", where, "$", f"{show(entry.name)} is no character{hint}")
                )
        for key in story.script.characters:
            if is_safe_name(key) and (named := below(path, key)).is_dir():
                self.character(named, story, key, seen)

    def character(self, folder: Path, story: ShotStory, key: str, seen: dict[str, str]) -> None:
        """Import the images of one character; ``seen`` holds the hashes of the story's images."""
        count = len(story.references[key])
        for path in sorted(folder.iterdir()):
            name = composed(path.relative_to(self.folder).as_posix())
            if path.name in SYSTEM_FILES or path.is_dir():
                continue
            if path.suffix.lower() not in PICTURES or not path.resolve().is_relative_to(
                self.folder.resolve()
            ):
                self.issues.add(issue("stray-file", name, "$", "expected an image, such as 00.jpg"))
                continue
            read = read_reference(path, name, self.issues, LIMITS)
            if read is None or not self._usable(name, *read, seen):
                continue
            if count == MOST_REFERENCES:
                message = f"expected 1 to {MOST_REFERENCES} images, found more; this and later ones stay out"
                self.issues.add(issue("many-references", name, "$", message))
                return
            self._copy(story, key, name, *read)
            seen[sha256_bytes(read[0])] = name
            count += 1

    def _usable(self, name: str, data: bytes, picture: Picture, seen: Mapping[str, str]) -> bool:
        first = seen.get(sha256_bytes(data))
        if first is not None:
            self.issues.add(issue("repeated-picture", name, "$", f"the same file as {first}"))
            return False
        if not (self._terms(name).rights or "").strip():
            self.issues.add(issue("no-rights", name, "$", "nothing says on what ground it may be used"))
            return False
        if self.sees is not None and not self.sees(picture.image):
            self.issues.add(issue("nobody-seen", name, "$", "no face and no character was found in it"))
        return True

    def _terms(self, name: str) -> Terms:
        own = self.terms.get(name, self.default)
        return Terms(source=own.source or self.default.source, rights=own.rights or self.default.rights)

    def _copy(self, story: ShotStory, key: str, name: str, data: bytes, picture: Picture) -> None:
        folder = self.shots.folder / story.story_id / IMAGES / key
        taken = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
        number = next(number for number in range(len(taken) + 1) if f"{number:02d}" not in taken)
        target = folder / f"{number:02d}{_ENDINGS.get(picture.format, Path(name).suffix.lower())}"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(target, [data])
        terms = self._terms(name)
        self.made.append(
            ReferenceImage(
                story_id=story.story_id, character=key, sha256=sha256_bytes(data),
                file=target.relative_to(self.shots.folder / story.story_id).as_posix(),
                width=picture.width, height=picture.height, source=terms.source, rights=terms.rights,
            )
        )  # fmt: skip


def import_references(
    folder: Path, out: Path, default: Terms | None = None, sees: Sees | None = None
) -> ValidationReport:
    """Put reference images into a set of shot scripts.

    Returns:
        What was wrong, story by story, and how many images were taken.
    """
    if not folder.is_dir():
        raise InputError([_problem(str(folder), "a folder of stories' folders", "none")])
    shots, _ = read_shot_set(out)
    before = {(reference.story_id, reference.file): reference for reference in with_provenance(shots)}
    work = _Import(folder, shots, _terms(folder), default or Terms(), sees)
    with writing(shots.folder):
        for path, story in _places(folder, shots, _ids(out), work.issues):
            work.story(path, story)
        for reference in work.made:
            before[reference.story_id, reference.file] = reference
        write_facts(shots.folder, (), before.values())
    after, _ = read_shot_set(out)
    for story in after.stories:
        for key in (key for key, images in story.references.items() if not images):
            message = f"expected 1 to {MOST_REFERENCES} images, found none"
            work.issues.add(issue("no-reference", f"{story.story_id}/{IMAGES}/{key}", "$", message))
    return work.issues.report(str(folder), "references", {"images": len(work.made)})


def _places(
    folder: Path, shots: ShotSet, ids: Mapping[str, str], issues: IssueBin
) -> list[tuple[Path, ShotStory]]:
    """Return the folders of stories of the set; others are reported."""
    numbers = {int(story.story_id): story for story in shots.stories}
    places = []
    for path in sorted(folder.iterdir()):
        if path.name in (*SYSTEM_FILES, REFERENCES):
            continue
        number = ids.get(path.name, path.name)
        story = numbers.get(int(number)) if number.isascii() and number.isdigit() else None
        if story is None or not path.is_dir():
            message = "expected the folder of a story of the set, by its number or its id"
            issues.add(issue("stray-file", path.name, "$", message))
            continue
        places.append((path, story))
    return places


def _ids(out: Path) -> dict[str, str]:
    """Return the number of each story of a run by its id; nothing for a set that is no run."""
    path = out / PRODUCERS
    if not path.is_file():
        return {}
    with open_plain(path, follow=True) as lines:
        return {str(row["id"]): str(row["story_id"]) for row in map(json.loads, lines)}


def _terms(folder: Path) -> dict[str, Terms]:
    path = folder / REFERENCES
    if not path.is_file():
        return {}
    terms: dict[str, Terms] = {}
    problems: list[UserError] = []
    for read in read_rows(path, Terms, problems, "see docs/shots.md", follow=True):
        if not below(folder, read.file).is_file():
            problems.append(_problem(str(path), "a file of the folder", show(read.file)))
        terms[composed(read.file)] = read
    if problems:
        raise InputError(problems)
    return terms
