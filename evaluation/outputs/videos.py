"""Generated videos on disk, before anything is spent: where they lie, which can be judged, what is wrong.

They lie by the suite's file names, by seed, or as ``outputs.json`` says. The layout and the codes are
described in ``docs/outputs.md``.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...media.images import MediaProblem
from ...media.video import probe, sample_frames
from ...schemas.canonical import Json
from ...schemas.events import Suite
from ...schemas.plain_files import below, composed, explaining
from ...schemas.values import Issue
from ...validators.report import IssueBin
from .layout import (
    VIDEOS,
    Names,
    Output,
    OutputFile,
    Outputs,
    Wanted,
    finding,
    key_of,
    look_at,
    missing,
    repeated_names,
    report_of,
    unreadable,
)
from .named import (
    MANIFEST,
    Form,
    NamedFiles,
    Place,
    entries,
    named_places,
    nothing_found,
    read_manifest,
    require_distinct,
    walk,
)

FORM = Form("prompt", VIDEOS, "the videos of prompts, or folders such as seed_1", 0)
_SEED = re.compile(r"seed_(0|[1-9][0-9]{0,17})", re.ASCII)


FEWEST, MOST, EVERY = 4, 32, 4


def frame_count(frames: int) -> int:
    """Return how many of K frames judges see: ``max(min(32, floor(K / 4)), 4)`` (Eq. 2)."""
    return max(min(MOST, frames // EVERY), FEWEST)


@dataclass(frozen=True, slots=True)
class MethodVideos:
    folder: Path  # of the method, which bears its name
    seeds: tuple[int | None, ...]  # of its folders ``seed_N`` or its files ``NAME-N``; only null without
    # file name in the suite and seed -> the video, by its path in the folder; of videos that are there, and
    # of those that ``outputs.json`` names
    files: Mapping[tuple[str, int | None], str] = field(default_factory=dict)

    def below(self, unit: str, seed: int | None) -> str:
        """Return where the video of a prompt is looked for, by its path in the method's folder."""
        usual = unit if seed is None else f"seed_{seed}/{unit}"
        return self.files.get((composed(unit), seed), usual)

    def path(self, unit: str, seed: int | None) -> Path:
        """Return where the video of a prompt is looked for."""
        return below(self.folder, self.below(unit, seed))

    def own(self) -> set[str]:
        """Return the videos of prompts and ``outputs.json``, by path in the method's folder."""
        return {MANIFEST, *map(composed, self.files.values())}


def videos_of(folder: Path, units: Collection[str]) -> MethodVideos:
    """Return where the videos of a method lie; see :func:`videos_in` for how they may be called."""
    named = read_manifest(folder, NamedFiles).files
    seeds = seeds_of(folder)
    for place in folder_of_each_seed(folder, seeds):
        named_places(place, "files", named, units.__contains__, "prompt of the suite")
    taken = {str(Path(name)): unit for unit, name in named.items()}
    problems = [
        UserError(
            f"{folder / MANIFEST} $.files.{taken[unit]}", what=f"{unit} is the video of another prompt",
            fix="name the file of that prompt, too",
        )
        for unit in units
        if taken.get(unit, unit) != unit and unit not in named
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    there = videos_in(folder, seeds, units)
    if named and there.seeds != seeds:  # what outputs.json names has no numbers behind its name
        there = MethodVideos(folder, seeds)
    others = {key: name for key, name in there.files.items() if key[0] not in map(composed, named)}
    known = {
        (composed(unit), seed): name if seed is None else f"seed_{seed}/{name}"
        for unit, name in named.items()
        for seed in there.seeds
    }
    return replace(there, files=others | known)


def videos_in(folder: Path, seeds: tuple[int | None, ...], units: Iterable[str]) -> MethodVideos:
    """Return the videos that are called like a prompt, or lie in a folder called like it.

    A name may have other case, marks and ending than the suite has; a number behind it (``NAME-0.mp4``, as
    VBench has them) or in the folder (``NAME/0.mp4``) is a seed, where no folders ``seed_N`` are.
    """
    names = wanted_names(units)
    files: dict[tuple[str, int | None], str] = {}
    for seed, inside in zip(seeds, folder_of_each_seed(folder, seeds), strict=True):
        for unit, home in walk(inside, names, FORM).of.items():
            for number, file in _numbered(home):
                said = number if seeds == (None,) else seed
                if number is None or seeds == (None,):
                    files.setdefault((unit, said), file.relative_to(folder).as_posix())
    numbers = {seed for _, seed in files if seed is not None}
    plain = {key: name for key, name in files.items() if key[1] is None}
    if seeds != (None,) or (len(numbers) > 1 and not plain):
        return MethodVideos(folder, tuple(sorted(numbers)) if seeds == (None,) else seeds, files)
    only = {} if len(numbers) > 1 else {(unit, None): name for (unit, _), name in files.items()}
    return MethodVideos(folder, seeds, only | plain)


def _numbered(home: Place) -> Iterator[tuple[int | None, Path]]:
    """Yield the videos of a prompt, each with the number that its name says."""
    there = entries(home.folder) if home.folder is not None else ()
    inside = [file for file in there if file.suffix.lower() in VIDEOS and not file.is_dir()]
    yield from ((None, file) for file in home.wholes)
    for file in inside:
        key = key_of(file.stem)
        if key is not None or len(inside) == 1:
            yield None if key is None else key[0], file
    yield from ((key[0], file) for key, file in home.parts)


def wanted_names(units: Iterable[str]) -> Names:
    """Return the names that the videos of prompts may bear."""
    return Wanted("prompt", dict.fromkeys(map(composed, units), ("",)), numbers=0).names()


def wanted_videos(suite: Suite) -> Wanted:
    """Return what a map of videos may name."""
    return Wanted("prompt", dict.fromkeys(suite.prompts, ("",)), numbers=0, endings=VIDEOS)


def seeds_of(folder: Path) -> tuple[int | None, ...]:
    """Return the seeds of a method by its sub-folders ``seed_N``; only null where it has none."""
    numbers = (_SEED.fullmatch(path.name) for path in folder.iterdir() if path.is_dir())
    seeds = [int(number[1]) for number in numbers if number]
    return tuple(sorted(seeds)) or (None,)


def folder_of_each_seed(folder: Path, seeds: Sequence[int | None]) -> list[Path]:
    """Return the folder of each seed: that of the method where there is one video per prompt."""
    return [folder if seed is None else folder / f"seed_{seed}" for seed in seeds]


def check_methods(folders: Sequence[Path]) -> None:
    """Check that the folders are there, and each of another method."""
    problems = [
        UserError(str(folder), what="there is no such folder of generated videos", fix="check the path")
        for folder in folders
        if not folder.is_dir()
    ]
    if problems:
        raise InputError(problems)
    require_distinct([folder.name for folder in folders])


@dataclass(frozen=True, slots=True)
class Videos(Outputs):
    """The videos of one method, checked; one of each prompt and seed."""

    @property
    def requested(self) -> int:
        return len(self.outputs)

    def details(self) -> dict[str, Json]:
        """Return the seeds, and which videos cannot be judged."""
        return {
            "seeds": list(self.seeds),
            "invalid": [
                {"unit": video.unit, "seed": video.seed, "code": video.codes[0]} for video in self.invalid
            ],
        }

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and can be judged; the invalid rate is null where nothing was."""
        invalid = len(self.invalid)
        return {
            "method": self.method,
            "videos_requested": self.requested,
            "videos_valid": self.requested - invalid,
            "invalid_rate": invalid / self.requested if self.requested else None,
        }

    def told(self) -> str:
        invalid = len(self.invalid)
        if not invalid:
            return f"{self.requested} of {self.requested} videos can be judged"
        rate = f" ({invalid / self.requested:.1%})"
        return f"{invalid} of {self.requested} videos cannot be judged{rate}"


def check_video_methods(folders: Sequence[Path], chosen: Suite) -> tuple[Videos, ...]:
    """Check the videos of several methods against a suite; see :func:`check_videos`."""
    check_methods(folders)
    return tuple(check_videos(folder, chosen) for folder in folders)


def check_videos(folder: Path, chosen: Suite, known: Suite | None = None) -> Videos:
    """Check the videos of one method; the frames that a judge would see are decoded."""
    findings = IssueBin()
    names = {*map(composed, chosen.prompts), *map(composed, known.prompts if known is not None else ())}
    with explaining(folder, "check its permissions", what="the folder cannot be read", of=OSError):
        videos = videos_of(folder, names)
        findings.extend(_strangers(videos, names, folder))
        findings.extend(_nothing_found(videos, chosen, names))
    wanted = [_Video(videos, unit, seed) for unit in chosen.prompts for seed in videos.seeds]
    checked = {"prompts": len(chosen.prompts), "videos": len(wanted)}
    outputs = look_at(wanted, findings)
    return report_of(Videos, folder, findings, checked, seeds=videos.seeds, outputs=outputs)


@dataclass(frozen=True, slots=True)
class _Video:
    """The video of one prompt with one seed."""

    videos: MethodVideos
    unit: str
    seed: int | None

    def check(self) -> tuple[Output, list[Issue]]:
        """Return the video, with the code of what keeps it from being judged; and the finding."""
        path, where = self.videos.path(self.unit, self.seed), self.videos.below(self.unit, self.seed)
        problem = _problem_of(path)
        if problem is None:
            return Output(self.unit, self.seed, (OutputFile(1, path),)), []
        issue = unreadable(where, problem, "unreadable-video")
        if problem.code == "missing":
            issue = missing(where, "video", [self.unit])
        return Output(self.unit, self.seed, codes=(problem.code,)), [issue]


def is_judgeable(path: Path) -> bool:
    """Whether there is a video that can be decoded as far as a judge would see it."""
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


def _strangers(videos: MethodVideos, names: set[str], folder: Path) -> Iterator[Issue]:
    """Yield what lies in the folder and is the video of no prompt, or not where it is looked for."""
    own, seeds = videos.own(), [f"seed_{seed}" for seed in videos.seeds if seed is not None]
    inside = folder != videos.folder
    yield from repeated_names(folder, f"{folder.name}/" if inside else "")
    for path in entries(folder):
        where = path.relative_to(videos.folder).as_posix()
        name = composed(where)
        if path.is_dir() and (name in seeds or any(known.startswith(f"{name}/") for known in own)):
            yield from _strangers(videos, names, path)
        elif name not in own and seeds and name in names:
            message = f"expected folders such as {seeds[0]}, found a video beside them: it is not judged"
            yield finding(where, "mixed-layout", message, "put it into the folder of its seed")
        elif name not in own and (inside or name not in names):
            yield finding(where, "stray-file", f"expected {FORM.expected}", "move it elsewhere", "warning")


def _nothing_found(videos: MethodVideos, chosen: Suite, names: set[str]) -> Iterator[Issue]:
    """Yield one finding where no video that is judged is there: what lies there instead, and the cure."""
    folder, seeds = videos.folder, videos.seeds
    if any(videos.path(unit, seed).is_file() for seed in seeds for unit in chosen.prompts):
        return
    some = next(iter(chosen.prompts))
    others = sum(videos.path(unit, seed).is_file() for seed in seeds for unit in names)
    if others:
        message = f"this folder holds {others} videos of the suite, none of which is to be judged"
        cure = "choose other prompts (--prompt, --label), or give the videos of these"
    else:
        message = "no video in this folder is called like one of the suite"
        cure = (
            f"name the videos as the suite does, such as {some}, or say in {MANIFEST} which is which:"
            f' {{"files": {{"{some}": "FILE"}}}}'
        )
    yield nothing_found(folder, wanted_names(chosen.prompts), FORM, (message, cure))
