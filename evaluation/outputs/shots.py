"""Generated shots on disk against a set of scripts: which there are, and what is wrong with the rest.

A shot without a usable picture is counted by every metric; it makes nothing else invalid. What could pair a
picture with another shot's text (numbers from 0, numbers said twice) is an error that stops an evaluation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...media.images import LIMITS, MediaProblem, PictureLimits
from ...releases.shots.tree import ShotSet, ShotStory
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.text import tallied
from ...schemas.values import Issue, Level
from ...validators.report import IssueBin
from .checked import (
    UNREADABLE,
    Looked,
    Output,
    OutputFile,
    Outputs,
    look_at,
    look_at_picture,
    report_of,
    unreadable,
)
from .layout import NUMBERED_FROM_ZERO, REPEATED, VIDEOS, Wanted, check_numbers, missing
from .shot_folders import (
    Choice,
    StoryFolder,
    find_root,
    story_folders,
    strays_in,
    unused_choices,
)

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
        """Return the accounting in words."""
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
    limits: PictureLimits = LIMITS  # what a picture may be at most


def check_shots(folder: Path, shot_set: ShotSet, options: CheckOptions | None = None) -> ShotOutputs:
    """Check the outputs of one method against a set; decodes every picture."""
    options = options or CheckOptions()
    root = find_root(Path(folder), options.choice)
    findings = IssueBin()
    for option in unused_choices(Path(folder), root, options.choice):
        findings.add(
            _finding("unused-choice", root.name, f"{option} chose nothing: there are no such folders")
        )
    for stray in strays_in(root):
        message = "expected the folder of a story, such as 01, or one that outputs.json names"
        findings.add(_finding("stray-file", stray.name, message))
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
            return look_at_picture(file, where, self.options.limits, cure=cure)
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
