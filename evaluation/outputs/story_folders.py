"""Which folder of a method's outputs holds which story: by ``outputs.json``, by id, or by title."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import InputError
from ...media.moving import SUFFIXES
from ...schemas.katha import StoryRecord
from ...schemas.text import counted, slug
from ...schemas.values import Issue
from .checked import NOTHING_FOUND, finding, listed_names
from .layout import PICTURES, Names, key_of
from .named import MANIFEST, entries, folders_in, named_places

Unit = Literal["panel", "page", "keyframe", "shot"]
MOVING: tuple[Unit, ...] = ("keyframe", "shot")
"""Units that may be videos."""
_LOOKED_INTO = 1000
_SEED = re.compile(r"seed_([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Listed:
    """What lies in one folder."""

    panels: tuple[tuple[int, Path], ...] = ()  # number and file of each picture, sorted by number and name
    # seed -> its folder; several where a seed is written in several ways (``seed_1``, ``seed_01``)
    seeds: tuple[tuple[int, Path], ...] = ()
    strays: tuple[str, ...] = ()  # names of everything else


def number_of(file: Path, unit: Unit | None) -> int | None:
    """Return the number that a file is called by; None where it is called otherwise, or is no such unit."""
    key = key_of(file.stem) if file.suffix.lower() in endings_of(unit) else None
    return None if key is None else key[0]


def endings_of(unit: Unit | None) -> tuple[str, ...]:
    """Return how the files of a unit end."""
    return (*PICTURES, *SUFFIXES) if unit in MOVING else PICTURES


def list_folder(folder: Path, *, with_seeds: bool = True, unit: Unit | None = None) -> Listed:
    """Return what lies in the folder of a story, or of a seed; hidden files are left out."""
    panels, seeds, strays = [], [], []
    for entry in entries(folder):
        number, seed = number_of(entry, unit), _SEED.fullmatch(entry.name)
        if number is not None and not entry.is_dir():
            panels.append((number, entry))
        elif seed and with_seeds and entry.is_dir():
            seeds.append((int(seed[1]), entry))
        else:
            strays.append(entry.name)
    return Listed(tuple(sorted(panels)), tuple(sorted(seeds)), tuple(sorted(strays)))


@dataclass(frozen=True, slots=True)
class StoryFolders:
    """Where the outputs of one method are."""

    places: Mapping[str, Path]  # story id -> its folder, of stories that have one
    # story id -> number and file of each picture, of stories whose files lie flat: ``STORY_01.png``
    flat: Mapping[str, tuple[tuple[int, Path], ...]]
    issues: tuple[Issue, ...]  # folders and files that belong to no story, and titles that say too little

    def listed(self, story_id: str, unit: Unit | None) -> Listed:
        """Return what there is of a story."""
        if story_id in self.places:
            return list_folder(self.places[story_id], unit=unit)
        return Listed(tuple(sorted(self.flat.get(story_id, ()))))


def find_story_folders(
    folder: Path, named: Mapping[str, str], stories: Iterable[StoryRecord], unit: Unit | None = None
) -> StoryFolders:
    """Return which folder holds which story, or which files where they lie flat.

    What ``outputs.json`` says counts first, then a folder that bears a story's id, then one whose name is the
    id or title of exactly one story, whatever its case, punctuation, padding and Unicode form, or its slug.

    ``named``: story id -> folder, as its ``outputs.json`` says.
    """
    known = {record.story_id: record.title for record in stories}
    places = named_places(folder, "folders", named, known.__contains__, "story of the release")
    there = {entry.name: entry for entry in entries(folder)}
    issues: list[Issue] = []
    taken = {MANIFEST, *(place.relative_to(folder.resolve()).parts[0] for place in places.values())}
    for story_id in known:
        if story_id in there and there[story_id].is_dir() and story_id not in places:
            places[story_id] = there[story_id]
            taken.add(story_id)
    names = _names(known)
    claims: dict[str, list[Path]] = {}
    flat: dict[str, list[tuple[int, Path]]] = {}
    strangers: list[tuple[Path, list[str]]] = []
    for name, entry in there.items():
        if name in taken:
            continue
        meant = names.of(name)
        split = names.flat(entry.stem) if entry.suffix.lower() in endings_of(unit) else None
        if entry.is_dir() and len(meant) == 1 and meant[0] not in places:
            claims.setdefault(meant[0], []).append(entry)
        elif split is not None and not entry.is_dir() and split[0] not in places:
            flat.setdefault(split[0], []).append((split[1][0], entry))
        else:
            strangers.append((entry, meant))
    for story_id, several in claims.items():
        if len(several) == 1:
            places[story_id] = several[0]
        else:
            issues += [_rival(entry, story_id, several) for entry in several]
    issues += [_stranger(entry, meant) for entry, meant in strangers]
    numbered = {story_id: tuple(files) for story_id, files in flat.items() if story_id not in places}
    return StoryFolders(places, numbered, tuple(issues))


def _names(known: Mapping[str, str]) -> Names:
    """``known``: story id -> title, by which, and by its slug, the story is known, too."""
    return Names({story_id: (title, slug(title)) for story_id, title in known.items()})


def _stranger(entry: Path, meant: list[str]) -> Issue:
    """Return the finding about an entry that is taken for no story."""
    if not entry.is_dir():
        return finding(
            entry.name, "stray-file", "expected a story of the release", "move it elsewhere", "warning"
        )
    if len(meant) > 1:
        listed = listed_names(meant)
        message = f"{len(meant)} stories bear this title ({listed}): not guessed"
        cure = f"rename the folder to the id of its story, or name it in {MANIFEST}"
        return finding(entry.name, "ambiguous-title", message, cure, "warning")
    if meant:
        message = f"called like {meant[0]}, which has another folder"
        return finding(entry.name, "unknown-story", message, "keep one of the two folders", "warning")
    message = "neither the id nor the title of a story of the release"
    cure = f"rename it, name it in {MANIFEST}, or move it elsewhere"
    return finding(entry.name, "unknown-story", message, cure, "warning")


def _rival(entry: Path, story_id: str, several: list[Path]) -> Issue:
    others = ", ".join(other.name for other in several if other is not entry)
    message = f"called like the title of {story_id}, and so is {others}: not guessed"
    return finding(entry.name, "ambiguous-title", message, f"rename the right one to {story_id}", "warning")


def nothing_found(
    folder: Path, found: StoryFolders, wanted: Mapping[str, StoryRecord], *, holds_panels: bool
) -> Issue:
    """Return the finding where no story that is judged has a folder: what lies there, and the cure."""
    some = next(iter(sorted(wanted)), "STORY")
    below = folders_in(folder)
    names = _names({story_id: record.title for story_id, record in wanted.items()})
    methods = [entry.name for entry in below[:_LOOKED_INTO] if _holds_stories(entry, names)]
    expected = f'with folders such as {some}, or "{wanted[some].title}"' if wanted else "of one method"
    if methods:
        message = f"this folder holds the outputs of {counted(len(methods), 'method')}"
        cure = f"give one of: {listed_names(methods)}"
    elif holds_panels:
        message = "this folder holds the pictures of one storyboard"
        cure = f"give the folder above it, {expected}"
    elif found.places:
        message = f"this folder holds {counted(len(found.places), 'story')}, none of which is to be judged"
        cure = "choose other stories (--split, --story, --subset), or give the outputs of these"
    elif below:
        there = listed_names([entry.name for entry in below])
        message = f"no folder is called like a story that is judged: {there}"
        cure = (
            f"call each by the id or the title of its story, such as {some}, or say in {MANIFEST} which is"
            f' which: {{"folders": {{"{some}": "{below[0].name}"}}}}'
        )
    else:
        message, cure = "no folder of a story is in this folder", f"give the folder of one method, {expected}"
    return finding(".", NOTHING_FOUND, message, cure)


def _holds_stories(folder: Path, names: Names) -> bool:
    """Whether a folder looks like that of a method."""
    if (folder / MANIFEST).is_file():
        return True
    try:
        return any(
            names.of(entry.name) if entry.is_dir() else names.flat(entry.stem) for entry in entries(folder)
        )
    except InputError:
        return False
