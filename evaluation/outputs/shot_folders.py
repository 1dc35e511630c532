"""Where the generated shots of one method lie, and which shot each file shows.

Stories may lie in the folder itself, or below folders of mode, language and time stamp in either order::

    my-model/01/shot_01.png
    my-model/<mode>/<language>/<YYYYMMDD_HHMMSS>/01/shots/01.png
    my-model/<language>/<mode>/<YYYYMMDD-HHMMSS>/01/01.png

or anywhere below it, where ``outputs.json`` says in ``folders`` which story is where. They may also lie flat
in place of the stories' folders: ``01_02.png``, ``story_01_shot_02.png``.

Shots lie in the story's folder, or in the one below it whose name is or ends in ``shots``; a time stamp may
also stand below the story. Where there is a choice it is the user's: nothing is merged or taken silently.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, InputError, UserError
from .checked import listed_names
from .layout import PICTURES, VIDEOS, key_of
from .named import MANIFEST, NamedFolders, entries, folders_in, named_places, read_manifest

TIMESTAMP = re.compile(r"[0-9]{8}[-_][0-9]{6}", re.ASCII)
CHINESE = ("ch", "zh", "cn")
LANGUAGES = ("en", *CHINESE)
CHARACTERS = re.compile(r".*characters?|.*chars?", re.I)
"""Names of folders with pictures of characters that a method drew itself."""
REVIEW = "keyframes.json"
"""File beside the stories of outputs that were taken from videos; see ``evaluation/shots/keyframes.py``."""
_STORY = re.compile(r"(?:story[ _-]?)?([0-9]{1,6})", re.ASCII | re.I)
_FLAT = re.compile(r"((?:story[ _-]?)?[0-9]{1,6})[ _-]+(.+)", re.ASCII | re.I | re.DOTALL)
_MOST_LEVELS = 4


@dataclass(frozen=True)
class Choice:
    """Which of several sets of outputs is meant; None where there is only one.

    Raises:
        ConfigError: there is no such language.
    """

    mode: str | None = None  # name of the folder of the mode
    language: str | None = None  # ``en`` or ``ch``, as which ``zh`` and ``cn`` count
    timestamp: str | None = None  # name of the folder, or ``latest``

    def __post_init__(self) -> None:
        """Check the language."""
        if self.language not in (None, *LANGUAGES):
            raise ConfigError(
                "--language", expected="en or ch", found=repr(self.language), fix="check the spelling"
            )


@dataclass(frozen=True)
class StoryFolder:
    """What lies in the folder of one story."""

    story_id: str  # the number of the story, as the folder has it
    folder: Path  # the folder with the shots
    # its pictures and videos, sorted by name; each with its number, None where its name says none, or several
    files: tuple[tuple[int | None, Path], ...]
    strays: tuple[Path, ...]  # other entries, sorted by name


def find_root(folder: Path, choice: Choice) -> Path:
    """Return the folder that holds the stories' folders.

    It is the method's own where its ``outputs.json`` says which story lies where.
    """
    if not folder.is_dir():
        raise InputError([_nothing(folder, "nothing there")])
    if named_stories(folder):
        return folder
    place = folder
    for _ in range(_MOST_LEVELS):
        below = folders_in(place)
        if any(_STORY.fullmatch(entry.name) for entry in below) or _flat(place):
            return place
        if not below:
            break
        place = _chosen(place, below, choice)
    raise InputError([_nothing(folder, f"none in {place.name or place}")])


def unused_choices(folder: Path, root: Path, choice: Choice) -> Iterator[str]:
    """Yield the options that chose nothing, as there are no such folders; the latest of one is no choice."""
    levels = root.relative_to(folder).parts
    if choice.mode is not None and choice.mode not in levels:
        yield f"--mode {choice.mode}"
    if choice.language is not None and not any(level.lower() in LANGUAGES for level in levels):
        yield f"--language {choice.language}"
    stamp = choice.timestamp
    if stamp is not None and stamp not in ("latest", *levels):
        below = (entry.name for story in folders_in(root) for entry in folders_in(story))
        if stamp not in below:
            yield f"--timestamp {stamp}"


def story_folders(root: Path, choice: Choice) -> Iterator[StoryFolder]:
    """Yield what lies in each story's folder, in the order of the numbers.

    What ``outputs.json`` says goes before a folder that bears the story's number.
    """
    named = named_stories(root)
    stories = {entry.name: entry for entry in _numbered(root, named)} | named
    for name, folder in sorted(stories.items(), key=lambda each: (_story(each[0]), each[0])):
        place = folder
        stamps = [entry for entry in folders_in(place) if TIMESTAMP.fullmatch(entry.name)]
        if stamps:
            place = _pick(place, stamps, "--timestamp", _latest(stamps, choice.timestamp))
        shots = [entry for entry in folders_in(place) if entry.name.lower().endswith(("shots", "shot"))]
        if len(shots) == 1:
            place = shots[0]
        there = list(entries(place))
        files = [entry for entry in there if entry.is_file() and entry.suffix.lower() in PICTURES + VIDEOS]
        strays = [entry for entry in there if entry not in files and not CHARACTERS.fullmatch(entry.name)]
        numbered = tuple((shot_number(file), file) for file in files)
        yield StoryFolder(_digits(name), place, numbered, tuple(strays))
    lying: dict[str, list[tuple[int | None, Path]]] = {}
    for file, (story_id, number) in _flat(root).items():
        lying.setdefault(story_id, []).append((number, file))
    for story_id, flat in lying.items():
        yield StoryFolder(story_id, root, tuple(flat), ())


def _flat(root: Path) -> dict[Path, tuple[str, int]]:
    """Return the files that lie flat in a folder, each with the numbers of its story and shot."""
    flat = {}
    for entry in entries(root):
        named = _FLAT.fullmatch(entry.stem) if entry.suffix.lower() in PICTURES + VIDEOS else None
        key = None if named is None or entry.is_dir() else key_of(named[2])
        if named is not None and key is not None:
            flat[entry] = (_digits(named[1]), key[0])
    return flat


def _digits(name: str) -> str:
    """Return the number in the name of a story's folder as it is written there."""
    said = _STORY.fullmatch(name)
    return said[1] if said else name


def _story(name: str) -> int:
    return int(_digits(name))


def named_stories(folder: Path) -> dict[str, Path]:
    """Return the folders that ``outputs.json`` gives stories, by number; none without that file."""
    folders = read_manifest(folder, NamedFolders).folders
    what = "story: the stories of a set have numbers"
    return named_places(folder, "folders", folders, lambda name: bool(_STORY.fullmatch(name)), what)


def _numbered(root: Path, named: Mapping[str, Path]) -> list[Path]:
    """Return the folders called like the number of a story that ``outputs.json`` does not name."""
    numbers, taken = {_story(name) for name in named}, set(named.values())
    return [
        entry
        for entry in folders_in(root)
        if _STORY.fullmatch(entry.name) and _story(entry.name) not in numbers and entry.resolve() not in taken
    ]


def strays_in(root: Path) -> list[Path]:
    """Return what lies beside the stories' folders, sorted by name."""
    named = named_stories(root)
    own = {REVIEW, MANIFEST, *(entry.name for entry in (*_numbered(root, named), *_flat(root)))}
    own |= {place.relative_to(root.resolve()).parts[0] for place in named.values()}
    return [entry for entry in entries(root) if entry.name not in own]


def shot_number(file: Path) -> int | None:
    """Return the shot that a file's name says; None where it says none, or more than one number."""
    key = key_of(file.stem)
    return None if key is None else key[0]


def _chosen(place: Path, below: Sequence[Path], choice: Choice) -> Path:
    """Return the folder one level down: a time stamp's, a language's or a mode's."""
    if all(TIMESTAMP.fullmatch(entry.name) for entry in below):
        return _pick(place, below, "--timestamp", _latest(below, choice.timestamp))
    if all(entry.name.lower() in LANGUAGES for entry in below):
        wanted = choice.language
        alike = CHINESE if wanted in CHINESE else (wanted,)
        names = [entry.name for entry in below if entry.name.lower() in alike]
        return _pick(place, below, "--language", names[0] if len(names) == 1 else wanted)
    return _pick(place, below, "--mode", choice.mode)


def _latest(stamps: Sequence[Path], wanted: str | None) -> str | None:
    if wanted != "latest":
        return wanted
    return max((entry.name for entry in stamps), key=lambda name: name.replace("-", "_"))


def _pick(place: Path, below: Sequence[Path], option: str, wanted: str | None) -> Path:
    names = [entry.name for entry in below]
    if wanted is None and len(below) == 1:
        return below[0]
    if wanted in names:
        return below[names.index(wanted)]
    if wanted is None and option == "--mode":
        what = f"no folder of a story is in it, but {len(names)} folders such as {names[0]}"
        fix = (
            f"if these are methods, give one of: {listed_names(names)}; if they are modes of one method,"
            " choose with --mode; if they are stories, call them by number: 01, 02, ..., or say in"
            f' {MANIFEST} which is which: {{"folders": {{"01": "{names[0]}"}}}}'
        )
        raise InputError([UserError(str(place), what=what, fix=fix)])
    found = "none chosen" if wanted is None else repr(wanted)
    more = ", or latest" if option == "--timestamp" else ""
    raise ConfigError(
        option, expected=f"one of the folders of {place}: {', '.join(names[:20])}", found=found,
        fix=f"choose with {option}{more}",
    )  # fmt: skip


def _nothing(folder: Path, found: str) -> UserError:
    return UserError(
        str(folder), expected="folders of stories with numbers as names, such as 01", found=found,
        fix="give the folder of one method, with 01/shot_01.png in it; docs/images.md shows the layouts",
    )  # fmt: skip
