"""Generated videos on disk, before anything is spent: which there are, which can be judged, what is wrong.

The layout and the codes are described in ``docs/outputs.md``.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...media.problems import MediaProblem
from ...media.video import probe, sample_frames
from ...schemas.canonical import Json
from ...schemas.events import Suite, video_name
from ...schemas.issue import Issue, Level
from ...validators.report import IssueBin, ValidationReport
from ..named_outputs import MANIFEST
from ..nothing import NOTHING_FOUND, listed_names
from ..words import counted
from .settings import frame_count
from .videos import MethodVideos, check_methods, folder_of_each_seed, seeds_of, videos_of

_MOST_THREADS = 4
_SYSTEM_FILES = ("thumbs.db", "desktop.ini")
_NEAR = 90.0
"""Similarity of two names, 0 to 100, from which one is taken for a misspelling of the other."""


@dataclass(frozen=True, slots=True)
class VideosReport(ValidationReport):
    """The videos of one method, checked; findings and counts as in every validation.

    Attributes:
        method: the method's name, that of its folder.
        seeds: the seeds expected of every prompt; ``(None,)`` where there is one video per prompt.
        requested: how many videos were asked for.
        invalid: file name, seed and code of those that cannot be judged.
    """

    method: str
    seeds: tuple[int | None, ...]
    requested: int
    invalid: tuple[tuple[str, int | None, str], ...] = field(repr=False)

    def about(self) -> dict[str, Json]:
        """Return the method, the accounting and which videos cannot be judged."""
        return {
            **ValidationReport.about(self),
            **self.accounting(),
            "seeds": list(self.seeds),
            "invalid": [{"unit": unit, "seed": seed, "code": code} for unit, seed, code in self.invalid],
        }

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and can be judged; the invalid rate is null where nothing was."""
        return {
            "method": self.method,
            "videos_requested": self.requested,
            "videos_valid": self.requested - len(self.invalid),
            "invalid_rate": len(self.invalid) / self.requested if self.requested else None,
        }

    def summary(self) -> str:
        """Return the counts as lines for people."""
        rate = f" ({len(self.invalid) / self.requested:.1%})" if self.requested else ""
        told = f"{len(self.invalid)} of {self.requested} videos cannot be judged{rate}"
        return f"{ValidationReport.summary(self)}\n{self.method}: {told}"


def check_video_methods(
    folders: Sequence[Path], chosen: Suite, known: Suite | None = None
) -> tuple[VideosReport, ...]:
    """Check the videos of several methods against a suite; see :func:`check_videos`.

    Raises:
        InputError: a folder is not there or cannot be read. ConfigError: two methods have one name.
        MissingRequirement: the extra ``video`` is not installed.
    """
    check_methods(folders)
    return tuple(check_videos(folder, chosen, known) for folder in folders)


def check_videos(folder: Path, chosen: Suite, known: Suite | None = None) -> VideosReport:
    """Check the videos of one method; the frames that a judge would see are decoded.

    Args:
        folder: the videos, named as in the suite; with several seeds in folders ``seed_N``.
        chosen: the prompts that are to be judged.
        known: the whole suite, whose other videos may be there and are left alone; the chosen prompts if not
            given.

    Raises:
        InputError: the folder cannot be read. MissingRequirement: the extra ``video`` is not installed.
    """
    found = IssueBin()
    names = {*chosen.prompts, *(known.prompts if known is not None else ())}
    try:
        videos = videos_of(folder, names)
        found.extend(_strangers(videos, chosen, names))
        found.extend(_nothing_found(videos, chosen, names))
    except OSError as error:
        unreadable = UserError(
            str(folder), what=f"the folder cannot be read: {error.strerror}",
            fix="check its permissions",
        )  # fmt: skip
        raise InputError([unreadable]) from error
    wanted = [(unit, seed) for unit in chosen.prompts for seed in videos.seeds]
    places = [videos.below(unit, seed) for unit, seed in wanted]
    invalid = []
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        looked = threads.map(_problem_of, [folder / place for place in places])
        for (unit, seed), place, problem in zip(wanted, places, looked, strict=True):
            if problem is not None:
                found.add(_issue_of(place, problem))
                invalid.append((unit, seed, problem.code))
    checked = {"prompts": len(chosen.prompts), "videos": len(wanted)}
    base = found.report(str(folder), "outputs", checked)
    return VideosReport(
        base.issues, base.checked, base.counts, base.path, base.kind,
        folder.resolve().name, videos.seeds, len(wanted), tuple(invalid),
    )  # fmt: skip


def is_judgeable(path: Path) -> bool:
    """Whether there is a video that can be decoded as far as a judge would see it.

    Raises:
        MissingRequirement: the extra ``video`` is not installed.
    """
    return _problem_of(path) is None


def _problem_of(path: Path) -> MediaProblem | None:
    """Return why a video cannot be judged; None where it can."""
    if not path.is_file():
        return MediaProblem(
            str(path), code="missing", expected="a video", found="no such file", fix="generate it"
        )
    try:
        for _ in sample_frames(path, frame_count(probe(path).frames)):
            pass
    except MediaProblem as problem:
        return problem
    return None


def _issue_of(place: str, problem: MediaProblem) -> Issue:
    if problem.code == "missing":
        return _issue(place, "missing-video", "expected a video, found none", "generate it")
    message = f"[{problem.code}] expected {problem.expected}, found {problem.found}"
    return _issue(place, "unreadable-video", message, problem.fix)


def _strangers(videos: MethodVideos, chosen: Suite, names: set[str]) -> Iterator[Issue]:
    """Yield what lies in the folder and is the video of no prompt, or not where it is looked for."""
    folder, seeds = videos.folder, videos.seeds
    own = {f"seed_{seed}" for seed in seeds if seed is not None}
    named = {place.partition("/")[0] for place in videos.own()} - own
    for path in _entries(folder):
        if path.name in named:
            continue
        if path.is_dir():
            if path.name in own:
                yield from _in_folder(path, videos, chosen, names)
            else:
                message = "expected videos, or folders such as seed_1"
                yield _issue(path.name, "stray-file", message, "move it elsewhere", "warning")
        elif own and path.name in names:
            message = f"expected folders such as seed_{seeds[0]}, found a video beside them: it is not judged"
            yield _issue(path.name, "mixed-layout", message, "put it into the folder of its seed")
        elif path.name not in names:
            yield _stranger(path, "", folder, chosen)


def _nothing_found(videos: MethodVideos, chosen: Suite, names: set[str]) -> Iterator[Issue]:
    """Yield one finding where no video that is judged is there: what lies there instead, and the cure."""
    folder, seeds = videos.folder, videos.seeds
    if any(videos.path(unit, seed).is_file() for seed in seeds for unit in chosen.prompts):
        return
    below = [entry for entry in _entries(folder) if entry.is_dir()]
    methods = [entry.name for entry in below if _holds_videos(entry, chosen)]
    some = next(iter(chosen.prompts))
    others = sum(videos.path(unit, seed).is_file() for seed in seeds for unit in names)
    if methods:
        message = f"this folder holds the videos of {counted(len(methods), 'method')}"
        cure = f"give one of: {listed_names(methods)}"
    elif others:
        message = f"this folder holds {others} videos of the suite, none of which is to be judged"
        cure = "choose other prompts (--prompt, --label), or give the videos of these"
    else:
        message = "no video in this folder is called like one of the suite"
        cure = (
            f"name the videos as the suite does, such as {some}, or say in {MANIFEST} which is which:"
            f' {{"files": {{"{some}": "FILE"}}}}'
        )
    yield _issue(".", NOTHING_FOUND, message, cure)


def _holds_videos(folder: Path, chosen: Suite) -> bool:
    places = folder_of_each_seed(folder, seeds_of(folder))
    return any((place / unit).is_file() for place in places for unit in chosen.prompts)


def _in_folder(folder: Path, videos: MethodVideos, chosen: Suite, names: set[str]) -> Iterator[Issue]:
    named = {Path(name).parts[0] for name in videos.named.values()}
    for path in _entries(folder):
        if path.name not in named and (path.name not in names or path.is_dir()):
            yield _stranger(path, f"{folder.name}/", folder, chosen)


def _stranger(path: Path, prefix: str, folder: Path, chosen: Suite) -> Issue:
    """Return the finding about a file that no prompt asks for: a wrong name, or a stray."""
    where = f"{prefix}{path.name}"
    meant = None if path.is_dir() else _meant(path, folder, chosen)
    if meant is not None:
        message = f"a video of no prompt; {meant} is missing"
        return _issue(where, "wrong-name", message, f"rename it to {meant}, if it is that video")
    return _issue(where, "stray-file", "expected the video of a prompt", "move it elsewhere", "warning")


def _meant(path: Path, folder: Path, chosen: Suite) -> str | None:
    """Return the missing video that a file's name comes near to."""
    from rapidfuzz.fuzz import ratio
    from rapidfuzz.process import extractOne

    missing = [unit for unit in chosen.prompts if not (folder / unit).is_file()]
    spelt = video_name(path.stem.replace("_", " ")).casefold()
    found = extractOne(spelt, [unit.casefold() for unit in missing], scorer=ratio, score_cutoff=_NEAR)
    return None if found is None else missing[found[2]]


def _entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        if not path.name.startswith(".") and path.name.lower() not in _SYSTEM_FILES:
            yield path


def _issue(where: str, code: str, message: str, cure: str, level: Level = "error") -> Issue:
    return Issue(where, "$", code, message, cure, level)
