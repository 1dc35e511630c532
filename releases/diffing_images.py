"""Which reference images of characters differ between two releases of shot scripts, by their content."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..schemas.canonical import Json
from ..schemas.plain_files import parse_json, read_plain
from .diffing_sides import Side
from .layout import SHOT_SCRIPTS, SHOTS
from .shot_references import IMAGES
from .shot_tree import FOLDER, REFERENCES
from .version_step import Step

Kind = Literal["added", "removed", "changed"]
Owner = tuple[str, str]
"""Story id and key of the character."""


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A reference image that only one release has, or that has other content.

    Attributes:
        story_id: the story.
        character: key of the character.
        file: path below the story's folder.
        kind: ``added``, ``removed``, or ``changed`` where another image stands in its place.
        old: SHA-256 of the old content; None where there was none.
        new: SHA-256 of the new content; None where there is none any more.
    """

    story_id: str
    character: str
    file: str
    kind: Kind
    old: str | None
    new: str | None

    @property
    def path(self) -> str:
        """Path in a release."""
        return f"{FOLDER}/{self.story_id}/{self.file}"

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "story_id": self.story_id, "character": self.character, "file": self.file, "kind": self.kind,
            "old": self.old, "new": self.new,
        }  # fmt: skip


def is_image(path: str) -> bool:
    """Whether a path of a release is that of a reference image."""
    parts = path.split("/")
    return len(parts) > 4 and parts[0] == FOLDER and parts[2] == IMAGES


def image_changes(old: Side, new: Side) -> tuple[ImageChange, ...]:
    """Return which reference images differ, by story, character and file; none but for shot scripts.

    An image that the character has on both sides does not differ, whatever its file is called.
    """
    if new.document.get("kind") != SHOTS:
        return ()
    before, after = _images(old), _images(new)
    owners = sorted(before.keys() | after.keys())
    return tuple(one for owner in owners for one in _changes(owner, before[owner], after[owner]))


def image_reasons(changes: Sequence[ImageChange], old: Side, new: Side) -> Iterator[tuple[Step, str]]:
    """Yield the step that images ask for: generators are given them, and likeness is measured by them.

    Those of stories that came or went ask for nothing of their own.
    """
    there = old.records.get(SHOT_SCRIPTS, {}).keys() & new.records.get(SHOT_SCRIPTS, {}).keys()
    for kind in ("removed", "changed", "added"):
        count = sum(one.kind == kind and one.story_id in there for one in changes)
        if count:
            yield Step.MAJOR, f"{count} reference image{'s' if count > 1 else ''} {kind}"


def by_character(changes: Sequence[ImageChange]) -> dict[Owner, list[ImageChange]]:
    """Return the changes of each character, in their order."""
    found: dict[Owner, list[ImageChange]] = {}
    for one in changes:
        found.setdefault((one.story_id, one.character), []).append(one)
    return found


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
    found: defaultdict[Owner, dict[str, str]] = defaultdict(dict)
    if side.files:
        for path, entry in side.files.items():
            if is_image(path):
                _, story_id, file = path.split("/", 2)
                found[story_id, file.split("/", 1)[1].rpartition("/")[0]][file] = str(entry.get("sha256"))
        return found
    lines = side.folder / FOLDER / REFERENCES
    for line in read_plain(lines).splitlines() if lines.is_file() else ():
        one = parse_json(line)
        found[one["story_id"], one["character"]][one["file"]] = one["sha256"]
    return found
