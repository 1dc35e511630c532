"""Reference images that a method drew of the characters itself, in its outputs (Table S8).

They lie beside the shots of a story, in a folder whose name is or ends in ``characters`` or ``chars``: one
picture per character named by its key or English name, numbered where there are several (``Mira_2.png``), or
a folder of that name with pictures.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ...media.images import open_picture, read_bytes
from ...media.problems import MediaProblem
from ...releases.shot_tree import ShotStory
from ...schemas.canonical import Json, sha256_bytes
from .layout import CHARACTERS, PICTURES, Choice, StoryFolder, story_folders

_MARKS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"[\s_-]+[0-9]{1,3}$")


def generated_references(root: Path, choice: Choice) -> dict[int, dict[str, list[Path]]]:
    """Return number of a story -> name of a character, as it is compared -> its pictures, sorted.

    Raises:
        ConfigError: a story has several time stamps and no choice is made.
    """
    return {int(found.story_id): _pictures(found) for found in story_folders(root, choice)}


def references_of(story: ShotStory, drawn: dict[str, list[Path]]) -> dict[str, list[Json]]:
    """Return the pictures of each character of a story; none where there is none that can be decoded."""
    found: dict[str, list[Json]] = {}
    for key, sheet in story.script.characters.items():
        names = dict.fromkeys(filter(None, (compared(key), compared(sheet.name_en or ""))))
        files = [file for name in names for file in drawn.get(name, ())]
        found[key] = [one for file in dict.fromkeys(files) if (one := _usable(file)) is not None]
    return found


def compared(name: str) -> str:
    """Return a name as names are compared: case, spaces and marks do not count."""
    return _MARKS.sub(" ", name).strip().casefold()


def _pictures(found: StoryFolder) -> dict[str, list[Path]]:
    drawn: dict[str, list[Path]] = {}
    for folder in _folders(found):
        for entry in sorted(folder.iterdir()):
            inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
            name = entry.name if entry.is_dir() else entry.stem
            for file in inside:
                if file.is_file() and file.suffix.lower() in PICTURES and not file.name.startswith("."):
                    for spelt in dict.fromkeys((compared(name), compared(_NUMBER.sub("", name)))):
                        drawn.setdefault(spelt, []).append(file)
    return drawn


def _folders(found: StoryFolder) -> Iterator[Path]:
    """Yield the folders of characters: in the folder with the shots, or beside it where it is named so."""
    places = [found.folder]
    if found.folder.name.lower().endswith(("shots", "shot")):
        places.append(found.folder.parent)
    for place in places:
        yield from sorted(one for one in place.iterdir() if one.is_dir() and CHARACTERS.fullmatch(one.name))


def _usable(file: Path) -> Json | None:
    try:
        data = read_bytes(file)
        open_picture(data, name=file.name)
    except MediaProblem:
        return None
    return {"file": str(file.absolute()), "sha256": sha256_bytes(data)}
