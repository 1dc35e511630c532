"""Generated storyboards on disk: which there are, which can be judged, and what is wrong with the rest.

The layout is described in ``docs/outputs.md``.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...media.images import LIMITS, PictureLimits, open_picture, read_bytes
from ...media.problems import MediaProblem
from ...releases.loading import Release
from ...schemas.canonical import Json, digest, sha256_bytes
from ...schemas.issue import Issue, Level
from ...schemas.katha import StoryRecord
from ...validators.report import IssueBin, ValidationReport
from ..named_outputs import MANIFEST, read_manifest
from .layout import Listed, OutputsManifest, list_folder
from .story_folders import find_story_folders, nothing_found

_MOST_THREADS = 4
# What a picture may be and yet be worth a look: an animation, a single colour, another format than its name.
_ODD = ("misnamed", "animated", "blank")
UNREADABLE = "unreadable-picture"
"""Code of a generation with a file that cannot be read, or that holds no picture."""


@dataclass(frozen=True, slots=True)
class Storyboard:
    """One generation that can be judged.

    Attributes:
        story_id: of which story.
        seed: seed of the generation; None where the folder holds one generation per story.
        files: its pictures, in panel order.
        scenes: per panel the index of the scene that it shows; None for a bridge frame, and for every panel
            where panels and scenes do not correspond one to one.
        sha256: per panel the hash of the file.
    """

    story_id: str
    seed: int | None
    files: tuple[Path, ...]
    scenes: tuple[int | None, ...]
    sha256: tuple[str, ...] = ()

    @property
    def panels(self) -> int:
        """How many pictures it has."""
        return len(self.files)


@dataclass(frozen=True, slots=True)
class InvalidGeneration:
    """One generation that cannot be judged, with the codes of what is wrong with it."""

    story_id: str
    seed: int | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputsReport(ValidationReport):
    """The outputs of one method, checked; findings and counts as in every validation.

    Attributes:
        method: the method's name, from ``outputs.json`` or else the folder's.
        seeds: the seeds expected of every story; ``(None,)`` where there is one generation per story.
        storyboards: the generations that can be judged, sorted by story and seed.
        invalid: the others, sorted likewise. Both together are what was requested.
        sha256: hash of the content of all valid storyboards.
    """

    method: str
    seeds: tuple[int | None, ...]
    storyboards: tuple[Storyboard, ...] = field(repr=False)
    invalid: tuple[InvalidGeneration, ...] = field(repr=False)
    sha256: str

    @property
    def folder(self) -> Path:
        """Where the outputs are."""
        return Path(self.path)

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and is valid (Table 57 of the KathaTrace paper).

        A generation is one story with one seed. A story is valid where at least one of its generations is.
        The invalid rate is that of generations, 0 to 1, and null where none was requested; with one seed this
        is the table's.
        """
        valid, invalid = len(self.storyboards), len(self.invalid)
        stories = {one.story_id for one in self.storyboards}
        requested = stories | {one.story_id for one in self.invalid}
        return {
            "method": self.method,
            "stories_requested": len(requested),
            "stories_valid": len(stories),
            "generations_requested": valid + invalid,
            "generations_valid": valid,
            "generations_invalid": invalid,
            "invalid_rate": invalid / (valid + invalid) if valid + invalid else None,
        }

    def about(self) -> dict[str, Json]:
        """Return the method, the accounting and which generations are invalid."""
        return {
            **ValidationReport.about(self),
            **self.accounting(),
            "seeds": list(self.seeds),
            "sha256": self.sha256,
            "invalid": [
                {"story_id": one.story_id, "seed": one.seed, "codes": list(one.codes)} for one in self.invalid
            ],
        }

    def summary(self) -> str:
        """Return the counts as lines for people."""
        told = self.accounting()
        rate = "-" if told["invalid_rate"] is None else f"{told['invalid_rate']:.1%}"
        return (
            f"{ValidationReport.summary(self)}\n"
            f"{self.method}: {told['stories_valid']} of {told['stories_requested']} stories valid, "
            f"{told['generations_invalid']} of {told['generations_requested']} generations invalid ({rate})"
        )


def check_outputs(
    folder: Path,
    records: Iterable[StoryRecord],
    *,
    known: Iterable[StoryRecord] = (),
    limits: PictureLimits = LIMITS,
    decode: bool = True,
) -> OutputsReport:
    """Check the outputs of one method against the stories that are to be judged.

    Args:
        folder: the outputs of one method.
        records: the stories that are to be judged.
        known: more stories of the release, whose outputs may be there and are left alone.
        limits: what a picture may be at most.
        decode: whether every picture is decoded; without, files are read, and what is in them is not known.

    Raises:
        InputError: a folder is not there or cannot be read, or ``outputs.json`` is not what it must be.
    """
    manifest = read_manifest(folder, OutputsManifest)
    wanted = {record.story_id: record for record in records}
    found = IssueBin()
    stories = {record.story_id: record for record in known} | wanted
    places = find_story_folders(folder, manifest, stories.values())
    found.extend(places.issues)
    found.extend(nothing_found(folder, places, wanted))
    found.extend(_strangers(manifest, set(stories)))
    listed = {story_id: _listed(places.places.get(story_id)) for story_id in sorted(wanted)}
    seeds = _seeds(manifest, listed.values())
    for story_id, one in listed.items():
        found.extend(_around(story_id, one, seeds))
    jobs = [
        _Generation(wanted[story_id], seed, _of_seed(one, seed), manifest, limits, decode)
        for story_id, one in listed.items()
        for seed in seeds
    ]
    storyboards, invalid = [], []
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for job, (storyboard, issues) in zip(jobs, threads.map(_Generation.check, jobs), strict=True):
            found.extend(issues)
            if storyboard is None:
                codes = sorted({issue.code for issue in issues if issue.level == "error"})
                invalid.append(InvalidGeneration(job.record.story_id, job.seed, tuple(codes)))
            else:
                storyboards.append(storyboard)
    pictures = sum(one.panels for one in storyboards)
    checked = {"stories": len(wanted), "generations": len(jobs), "valid pictures": pictures}
    base = found.report(str(folder), "outputs", checked)
    content = [[one.story_id, one.seed, list(one.sha256)] for one in storyboards]
    method = manifest.method or folder.resolve().name
    return OutputsReport(
        base.issues, base.checked, base.counts, base.path, base.kind,
        method, seeds, tuple(storyboards), tuple(invalid), digest(content),
    )  # fmt: skip


def check_methods(
    folders: Sequence[Path], release: Release, splits: Sequence[str] = ()
) -> tuple[OutputsReport, ...]:
    """Check the outputs of several methods against a release, or against some of its splits.

    Raises:
        InputError: as :func:`check_outputs`; a split that the release does not hold; two methods of one name.
    """
    problems: list[UserError] = [
        UserError(
            f"--split {split}",
            what="the release has no stories in this split",
            fix=f"use one of {', '.join(release.splits)}",
        )
        for split in splits
        if split not in release.splits
    ]
    if problems:
        raise InputError(problems)
    records = [record for record in release if not splits or record.split in splits]
    reports = tuple(check_outputs(folder, records, known=release) for folder in folders)
    methods = [report.method for report in reports]
    for report in reports:
        if methods.count(report.method) > 1:
            problems.append(
                UserError(
                    report.path,
                    what=f"several folders give outputs of the method {report.method!r}",
                    fix=f'write {{"method": "NAME"}} into its {MANIFEST}, or rename the folder',
                )
            )
    if problems:
        raise InputError(problems)
    return reports


def can_be_shown(board: Storyboard, limits: PictureLimits = LIMITS) -> bool:
    """Return whether every picture of a storyboard can be decoded."""
    try:
        for file in board.files:
            open_picture(read_bytes(file, limits), limits, name=file.name)
    except MediaProblem:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Generation:
    """One story with one seed: what was found for it, and what is expected."""

    record: StoryRecord
    seed: int | None
    found: tuple[Listed, ...]
    manifest: OutputsManifest
    limits: PictureLimits
    decode: bool

    @property
    def where(self) -> str:
        return self.record.story_id if self.seed is None else f"{self.record.story_id}/seed_{self.seed}"

    def check(self) -> tuple[Storyboard | None, list[Issue]]:
        """Return the storyboard, or None with at least one error; and the findings."""
        if len(self.found) > 1:
            message = f"expected one folder of seed {self.seed}, found {len(self.found)}"
            return None, [_issue(self.where, "repeated-seed", message, "keep one of them")]
        panels = self.found[0].panels if self.found else ()
        if not panels:
            message = f"expected {self.manifest.panels_of(self.record)} pictures, found none"
            return None, [_issue(self.where, "missing-storyboard", message, "generate the storyboard")]
        issues = list(self._numbering([number for number, _ in panels]))
        hashes = []
        for _, file in panels:
            sha256, more = self._picture(file)
            hashes.append(sha256)
            issues += more
        if any(issue.level == "error" for issue in issues):
            return None, issues
        files = tuple(file for _, file in panels)
        scenes = self.manifest.scenes_of(self.record)
        return Storyboard(self.record.story_id, self.seed, files, scenes, tuple(hashes)), issues

    def _numbering(self, numbers: list[int]) -> Iterator[Issue]:
        count = self.manifest.panels_of(self.record)
        expected = f"pictures 1 to {count}"
        repeated = sorted({number for number in numbers if numbers.count(number) > 1})
        if repeated:
            message = f"expected each number once, found more than one picture {_told(repeated)}"
            yield _issue(self.where, "repeated-panel", message, "keep one file of each number")
        if set(numbers) == set(range(count)):
            message = f"expected {expected}, found 0 to {count - 1}: the numbers begin at 0"
            yield _issue(
                self.where, "numbered-from-zero", message, "add 1 to every number; 1 is the first panel"
            )
            return
        missing = sorted(set(range(1, count + 1)) - set(numbers))
        beyond = sorted(set(numbers) - set(range(1, count + 1)))
        if missing:
            message = f"expected {expected}, {_told(missing)} missing"
            yield _issue(self.where, "missing-panel", message, "generate the storyboard again")
        if beyond:
            message = f"expected {expected}, found also {_told(beyond)}"
            cure = f"remove them, or say in {MANIFEST} how many panels the story has or which are bridges"
            yield _issue(self.where, "extra-panel", message, cure)

    def _picture(self, file: Path) -> tuple[str, list[Issue]]:
        where = f"{self.where}/{file.name}"
        try:
            data = read_bytes(file, self.limits)
            notes = open_picture(data, self.limits, name=file.name).notes if self.decode else ()
        except MediaProblem as problem:
            message = f"[{problem.code}] expected {problem.expected}, found {problem.found}"
            return "", [_issue(where, UNREADABLE, message, problem.fix)]
        odd = [note for note in notes if note.startswith(_ODD)]
        return sha256_bytes(data), [
            _issue(where, "odd-picture", note, "have a look at it", "warning") for note in odd
        ]


def _strangers(manifest: OutputsManifest, known: set[str]) -> Iterator[Issue]:
    """Yield what the manifest of a folder says about no story."""
    panels = manifest.panels if isinstance(manifest.panels, dict) else {}
    for story_id in sorted({*panels, *manifest.bridges} - known):
        message = f"{story_id!r} is not a story of the release"
        yield _issue(MANIFEST, "unknown-story", message, "correct the id or remove it", "warning")


def _around(story_id: str, listed: Listed | None, seeds: tuple[int | None, ...]) -> Iterator[Issue]:
    """Yield what is wrong in a story's folder besides its generations."""
    if listed is None:
        return
    yield from _strays(story_id, listed)
    for seed, folder in listed.seeds:
        where = f"{story_id}/{folder.name}"
        if seed not in seeds:
            message = f"{MANIFEST} does not name the seed {seed}"
            yield _issue(where, "unknown-seed", message, "name it, or move the folder elsewhere", "warning")
        elif [one for one, _ in listed.seeds].count(seed) > 1:
            yield _issue(
                where, "repeated-seed", f"more than one folder is of seed {seed}", "keep one of them"
            )
        else:
            yield from _strays(where, list_folder(folder, with_seeds=False))
    if listed.panels and seeds != (None,):
        message = f"expected folders such as seed_{seeds[0]}, found pictures beside them"
        yield _issue(story_id, "mixed-layout", message, "put them into the folder of their seed")


def _strays(where: str, listed: Listed) -> Iterator[Issue]:
    for name in listed.strays:
        message = "expected pictures named by number, such as 01.png"
        yield _issue(f"{where}/{name}", "stray-file", message, "rename it or move it elsewhere", "warning")


def _listed(folder: Path | None) -> Listed | None:
    return None if folder is None else list_folder(folder)


def _seeds(manifest: OutputsManifest, listed: Iterable[Listed | None]) -> tuple[int | None, ...]:
    if manifest.seeds is not None:
        return tuple(sorted(set(manifest.seeds)))
    return tuple(sorted({seed for one in listed if one for seed, _ in one.seeds})) or (None,)


def _of_seed(listed: Listed | None, seed: int | None) -> tuple[Listed, ...]:
    """Return what lies in the folders of a seed: one if all is well."""
    if listed is None:
        return ()
    if seed is None:
        return (listed,)
    return tuple(list_folder(folder, with_seeds=False) for number, folder in listed.seeds if number == seed)


def _told(numbers: list[int]) -> str:
    told = ", ".join(map(str, numbers[:10]))
    return told if len(numbers) <= 10 else f"{told} and {len(numbers) - 10} more"


def _issue(where: str, code: str, message: str, cure: str, level: Level = "error") -> Issue:
    return Issue(where, "$", code, message, cure, level)
