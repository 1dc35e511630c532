"""Which folder of a method's outputs holds which story: by ``outputs.json``, by id, or by title."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ...errors import InputError
from ...schemas.katha import StoryRecord
from ...schemas.text import counted, slug
from ...schemas.values import Issue
from .checked import NOTHING_FOUND, finding, listed_names
from .named import MANIFEST, entries, folders_in, named_places

_MARKS = re.compile(r"[\W_]+")
_LOOKED_INTO = 1000
_DIGITS = re.compile("[0-9]+")
_APOSTROPHES = re.compile("['\u2018\u2019\u02bc\uff07`]")


@dataclass(frozen=True, slots=True)
class StoryFolders:
    """Where the outputs of one method are."""

    places: Mapping[str, Path]  # story id -> its folder, of stories that have one
    issues: tuple[Issue, ...]  # folders and files that belong to no story, and titles that say too little


def find_story_folders(
    folder: Path, named: Mapping[str, str], stories: Iterable[StoryRecord]
) -> StoryFolders:
    """Return which folder holds which story.

    What ``outputs.json`` says counts first, then a folder that bears a story's id, then one whose name is the
    title of exactly one story, whatever its case, punctuation and Unicode form, or the title as a slug.

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
    by_title = _by_title(known)
    claims: dict[str, list[Path]] = {}
    strangers: list[tuple[Path, list[str]]] = []
    for name, entry in there.items():
        if name in taken:
            continue
        meant = [name] if name in known else by_title.get(title_key(name), [])
        if entry.is_dir() and len(meant) == 1 and meant[0] not in places:
            claims.setdefault(meant[0], []).append(entry)
        else:
            strangers.append((entry, meant))
    for story_id, several in claims.items():
        if len(several) == 1:
            places[story_id] = several[0]
        else:
            issues += [_rival(entry, story_id, several) for entry in several]
    missing = {key: story_id for story_id, title in known.items() for key in (story_id, title_key(title))}
    missing = {key: story_id for key, story_id in missing.items() if story_id not in places}
    issues += [_stranger(entry, meant, missing) for entry, meant in strangers]
    return StoryFolders(places, tuple(issues))


def title_key(text: str) -> str:
    """Return what is the same for a title and a folder called like it.

    Case, punctuation, spaces, underscores and apostrophes do not count, nor does the form in which Unicode
    writes an accent; the accent itself does.

    >>> title_key("The Fox & the Grapes") == title_key("the_fox-the_grapes")
    True
    """
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return _MARKS.sub(" ", unicodedata.normalize("NFKC", plain)).strip()


def _by_title(known: Mapping[str, str]) -> dict[str, list[str]]:
    """Return key of a title, and of its slug -> the stories that bear it."""
    found: dict[str, list[str]] = {}
    for story_id, title in known.items():
        for key in {title_key(title), title_key(slug(title))} - {""}:
            found.setdefault(key, []).append(story_id)
    return found


def _stranger(entry: Path, meant: list[str], missing: Mapping[str, str]) -> Issue:
    """Return the finding about an entry that is taken for no story.

    ``missing``: id, and title as :func:`title_key` is -> the id of a story without a folder.
    """
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
    names = {spelt for name in (entry.name, title_key(entry.name)) for spelt in _near(name, missing)}
    if len(likely := sorted({missing[name] for name in names})) == 1:
        message += f"; {likely[0]} has no folder"
        cure = f"did you mean {likely[0]}? Rename it, if it is that story"
        return finding(entry.name, "unknown-story", message, cure, "warning")
    cure = f"rename it, name it in {MANIFEST}, or move it elsewhere"
    return finding(entry.name, "unknown-story", message, cure, "warning")


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that differ from one by a slip; another number is another story."""
    digits = _DIGITS.findall(name)
    same = [each for each in known if _DIGITS.findall(each)[-1:] == digits[-1:]]
    return get_close_matches(name, same, n=1, cutoff=0.85)


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
    names = {*wanted, *_by_title({story_id: record.title for story_id, record in wanted.items()})}
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


def _holds_stories(folder: Path, names: Collection[str]) -> bool:
    """Whether a folder looks like that of a method; ``names`` are ids, and titles as :func:`title_key` is."""
    if (folder / MANIFEST).is_file():
        return True
    try:
        return any(
            (entry.name in names or title_key(entry.name) in names) and entry.is_dir()
            for entry in entries(folder)
        )
    except InputError:
        return False
