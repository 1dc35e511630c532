"""Generated shots on disk against a set of scripts: which there are, and what is wrong with the rest.

A shot without a usable picture is counted by every metric; it makes nothing else invalid. What could pair a
picture with another shot's text (numbers from 0, numbers said twice) is an error that stops an evaluation.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...media.images import MediaProblem
from ...releases.shots.tree import ShotSet, ShotStory
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.plain_files import alike
from ...schemas.text import tallied
from ...schemas.values import Issue, Level
from ...validators.report import IssueBin
from .layout import (
    NUMBERED_FROM_ZERO,
    PICTURES,
    REPEATED,
    UNREADABLE,
    VIDEOS,
    Looked,
    Names,
    Output,
    OutputFile,
    Outputs,
    Wanted,
    check_numbers,
    key_of,
    listed_names,
    look_at,
    look_at_picture,
    missing,
    report_of,
    unreadable,
)
from .named import (
    MANIFEST,
    Form,
    NamedFolders,
    Places,
    entries,
    folders_in,
    named_places,
    read_manifest,
    walk,
)

# -- Where the generated shots of one method lie, and which shot each file shows
#
# Stories may lie in the folder itself, or below folders of mode, language and time stamp in either order::
#
#     my-model/01/shot_01.png
#     my-model/<mode>/<language>/<YYYYMMDD_HHMMSS>/01/shots/01.png
#     my-model/<language>/<mode>/<YYYYMMDD-HHMMSS>/01/01.png
#
# or anywhere below it, where ``outputs.json`` says in ``folders`` which story is where. They may also lie
# flat in place of the stories' folders: ``01_02.png``, ``story_01_shot_02.png``.
#
# Shots lie in the story's folder, or in the one below it whose name is or ends in ``shots``; a time stamp may
# also stand below the story. Where there is a choice it is the user's: nothing is merged or taken silently.

TIMESTAMP = re.compile(r"[0-9]{8}[-_][0-9]{6}", re.ASCII)
CHINESE = ("ch", "zh", "cn")
LANGUAGES = ("en", *CHINESE)
CHARACTERS = re.compile(r".*characters?|.*chars?", re.I)
"""Names of folders with pictures of characters that a method drew itself."""
REVIEW = "keyframes.json"
"""File beside the stories of outputs that were taken from videos; see ``evaluation/shots/keyframes.py``."""
FORM = Form(
    "story", PICTURES + VIDEOS, "the folder of a story, such as 01, or one that outputs.json names",
    ours=(MANIFEST, REVIEW),
)  # fmt: skip
_STORY = re.compile(r"(?:story[ _-]?)?([0-9]{1,6})", re.ASCII | re.I)
_MOST_LEVELS = 4


@dataclass(frozen=True)
class Choice:
    """Which of several sets of outputs is meant; None where there is only one.

    Raises ConfigError: there is no such language.
    """

    mode: str | None = None  # name of the folder of the mode
    language: str | None = None  # ``en`` or ``ch``, as which ``zh`` and ``cn`` count
    timestamp: str | None = None  # name of the folder, or ``latest``

    def __post_init__(self) -> None:
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
        raise InputError([_nothing(folder, f"nothing there{alike(folder)}")])
    if named_stories(folder):
        return folder
    place = folder
    for _ in range(_MOST_LEVELS):
        below = folders_in(place)
        if _walked(place).of:
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
    stories = _walked(root).of.items()
    for name, there in sorted(stories, key=lambda each: (_story(each[0]), each[0])):
        if there.folder is None:
            flat = tuple((key[0], file) for key, file in there.parts)
            yield StoryFolder(_digits(name), root, flat, ())
            continue
        place = there.folder
        stamps = [entry for entry in folders_in(place) if TIMESTAMP.fullmatch(entry.name)]
        if stamps:
            place = _pick(place, stamps, "--timestamp", _latest(stamps, choice.timestamp))
        shots = [entry for entry in folders_in(place) if entry.name.lower().endswith(("shots", "shot"))]
        if len(shots) == 1:
            place = shots[0]
        inside = list(entries(place))
        files = [entry for entry in inside if entry.is_file() and entry.suffix.lower() in FORM.endings]
        strays = [entry for entry in inside if entry not in files and not CHARACTERS.fullmatch(entry.name)]
        numbered = tuple((shot_number(file), file) for file in files)
        yield StoryFolder(_digits(name), place, numbered, tuple(strays))


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


class _Numbers(Names):
    """Stories by number, as their folders write it; without those that ``outputs.json`` names."""

    def __init__(self, named: Collection[str]) -> None:
        super().__init__({})
        self._named = {_story(name) for name in named}

    def of(self, name: str) -> list[str]:
        """Return the name where it is a story's number."""
        return [name] if _STORY.fullmatch(name) and _story(name) not in self._named else []


def _walked(root: Path) -> Places:
    named = named_stories(root)
    return walk(root, _Numbers(named), FORM, named)


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
        raise InputError.one(str(place), what=what, fix=fix)
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


# --

FATAL = frozenset({NUMBERED_FROM_ZERO, REPEATED, "unnumbered-file", "repeated-story"})
"""Codes of findings that stop an evaluation: a picture might be judged by another shot's text."""

CURES: dict[str, tuple[Level, str]] = {
    "unknown-story": ("warning", "move it elsewhere, or evaluate against the set that has it"),
    "repeated-story": ("error", "keep one of the two folders"),
    "unnumbered-file": ("error", "name it by its shot alone, such as shot_01.png"),
    "unreadable-picture": ("error", "generate the shot again; it is counted as missing"),
    "odd-picture": ("warning", "have a look at it"),
    "stray-file": ("warning", "move it elsewhere"),
    "unused-choice": ("warning", "leave the option out, or give the folder that has such folders in it"),
}
"""Code -> level, and what to do."""


@dataclass(frozen=True, slots=True)
class ShotOutputs(Outputs):
    """The outputs of one method, checked: one of every story of the set, with the shots that can be used."""

    root: Path  # the folder that holds the stories' folders
    expected: Mapping[str, int] = field(repr=False)  # story id -> how many shots its script has

    @property
    def shots(self) -> dict[str, dict[int, OutputFile]]:
        """Story id -> its usable pictures by number; every story of the set has an entry."""
        return {story.unit: {shot.number: shot for shot in story.files} for story in self.outputs}

    @property
    def sha256(self) -> str:
        """Hash of the content of all usable pictures."""
        stories = sorted(self.outputs, key=lambda story: story.unit)
        return digest(
            [[story.unit, [[shot.number, shot.sha256] for shot in story.files]] for story in stories]
        )

    def accounting(self) -> dict[str, Any]:
        """Return how much was asked for and is there."""
        there = {story.unit: len(story.files) for story in self.outputs}
        asked, valid = sum(self.expected.values()), sum(there.values())
        return {
            "method": self.method,
            "stories_requested": len(self.expected),
            "stories_complete": sum(there[story] == count for story, count in self.expected.items()),
            "stories_without_shot": sum(not count for count in there.values()),
            "shots_requested": asked,
            "shots_valid": valid,
            "missing_rate": (asked - valid) / asked if asked else None,
        }

    def details(self) -> dict[str, Json]:
        """Return whether the outputs are complete, and the hash of their content."""
        return {"complete": self.ok, "sha256": self.sha256}

    def told(self) -> str:
        counts = self.accounting()
        return (
            f"{counts['shots_valid']} of {counts['shots_requested']} shots in {counts['stories_requested']}"
            f" stories, {tallied(counts['stories_without_shot'], 'stories')} without any"
        )


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How outputs are read."""

    method: str | None = None  # its name; None for that of the folder
    choice: Choice = field(default_factory=Choice)  # which mode, language and time stamp
    first: int = 1  # number of the first shot in the files' names, 1 or 0


def check_shots(folder: Path, shot_set: ShotSet, options: CheckOptions | None = None) -> ShotOutputs:
    """Check the outputs of one method against a set; decodes every picture."""
    options = options or CheckOptions()
    root = find_root(Path(folder), options.choice)
    findings = IssueBin()
    for option in unused_choices(Path(folder), root, options.choice):
        findings.add(
            _finding("unused-choice", root.name, f"{option} chose nothing: there are no such folders")
        )
    findings.extend(_walked(root).issues)
    there = _by_story(root, shot_set, options, findings)
    stories = [_Story(story, there.get(story.story_id), options) for story in shot_set.stories]
    outputs = look_at(stories, findings)
    expected = {story.story_id: len(story.script.shots) for story in shot_set.stories}
    checked = {"stories": len(expected), "valid pictures": sum(len(story.files) for story in outputs)}
    named = {} if options.method is None else {"method": options.method}
    return report_of(
        ShotOutputs, Path(folder), findings, checked,
        seeds=(None,), outputs=outputs, root=root, expected=expected, **named,
    )  # fmt: skip


def _by_story(
    root: Path, shot_set: ShotSet, options: CheckOptions, findings: IssueBin
) -> dict[str, StoryFolder]:
    """Return story id of the set -> folder; a number may be padded otherwise than in the set."""
    by_number = {int(story.story_id): story.story_id for story in shot_set.stories}
    listed: dict[str, StoryFolder] = {}
    for folder in story_folders(root, options.choice):
        story_id = by_number.get(int(folder.story_id))
        if story_id is None:
            message = f"story {folder.story_id} is not in the set"
            findings.add(_finding("unknown-story", folder.story_id, message))
        elif story_id in listed:
            message = f"expected one folder of story {story_id}, found also {listed[story_id].story_id}"
            findings.add(_finding("repeated-story", folder.story_id, message))
        else:
            listed[story_id] = folder
    return listed


@dataclass(frozen=True, slots=True)
class _Story:
    """One story and what lies in its folder."""

    story: ShotStory
    folder: StoryFolder | None
    options: CheckOptions

    def check(self) -> tuple[Output, list[Issue]]:
        """Return the usable pictures by shot, and the findings."""
        wanted = {shot.index for shot in self.story.script.shots}
        story_id = self.story.story_id
        if self.folder is None or not self.folder.files:
            return Output(story_id, None), [missing(story_id, "story", [story_id])]
        issues = [
            _finding("stray-file", f"{story_id}/{stray.name}", "expected pictures of shots")
            for stray in self.folder.strays
        ]
        named: list[tuple[int, Path]] = []
        files: dict[int, OutputFile] = {}
        looked: list[Issue] = []
        for said, file in self.folder.files:
            where = f"{story_id}/{file.name}"
            if said is None:
                message = "expected one number in the name, that of the shot"
                issues.append(_finding("unnumbered-file", where, message))
                continue
            number = said + 1 - self.options.first
            named.append((number, file))
            if number not in files:
                seen = self._look_at(file, where)
                looked += seen.issues
                if seen.sha256 is not None:
                    files[number] = OutputFile(number, file, seen.sha256)
        issues += [*check_numbers(story_id, "shot", sorted(wanted), named), *looked]
        usable = tuple(files[number] for number in sorted(wanted & files.keys()))
        return Output(story_id, None, usable), issues

    def _look_at(self, file: Path, where: str) -> Looked:
        _, cure = CURES[UNREADABLE]
        if file.suffix.lower() not in VIDEOS:
            return look_at_picture(file, where, cure=cure)
        from ...media.video import first_frame

        try:
            first_frame(file)
        except MediaProblem as problem:
            return Looked(None, [unreadable(where, problem, UNREADABLE, cure)])
        return Looked(sha256_file(file), [])


def wanted_shots(shot_set: ShotSet) -> Wanted:
    """Return what a map of shots may name."""
    return Wanted(
        "story",
        {story.story_id: [f"{shot.index:02d}" for shot in story.script.shots] for story in shot_set.stories},
    )


def _finding(code: str, where: str, message: str) -> Issue:
    level, cure = CURES[code]
    return Issue(where, "$", code, message, cure, level)
