"""Reading and writing the official ViStoryBench data set: a folder per story with script and references.

::

    ViStory/01/story.json
    ViStory/01/image/<character key>/00.jpg

Beside the stories may lie ``stories.jsonl`` and ``references.jsonl``, which hold what the official files have
no room for; see :mod:`fabula.schemas.shots`. Reading goes on past every problem and reports them all; a story
whose script cannot be used is left out.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError, TargetError, UserError
from ...media.images import LIMITS, PictureLimits
from ...schemas.canonical import digest, write_atomic
from ...schemas.plain_files import below
from ...schemas.shots import ReferenceImage, ShotScript
from ...validators.report import IssueBin, ValidationReport
from ...validators.rules import Opened
from ...validators.shots.script_rules import check_script, issue
from ..strict_json import OfficialFiles
from ..target import staged
from .references import IMAGES, SYSTEM_FILES, check_folders, check_lines, check_repeated, read_references

SHOTS = "shots"
"""Name of the kind."""
IMPORTED_SHOTS = "import-shots"
"""Kind of a folder that holds imported scripts: it has no stages, and its releases are of shots."""
SHOT_SCRIPTS = "scripts.jsonl"
"""Shot scripts with their history, one line per story."""
FOLDER = "ViStory"
SCRIPT = "story.json"
STORIES, REFERENCES = "stories.jsonl", "references.jsonl"
_FILES = OfficialFiles(
    issue=issue, most_bytes=20_000_000, too_large="json", missing="missing-script", expected="a script"
)


@dataclass(frozen=True)
class ShotStory:
    """One story of a set."""

    story_id: str  # name of its folder
    script: ShotScript  # its script
    # character key -> its reference images, sorted by path; every character has an entry
    references: Mapping[str, tuple[ReferenceImage, ...]] = field(repr=False)


@dataclass(frozen=True)
class ShotSet:
    """A set of shot scripts."""

    folder: Path  # where the stories lie
    stories: tuple[ShotStory, ...]  # the stories that can be used, in the order of their numbers

    @property
    def by_id(self) -> dict[str, ShotStory]:
        """Story id -> story."""
        return {story.story_id: story for story in self.stories}

    @property
    def sha256(self) -> str:
        """What identifies the content: scripts and reference images, whatever the layout of the files."""
        return digest(
            [
                [
                    story.story_id,
                    story.script.as_json(),
                    {key: [one.sha256 for one in images] for key, images in sorted(story.references.items())},
                ]
                for story in self.stories
            ]
        )

    def path(self, image: ReferenceImage) -> Path:
        """Return where a reference image lies."""
        return below(self.folder / image.story_id, image.file)

    def counts(self) -> dict[str, int]:
        """Return how many stories, shots, characters and reference images there are."""
        return {
            "stories": len(self.stories),
            "shots": sum(len(story.script.shots) for story in self.stories),
            "characters": sum(len(story.script.characters) for story in self.stories),
            "references": sum(len(images) for story in self.stories for images in story.references.values()),
        }


def read_shot_set(path: Path | str, limits: PictureLimits = LIMITS) -> tuple[ShotSet, ValidationReport]:
    """Return a set and everything that is wrong with it.

    ``path``: the folder with the stories' folders, or the one above it that holds ``ViStory``. ``limits``:
    what a reference image may be at most.
    """
    opened = open_shot_set(Path(path), limits)
    checked = check_shot_set(opened.content, opened.found)
    return opened.content, opened.found.report(str(path), opened.kind, checked)


def open_shot_set(root: Path, limits: PictureLimits = LIMITS) -> Opened:
    """Read a set of shot scripts, or a run or release that holds one; see :func:`read_shot_set`."""
    folder = root / FOLDER if (root / FOLDER).is_dir() else root
    if not folder.is_dir():
        raise InputError([_no_set(str(root), "a file" if root.is_file() else "nothing there")])
    found = IssueBin()
    read = [_read_story(story_folder, found, limits) for story_folder in _story_folders(folder, found)]
    stories = tuple(story for story in read if story is not None)
    if not stories and not found.kept:
        raise InputError([_no_set(str(folder), "no folder with a number as its name")])
    return Opened(root, "shots", ShotSet(folder, stories), found)


def check_shot_set(shot_set: ShotSet, found: IssueBin) -> dict[str, int]:
    """Take what breaks a rule about scripts and what is known beside them; return what was looked at."""
    for story in shot_set.stories:
        found.extend(check_script(story.script, f"{story.story_id}/{SCRIPT}"))
    scripts = {story.story_id: story.script for story in shot_set.stories}
    found.extend(check_lines(shot_set.folder / STORIES, shot_set.folder / REFERENCES, scripts))
    return shot_set.counts()


def write_shot_set(shot_set: ShotSet, out: Path) -> None:
    """Write a set in the official tree: scripts as they were read, images byte for byte.

    Where anything fails, or the process is killed, no folder is there.
    """
    if out.exists():
        raise TargetError(str(out), what="it exists already", fix="choose a new folder")
    with staged(out.absolute()) as (draft,):
        write_stories(shot_set, draft)


def write_stories(shot_set: ShotSet, out: Path) -> None:
    """Write scripts and images below a folder that is there."""
    for story in shot_set.stories:
        place = out / FOLDER / story.story_id
        place.mkdir(parents=True)
        write_atomic(place / SCRIPT, [script_bytes(story.script)])
        for images in story.references.values():
            for image in images:
                (place / image.file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(shot_set.path(image), place / image.file)


def script_bytes(script: ShotScript) -> bytes:
    """Return a script as ``story.json`` holds it: UTF-8, indented by four, in the order of the script."""
    return json.dumps(script.as_json(), indent=4, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def _story_folders(folder: Path, found: IssueBin) -> Iterator[Path]:
    """Yield the stories' folders in the order of their numbers."""
    numbered: dict[int, Path] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name in (*SYSTEM_FILES, STORIES, REFERENCES):
            continue
        if not (entry.is_dir() and entry.name.isascii() and entry.name.isdigit()):
            message = "expected a folder with a number as its name, such as 01"
            found.add(issue("stray-file", entry.name, "$", message))
        elif int(entry.name) in numbered:
            message = f"{numbered[int(entry.name)].name} is story {int(entry.name)} already"
            found.add(issue("repeated-story", entry.name, "$", message))
        else:
            numbered[int(entry.name)] = entry
    for number in sorted(numbered):
        yield numbered[number]


def _read_story(place: Path, found: IssueBin, limits: PictureLimits) -> ShotStory | None:
    where = f"{place.name}/{SCRIPT}"
    script, _ = _FILES.read(place / SCRIPT, where, ShotScript, found)
    if script is None:
        return None
    for entry in sorted(place.iterdir()):
        if entry.name not in (SCRIPT, IMAGES, *SYSTEM_FILES):
            message = f"expected {SCRIPT} and {IMAGES}/"
            found.add(issue("stray-file", f"{place.name}/{entry.name}", "$", message))
    references = {key: read_references(place, script, key, found, limits) for key in script.characters}
    check_folders(place, script, found)
    check_repeated(place, references, found)
    return ShotStory(place.name, script, references)


def _no_set(where: str, found: str) -> UserError:
    return UserError(
        where, expected=f"a folder of stories, such as {FOLDER}/ with 01/{SCRIPT}", found=found,
        fix="give the folder that holds the numbered stories",
    )  # fmt: skip
