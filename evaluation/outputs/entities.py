"""Generated episodes on disk against their scripts: which shots have a video, and what is wrong.

A method's folder holds for each episode a folder with one video per shot, ``<scene>_<shot>*.mp4``, which the
public code of EntityBench writes with three digits each, or one video ``<episode>.mp4`` with a cut list.
A shot without a usable video is counted by every metric and makes no other shot unusable.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ...errors import InputError
from ...media.images import MediaProblem
from ...media.shot_detection import Method, detect
from ...media.video import outline, probe
from ...releases.entities.tree import EntitySet, Episode
from ...schemas.canonical import Json
from ...schemas.entities import EpisodeShot
from ...schemas.plain_files import CsvTable, below, read_plain, reason_of
from ...schemas.text import counted, tallied
from ...schemas.values import Issue, Level
from ...validators.report import IssueBin
from .layout import (
    NUMBERED_FROM_ZERO,
    VIDEOS,
    Key,
    Names,
    Output,
    OutputFile,
    Outputs,
    Wanted,
    finding,
    key_of,
    listed_names,
    look_at,
    missing,
    repeated_names,
    report_of,
)
from .named import Form, Place, entries, nothing_found, pairs_once, shown, walk

# -- Where the shots of an episode are in one video of all of it: a cut list, or cuts that are found
#
# A cut list says for each shot its first frame and the one behind its last, counted from 0::
#
#     ep_a.cuts.json    {"1:1": [0, 81], "1:2": [81, 162]}
#     ep_a.cuts.csv     shot,start,stop
#                       1:1,0,81

ENDINGS = (".cuts.json", ".cuts.csv")
COLUMNS = ("shot", "start", "stop")
_MOST_BYTES = 5_000_000
_MOST_DIGITS = 9


class Span(NamedTuple):
    """A stretch of frames: the first one, and the one behind the last."""

    start: int
    stop: int


class BadCuts(ValueError):
    """A cut list that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where shots are in one video."""

    spans: Mapping[str, Span]  # key of a shot -> its frames; shots that are nowhere are left out
    source: str  # name of the cut list, or what found the cuts
    detected: tuple[Span, ...] = ()  # all shots that were found, in order; none where a list was given


def list_of(folder: Path, episode_id: str) -> Path | None:
    there = [path for ending in ENDINGS if (path := below(folder, f"{episode_id}{ending}")).exists()]
    if len(there) > 1:
        raise BadCuts(f"there are {there[0].name} and {there[1].name}; keep one of them")
    return there[0] if there else None


def read_cuts(path: Path, frames: int) -> Cuts:
    """Return what a cut list says of a video with so many frames.

    Shots are in the order of their frames and share none; frames between two shots belong to neither.
    """
    try:
        text = read_plain(path, _MOST_BYTES, follow=True).decode("utf-8-sig")
        rows = _json_rows(text) if path.name.endswith(ENDINGS[0]) else _csv_rows(text)
    except (OSError, ValueError, RecursionError) as error:
        raise BadCuts(reason_of(error)[:200]) from error
    spans = {key: Span(_frame(key, start), _frame(key, stop)) for key, start, stop in rows}
    if len(spans) < len(rows):
        raise BadCuts("a shot is listed twice")
    ordered = sorted(spans.items(), key=lambda item: item[1])
    before, reached = "", 0
    for key, span in ordered:
        if not span.start < span.stop:
            raise BadCuts(f"shot {key} ends at frame {span.stop}, and begins at {span.start}")
        if span.start < reached:
            raise BadCuts(f"shots {before} and {key} have frames in common")
        if span.stop > frames:
            raise BadCuts(f"shot {key} ends at frame {span.stop}, and the video has {frames} frames")
        before, reached = key, span.stop
    return Cuts(spans, path.name)


def find_cuts(video: Path, keys: Sequence[str], method: Method, device: str = "cpu") -> Cuts:
    """Return the shots that a detector finds, matched to those of the schedule by their order.

    Only as many as the schedule has can be matched: where their number differs, no shot is anywhere, as the
    wrong text would be judged from the first misfit on.
    """
    shots = detect(video, method, device=device)
    in_order = tuple(Span(span.first, span.last + 1) for span in shots.spans)
    spans = dict(zip(keys, in_order, strict=True)) if len(in_order) == len(keys) else {}
    return Cuts(spans, shots.method, in_order)


def _json_rows(text: str) -> list[tuple[str, object, object]]:
    read = json.loads(text, object_pairs_hook=pairs_once)
    if not isinstance(read, dict) or not all(
        isinstance(span, list) and len(span) == 2 for span in read.values()
    ):
        raise ValueError('expected {"SHOT": [START, STOP]}')
    return [(key, *span) for key, span in read.items()]


def _csv_rows(text: str) -> list[tuple[str, object, object]]:
    table = CsvTable(text)
    if table.columns != COLUMNS:
        raise ValueError(f"expected the columns {','.join(COLUMNS)}")
    rows = [[cell.strip() for cell in cells] for _, cells in table.rows()]
    if any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"a line has not {len(COLUMNS)} values")
    return [(row[0], row[1], row[2]) for row in rows]


def _frame(key: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise BadCuts(f"shot {key}: {text[:40]!r} is no number of a frame, from 0")
    return int(text)


# -- Generated episodes on disk against their scripts

FEWEST = 5
"""Frames that a shot has at least: so many are looked at in each (N_frame of EntityBench, Table 11)."""
CONTAINERS = (*VIDEOS, ".gif")
"""Endings of files that are taken for videos; what is in them decides whether they are."""
Layout = Literal["shots", "film"]

CURES: dict[str, tuple[Level, str]] = {
    "short-shot": ("error", f"generate it with {FEWEST} frames or more; it is counted as missing"),
    "unreadable-video": ("error", "generate or copy it again; it is counted as missing"),
    NUMBERED_FROM_ZERO: ("error", "add 1 to the numbers: scenes and shots are counted from 1"),
    "unknown-shot": ("error", "compare the numbers with the schedule: other shots may be misnumbered, too"),
    "bad-cuts": ("error", "correct the cut list; docs/outputs.md says what it looks like"),
    "wrong-count": ("error", "say in a cut list where the shots are; --json prints what was found"),
    "mixed-layout": ("error", "keep the folder with a video per shot, or the video of the whole episode"),
    "several-videos": ("warning", "keep one video of each shot"),
    "stray-file": ("warning", "move it elsewhere"),
}
"""Code -> level, and what to do."""
FATAL = frozenset({NUMBERED_FROM_ZERO, "mixed-layout"})
"""Codes of findings that stop an evaluation: a video might be judged by another shot's text."""
FORM = Form(
    "episode", CONTAINERS, "the folder or the video of an episode", 2, "unknown-episode",
    "rename it to its episode, move it elsewhere, or check against the set that has the episode",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How outputs are looked at."""

    finder: Method = "transnetv2"  # what finds the shots of an episode's video that has no cut list
    device: str = "cpu"  # where it runs
    # whether videos are decoded, which tells whether they are whole and long enough; without, only what lies
    # where is looked at, and the cuts of videos of whole episodes
    decode: bool = True


@dataclass(frozen=True, slots=True)
class ShotVideo:
    key: str  # of the shot, ``<scene>:<shot>``
    file: Path | None = None  # the video; None where there is none
    span: Span | None = None  # its frames in the video of a whole episode; None where the file is the shot
    # why it cannot be looked at, such as ``missing``; None where nothing is known against it
    code: str | None = None


@dataclass(frozen=True, slots=True)
class EpisodeOutput(Output):
    """What a method made of one episode."""

    layout: Layout | None = None  # a video per ``shots``, or one ``film``; None where there is nothing
    shots: tuple[ShotVideo, ...] = ()  # one of each shot of the script, in story order
    cuts: Cuts | None = None  # where the shots are in the film


@dataclass(frozen=True, slots=True)
class EpisodeOutputs(Outputs):
    """The outputs of one method, checked; ``outputs`` has one of each episode asked for."""

    outputs: tuple[EpisodeOutput, ...] = field(repr=False)

    @property
    def by_id(self) -> dict[str, EpisodeOutput]:
        return {output.unit: output for output in self.outputs}

    def accounting(self) -> dict[str, Any]:
        """Return how much was asked for and can be looked at."""
        shots = [shot for output in self.outputs for shot in output.shots]
        invalid = sum(shot.code is not None for shot in shots)
        return {
            "method": self.method,
            "episodes_requested": len(self.outputs),
            "episodes_complete": len(self.valid),
            "shots_requested": len(shots),
            "shots_valid": len(shots) - invalid,
            "missing_rate": invalid / len(shots) if shots else None,
        }

    def details(self) -> dict[str, Json]:
        """Return which shots cannot be looked at, and the shots that were found in videos of episodes."""
        return {
            "invalid": [
                {"episode": output.unit, "shot": shot.key, "code": shot.code}
                for output in self.outputs
                for shot in output.shots
                if shot.code is not None
            ],
            "found": {
                output.unit: {
                    "by": output.cuts.source,
                    "spans": [list(span) for span in output.cuts.detected],
                }
                for output in self.outputs
                if output.cuts is not None and output.cuts.detected
            },
        }

    def told(self) -> str:
        counts = self.accounting()
        return (
            f"{counts['shots_valid']} of {counts['shots_requested']} shots in"
            f" {counted(counts['episodes_requested'], 'episode')}, {counts['episodes_complete']} complete"
        )


def check_episodes(
    folder: Path, chosen: EntitySet, known: EntitySet | None = None, options: CheckOptions | None = None
) -> EpisodeOutputs:
    """Check the videos of one method."""
    if not folder.is_dir():
        raise InputError.one(str(folder), what="there is no such folder of videos", fix="check the path")
    findings = IssueBin()
    names = {*chosen.by_id, *(known.by_id if known is not None else ())}
    findings.extend(repeated_names(folder))
    form = replace(FORM, ours=tuple(f"{name}{ending}" for name in names for ending in ENDINGS))
    places = walk(folder, Names(dict.fromkeys(names, ())), form)
    findings.extend(places.issues)
    asked = [
        _Asked(folder, episode, options or CheckOptions(), places.of.get(episode.episode_id, Place()))
        for episode in chosen.episodes
    ]
    outputs = cast("tuple[EpisodeOutput, ...]", look_at(asked, findings))
    if outputs and all(output.layout is None for output in outputs):
        some = next(iter(chosen.by_id))
        message = "no folder and no video here is called like an episode"
        cure = f"name them as the set does: {some}/001_001.mp4, or {some}.mp4"
        findings.add(nothing_found(folder, Names(dict.fromkeys(chosen.by_id, ())), FORM, (message, cure)))
    counts = {"episodes": len(outputs), "shots": sum(len(each.shots) for each in outputs)}
    return report_of(EpisodeOutputs, folder, findings, counts, seeds=(None,), outputs=outputs)


@dataclass(frozen=True, slots=True)
class _Asked:
    folder: Path
    episode: Episode
    options: CheckOptions
    there: Place

    def check(self) -> tuple[EpisodeOutput, list[Issue]]:
        """Return what there is of the episode, and the findings."""
        name, shots = self.episode.episode_id, list(self.episode.script.shots())
        issues: list[Issue] = []
        films = sorted(self.there.wholes, key=lambda film: CONTAINERS.index(film.suffix.lower()))
        film = next(iter(films), None)
        try:
            if self.there.folder is not None and film is not None:
                issues.append(_issue(name, "mixed-layout", f"there is the file {shown(film.name)}, too"))
            if self.there.folder is not None or self.there.parts:
                inside = self.there.folder
                files = [file for _, file in self.there.parts] if inside is None else list(entries(inside))
                videos = _in_folder(name, files, shots, issues)
                videos = [self._looked_at(video, issues) for video in videos]
                return _output(name, "shots", videos, None), issues
            if film is not None:
                return self._film(film, shots, issues), issues
        except OSError as error:
            issues.append(_issue(name, "unreadable-video", f"it cannot be read: {error.strerror}"))
            return _output(name, None, [_lost(shot, "unreadable") for shot in shots], None), issues
        issues.append(missing(name, "episode", [name]))
        return _output(name, None, [_lost(shot, "missing") for shot in shots], None), issues

    def _looked_at(self, video: ShotVideo, issues: list[Issue]) -> ShotVideo:
        """Return the video of a shot with what is wrong with it."""
        if video.file is None:
            return video
        where = f"{self.episode.episode_id}/{shown(video.file.name)}"
        try:
            frames = probe(video.file).frames if self.options.decode else FEWEST
        except MediaProblem as problem:
            issues.append(
                _issue(where, "unreadable-video", f"[{problem.code}] expected {problem.expected}, found"
                       f" {shown(problem.found)}")
            )  # fmt: skip
            return ShotVideo(video.key, video.file, code=problem.code)
        if frames < FEWEST:
            issues.append(_issue(where, "short-shot", f"it has {counted(frames, 'frame')}"))
            return ShotVideo(video.key, video.file, code="too_few_frames")
        return video

    def _film(self, film: Path, shots: Sequence[EpisodeShot], issues: list[Issue]) -> EpisodeOutput:
        name, keys = self.episode.episode_id, [shot.key for shot in shots]
        try:
            frames = probe(film).frames if self.options.decode else outline(film).frames
            listed = list_of(self.folder, name)
            if listed is not None:
                cuts = read_cuts(listed, frames)
            else:
                cuts = find_cuts(film, keys, self.options.finder, self.options.device)
        except MediaProblem as problem:
            message = f"[{problem.code}] expected {problem.expected}, found {shown(problem.found)}"
            issues.append(_issue(shown(film.name), "unreadable-video", message))
            return _output(name, "film", [_lost(shot, problem.code, film) for shot in shots], None)
        except BadCuts as wrong:
            issues.append(_issue(name, "bad-cuts", shown(str(wrong))))
            return _output(name, "film", [_lost(shot, "bad_cuts", film) for shot in shots], None)
        issues.extend(_misfits(name, keys, cuts))
        videos = [_cut_out(key, film, cuts, issues, name) for key in keys]
        return _output(name, "film", videos, cuts)


def shot_video_name(scene: int, number: int) -> str:
    """Return how the name of a shot's video begins, without its ending: ``001_002``."""
    return f"{scene:03d}_{number:03d}"


def _output(name: str, layout: Layout | None, shots: Sequence[ShotVideo], cuts: Cuts | None) -> EpisodeOutput:
    files = tuple(
        OutputFile(number, shot.file)
        for number, shot in enumerate(shots, 1)
        if shot.file is not None and shot.code is None
    )
    codes = tuple(sorted({shot.code for shot in shots if shot.code is not None}))
    return EpisodeOutput(name, None, files, codes, layout, tuple(shots), cuts)


def _lost(shot: EpisodeShot, code: str, file: Path | None = None) -> ShotVideo:
    return ShotVideo(shot.key, file, code=code)


def _in_folder(
    name: str, files: Sequence[Path], shots: Sequence[EpisodeShot], issues: list[Issue]
) -> list[ShotVideo]:
    """Return the video of each shot; of several, the first ``.mp4`` in the order of names, as public code."""
    there: dict[str, list[Path]] = {}
    scheduled = {shot_video_name(shot.scene, shot.number): shot.key for shot in shots}
    scenes = {shot.scene for shot in shots}
    zero: list[str] = []
    unknown: list[str] = []
    for path in files:
        numbers = _key_in(name, path, scenes)
        if numbers is None or path.suffix.lower() not in CONTAINERS or path.is_dir():
            issues.append(
                _issue(f"{name}/{shown(path.name)}", "stray-file", "expected videos such as 001_001.mp4")
            )
            continue
        prefix = shot_video_name(*numbers)
        there.setdefault(prefix, []).append(path)
        if prefix not in scheduled:
            (zero if 0 in numbers else unknown).append(shown(path.name))
    if zero:
        issues.append(_issue(name, "numbered-from-zero", listed_names(zero)))
    if unknown:
        issues.append(_issue(name, "unknown-shot", f"the schedule has no such shot: {listed_names(unknown)}"))
    videos = []
    for prefix, key in scheduled.items():
        some = sorted(there.get(prefix, ()), key=lambda path: (path.suffix != ".mp4", path.name))
        if len(some) > 1:
            message = f"{tallied(len(some), 'videos')} of shot {key}; {shown(some[0].name)} is used"
            issues.append(_issue(f"{name}/{prefix}", "several-videos", message))
        videos.append(ShotVideo(key, some[0]) if some else ShotVideo(key, code="missing"))
    issues.extend(_missing(name, videos))
    return videos


def _key_in(name: str, file: Path, scenes: set[int]) -> Key | None:
    """Return scene and shot that a file's name says; the scene may be left out where there is only one."""
    flat = Names({name: ()}).flat(file.stem, 2)
    key = key_of(file.stem, 2) if flat is None else flat[1]
    alone = key_of(file.stem) if key is None and len(scenes) == 1 else None
    return key if alone is None else (*scenes, *alone)


def _missing(name: str, videos: Sequence[ShotVideo]) -> Iterator[Issue]:
    if lost := [video.key for video in videos if video.code == "missing"]:
        yield missing(name, "shot", lost)


def _misfits(name: str, keys: Sequence[str], cuts: Cuts) -> Iterator[Issue]:
    if cuts.detected and not cuts.spans:
        message = f"{cuts.source} found {tallied(len(cuts.detected), 'shots')}, the schedule has {len(keys)}"
        yield _issue(name, "wrong-count", message)
        return
    unknown = [shown(key) for key in cuts.spans if key not in keys]
    if unknown:
        yield _issue(name, "unknown-shot", f"the schedule has no such shot: {listed_names(unknown)}")
    yield from _missing(name, [ShotVideo(key, code=None if key in cuts.spans else "missing") for key in keys])


def _cut_out(key: str, film: Path, cuts: Cuts, issues: list[Issue], name: str) -> ShotVideo:
    span = cuts.spans.get(key)
    if span is None:
        return ShotVideo(key, film, code="missing" if cuts.spans else "misaligned")
    if span.stop - span.start < FEWEST:
        message = f"shot {key} has {counted(span.stop - span.start, 'frame')}"
        issues.append(_issue(name, "short-shot", message))
        return ShotVideo(key, film, span, "too_few_frames")
    return ShotVideo(key, film, span)


def wanted_videos(whole: EntitySet) -> Wanted:
    """Return what a map of episodes' videos may name."""
    parts = {
        episode.episode_id: [shot_video_name(shot.scene, shot.number) for shot in episode.script.shots()]
        for episode in whole.episodes
    }
    return Wanted("episode", parts, numbers=2, endings=CONTAINERS)


def _issue(where: str, code: str, message: str) -> Issue:
    level, cure = CURES[code]
    return finding(where, code, message, cure, level)
