"""Generated shots on disk against a set of scripts: which there are, and what is wrong with the rest.

A shot without a usable picture is counted by every metric; it makes nothing else invalid. What could pair a
picture with another shot's text (numbers from 0, numbers said twice) is an error that stops an evaluation.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...media.images import LIMITS, PictureLimits, open_picture, read_bytes
from ...media.problems import MediaProblem
from ...releases.shot_tree import ShotSet, ShotStory
from ...schemas.canonical import Json, digest, sha256_bytes
from ...schemas.issue import Issue, Level
from ...validators.report import IssueBin, ValidationReport
from .layout import (
    VIDEOS,
    Choice,
    StoryFolder,
    find_root,
    shot_number,
    story_folders,
    strays_in,
    unused_choices,
)

_MOST_THREADS = 4
_ODD = ("misnamed", "animated", "blank")
FATAL = frozenset({"numbered-from-zero", "repeated-shot", "unnumbered-file", "repeated-story"})
"""Codes of findings that stop an evaluation: a picture might be judged by another shot's text."""

CURES: dict[str, tuple[Level, str]] = {
    "missing-story": ("warning", "generate the story; it is counted as failed"),
    "unknown-story": ("warning", "move it elsewhere, or evaluate against the set that has it"),
    "repeated-story": ("error", "keep one of the two folders"),
    "unpadded-story": ("warning", "rename the folder as the set has it"),
    "missing-shot": ("warning", "generate the shot; it is counted as missing"),
    "extra-shot": ("warning", "remove it; nothing asks for it"),
    "numbered-from-zero": ("error", "add 1 to every number, or give --first-shot 0"),
    "repeated-shot": ("error", "keep one file of each shot"),
    "unnumbered-file": ("error", "name it by its shot alone, such as shot_01.png"),
    "unreadable-picture": ("error", "generate the shot again; it is counted as missing"),
    "odd-picture": ("warning", "have a look at it"),
    "stray-file": ("warning", "move it elsewhere"),
    "unused-choice": ("warning", "leave the option out, or give the folder that has such folders in it"),
}
"""Code -> level, and what to do."""
HARMLESS = frozenset({"odd-picture", "stray-file", "unpadded-story"})
"""Codes of findings beside which outputs are complete."""


@dataclass(frozen=True, slots=True)
class ShotFile:
    """One picture that can be used.

    Attributes:
        number: of the shot, from 1.
        file: the picture, or the clip whose first frame it is.
        sha256: hash of the file.
    """

    number: int
    file: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class ShotOutputs(ValidationReport):
    """The outputs of one method, checked.

    Attributes:
        method: its name.
        root: the folder that holds the stories' folders.
        shots: story id -> its usable pictures by number; every story of the set has an entry.
        expected: story id -> how many shots its script has.
    """

    method: str
    root: Path
    shots: Mapping[str, Mapping[int, ShotFile]] = field(repr=False)
    expected: Mapping[str, int] = field(repr=False)

    @property
    def fatal(self) -> tuple[Issue, ...]:
        """The findings that stop an evaluation."""
        return tuple(issue for issue in self.issues if issue.code in FATAL)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing and nothing is wrong; odd pictures and stray files are neither."""
        return all(issue.code in HARMLESS for issue in self.issues)

    @property
    def sha256(self) -> str:
        """Hash of the content of all usable pictures."""
        return digest(
            [
                [story, [[one.number, one.sha256] for one in shots.values()]]
                for story, shots in sorted(self.shots.items())
            ]
        )

    def accounting(self) -> dict[str, Any]:
        """Return how much was asked for and is there."""
        there = sum(len(shots) for shots in self.shots.values())
        asked = sum(self.expected.values())
        return {
            "method": self.method,
            "stories_requested": len(self.expected),
            "stories_complete": sum(len(self.shots[key]) == count for key, count in self.expected.items()),
            "stories_without_shot": sum(not shots for shots in self.shots.values()),
            "shots_requested": asked,
            "shots_valid": there,
            "missing_rate": (asked - there) / asked if asked else None,
        }

    def about(self) -> dict[str, Json]:
        """Return the method and the accounting."""
        own = {**self.accounting(), "complete": self.complete, "sha256": self.sha256}
        return {**ValidationReport.about(self), **own}

    def summary(self) -> str:
        """Return the counts as lines for people."""
        told = self.accounting()
        return (
            f"{ValidationReport.summary(self)}\n{self.method}: {told['shots_valid']} of "
            f"{told['shots_requested']} shots in {told['stories_requested']} stories, "
            f"{told['stories_without_shot']} stories without any"
        )


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How outputs are read.

    Attributes:
        method: its name; None for that of the folder.
        choice: which mode, language and time stamp.
        first: number of the first shot in the files' names, 1 or 0.
        limits: what a picture may be at most.
    """

    method: str | None = None
    choice: Choice = field(default_factory=Choice)
    first: int = 1
    limits: PictureLimits = LIMITS


def check_shots(folder: Path, shot_set: ShotSet, options: CheckOptions | None = None) -> ShotOutputs:
    """Check the outputs of one method against a set; decodes every picture.

    Raises:
        InputError: there are no outputs. ConfigError: there are several sets of them and no choice is made.
    """
    options = options or CheckOptions()
    root = find_root(Path(folder), options.choice)
    found = IssueBin()
    for option in unused_choices(Path(folder), root, options.choice):
        found.add(_issue("unused-choice", root.name, f"{option} chose nothing: there are no such folders"))
    for stray in strays_in(root):
        found.add(
            _issue(
                "stray-file",
                stray.name,
                "expected the folder of a story, such as 01, or one that outputs.json names",
            )
        )
    listed = _by_story(root, shot_set, options, found)
    jobs = [_Story(story, listed.get(story.story_id), options) for story in shot_set.stories]
    shots = {}
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for job, (files, issues) in zip(jobs, threads.map(_Story.check, jobs), strict=True):
            found.extend(issues)
            shots[job.story.story_id] = files
    expected = {story.story_id: len(story.script.shots) for story in shot_set.stories}
    checked = {"stories": len(expected), "valid pictures": sum(len(files) for files in shots.values())}
    base = found.report(str(folder), "outputs", checked)
    method = options.method or Path(folder).resolve().name
    return ShotOutputs(
        base.issues, base.checked, base.counts, base.path, base.kind, method, root, shots, expected
    )


def _by_story(
    root: Path, shot_set: ShotSet, options: CheckOptions, found: IssueBin
) -> dict[str, StoryFolder]:
    """Return story id of the set -> folder; a number may be padded otherwise than in the set."""
    by_number = {int(story.story_id): story.story_id for story in shot_set.stories}
    listed: dict[str, StoryFolder] = {}
    for folder in story_folders(root, options.choice):
        story_id = by_number.get(int(folder.story_id))
        if story_id is None:
            message = f"story {folder.story_id} is not in the set"
            found.add(_issue("unknown-story", folder.story_id, message))
        elif story_id in listed:
            message = f"expected one folder of story {story_id}, found also {listed[story_id].story_id}"
            found.add(_issue("repeated-story", folder.story_id, message))
        else:
            listed[story_id] = folder
            if folder.story_id != story_id:
                message = f"taken for story {story_id}"
                found.add(_issue("unpadded-story", folder.story_id, message))
    return listed


@dataclass(frozen=True, slots=True)
class _Story:
    """One story and what was found for it."""

    story: ShotStory
    found: StoryFolder | None
    options: CheckOptions

    def check(self) -> tuple[dict[int, ShotFile], list[Issue]]:
        """Return the usable pictures by shot, and the findings."""
        if self.found is None or not self.found.files:
            message = f"expected {len(self.story.script.shots)} shots, found none"
            return {}, [_issue("missing-story", self.story.story_id, message)]
        issues = list(self._names())
        files: dict[int, ShotFile] = {}
        for file in self.found.files:
            number = self._number(file)
            if number is not None and number not in files:
                shot, more = self._picture(number, file)
                issues += more
                if shot is not None:
                    files[number] = shot
        wanted = {shot.index for shot in self.story.script.shots}
        return {number: files[number] for number in sorted(wanted & files.keys())}, issues

    def _number(self, file: Path) -> int | None:
        number = shot_number(file)
        return None if number is None else number + 1 - self.options.first

    def _names(self) -> Iterator[Issue]:
        assert self.found is not None
        where = self.story.story_id
        for stray in self.found.strays:
            yield _issue("stray-file", f"{where}/{stray.name}", "expected pictures of shots")
        numbers: dict[int, Path] = {}
        for file in self.found.files:
            number = self._number(file)
            if number is None:
                message = "expected one number in the name, that of the shot"
                yield _issue("unnumbered-file", f"{where}/{file.name}", message)
            elif number in numbers:
                message = f"shot {number} is {numbers[number].name} already"
                yield _issue("repeated-shot", f"{where}/{file.name}", message)
            else:
                numbers[number] = file
        wanted = {shot.index for shot in self.story.script.shots}
        missing, beyond = sorted(wanted - numbers.keys()), sorted(numbers.keys() - wanted)
        if 0 in numbers and max(wanted, default=0) not in numbers:
            message = f"expected shots 1 to {len(wanted)}, found {min(numbers)} to {max(numbers)}"
            yield _issue("numbered-from-zero", where, message)
            return
        if missing:
            yield _issue("missing-shot", where, f"expected {len(wanted)} shots, {_told(missing)} missing")
        if beyond:
            yield _issue("extra-shot", where, f"expected {len(wanted)} shots, found also {_told(beyond)}")

    def _picture(self, number: int, file: Path) -> tuple[ShotFile | None, list[Issue]]:
        where = f"{self.story.story_id}/{file.name}"
        try:
            if file.suffix.lower() in VIDEOS:
                return ShotFile(number, file, _checked_clip(file)), []
            data = read_bytes(file, self.options.limits)
            notes = open_picture(data, self.options.limits, name=file.name).notes
        except MediaProblem as problem:
            message = f"[{problem.code}] expected {problem.expected}, found {problem.found}"
            return None, [_issue("unreadable-picture", where, message)]
        odd = [_issue("odd-picture", where, note) for note in notes if note.startswith(_ODD)]
        return ShotFile(number, file, sha256_bytes(data)), odd


def _checked_clip(file: Path) -> str:
    """Return the hash of a clip whose first frame can be decoded."""
    from ...media.video import first_frame
    from ...schemas.canonical import sha256_file

    first_frame(file)
    return sha256_file(file)


def _told(numbers: list[int]) -> str:
    told = ", ".join(map(str, numbers[:10]))
    return told if len(numbers) <= 10 else f"{told} and {len(numbers) - 10} more"


def _issue(code: str, where: str, message: str) -> Issue:
    level, cure = CURES[code]
    return Issue(where, "$", code, message, cure, level)
