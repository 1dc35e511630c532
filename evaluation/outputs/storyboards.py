"""Generated storyboards on disk: which there are, which can be judged, and what is wrong with the rest.

Numbered pictures lie in a folder per story, or per story and seed; see ``docs/outputs.md``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from ...errors import InputError, UserError
from ...media.images import MediaProblem
from ...media.video import SUFFIXES, chosen_frames, is_video, pictures_in
from ...releases.loading import Release
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.katha import StoryRecord
from ...schemas.text import counted
from ...schemas.values import Issue
from ...validators.report import IssueBin
from .layout import (
    PICTURES,
    VIDEOS,
    Looked,
    Output,
    OutputFile,
    Outputs,
    Wanted,
    check_numbers,
    doubtful_pictures,
    finding,
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
    Place,
    Places,
    entries,
    folders_in,
    named_places,
    nothing_found,
    read_manifest,
    walk,
)

# -- Which folder of a method's outputs holds which story: by ``outputs.json``, by id, or by title

Unit = Literal["panel", "page", "keyframe", "shot"]
MOVING: tuple[Unit, ...] = ("keyframe", "shot")
"""Units that may be videos."""
_LOOKED_INTO = 1000
_SEED = re.compile(r"seed_([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Listed:
    """What lies in one folder."""

    panels: tuple[tuple[int, Path], ...] = ()  # number and file of each picture, sorted by number and name
    # seed -> its folder; several where a seed is written in several ways (``seed_1``, ``seed_01``)
    seeds: tuple[tuple[int, Path], ...] = ()
    strays: tuple[str, ...] = ()  # names of everything else


def number_of(file: Path, unit: Unit | None) -> int | None:
    """Return the number that a file is called by; None where it is called otherwise, or is no such unit."""
    key = key_of(file.stem) if file.suffix.lower() in endings_of(unit) else None
    return None if key is None else key[0]


def endings_of(unit: Unit | None) -> tuple[str, ...]:
    """Return how the files of a unit end."""
    return (*PICTURES, *SUFFIXES) if unit in MOVING else PICTURES


def list_folder(folder: Path, *, with_seeds: bool = True, unit: Unit | None = None) -> Listed:
    """Return what lies in the folder of a story, or of a seed; hidden files are left out."""
    panels, seeds, strays = [], [], []
    for entry in entries(folder):
        number, seed = number_of(entry, unit), _SEED.fullmatch(entry.name)
        if number is not None and not entry.is_dir():
            panels.append((number, entry))
        elif seed and with_seeds and entry.is_dir():
            seeds.append((int(seed[1]), entry))
        else:
            strays.append(entry.name)
    return Listed(tuple(sorted(panels)), tuple(sorted(seeds)), tuple(sorted(strays)))


def find_story_folders(
    folder: Path, named: Mapping[str, str], stories: Iterable[StoryRecord], unit: Unit | None = None
) -> Places:
    """Return which folder holds which story, or which files where they lie flat.

    ``named``: story id -> folder, as its ``outputs.json`` says.
    """
    known = {record.story_id: record for record in stories}
    places = named_places(folder, "folders", named, known.__contains__, "story of the release")
    return walk(folder, wanted_storyboards(known.values()).names(), form_of(unit), places)


def form_of(unit: Unit | None) -> Form:
    """Return how storyboards lie in a method's folder."""
    return Form(
        "story", endings_of(unit), "the id or the title of a story of the release", unknown="unknown-story"
    )


def listed_of(home: Place, unit: Unit | None) -> Listed:
    """Return what there is of a story."""
    if home.folder is not None:
        return list_folder(home.folder, unit=unit)
    return Listed(tuple(sorted((key[0], file) for key, file in home.parts)))


def _nothing_found(
    folder: Path, places: Places, wanted: Mapping[str, StoryRecord], unit: Unit | None
) -> Issue:
    """Return the finding where no story that is judged has a folder: what lies there, and the cure."""
    some = next(iter(sorted(wanted)), "STORY")
    below = folders_in(folder)
    expected = f'with folders such as {some}, or "{wanted[some].title}"' if wanted else "of one method"
    if list_folder(folder, unit=unit).panels:
        message = "this folder holds the pictures of one storyboard"
        cure = f"give the folder above it, {expected}"
    elif places.of:
        message = f"this folder holds {counted(len(places.of), 'story')}, none of which is to be judged"
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
    names = wanted_storyboards(wanted.values()).names()
    return nothing_found(folder, names, form_of(unit), (message, cure))


# -- Other units than storyboard panels: comic panels, illustrated pages, video keyframes and shots
#
# Panels and pages are pictures. Keyframes and shots may be videos, one file for each: judges see frames of
# it, so that questions, packets and scores stay the same. Which frames is one rule for all: a video is cut
# into so many equal parts as frames are wanted, and the middle frame of each part is taken; of one, that is
# the middle frame. Sound and motion are not seen.
#
# Source: KathaTrace, L.4 (partly applicable to video through sampled shots or keyframes); the rule is ours.

MOST_FRAMES = 8
"""Most frames of one video that judges are shown."""


def look_at_unit(file: Path, where: str, frames: int, *, decode: bool = True) -> Looked:
    """Return what is seen of a picture or video.

    ``frames``: how many frames of a video judges see. ``decode``: whether pictures, and
    the frames of videos, are decoded.
    """
    if not is_video(file):
        return look_at_picture(file, where, decode=decode)
    try:
        chosen_frames(file, frames)
        for _ in pictures_in(file, frames) if decode else ():
            pass
        return Looked(sha256_file(file), [])
    except MediaProblem as problem:
        return Looked(None, [unreadable(where, problem, "unreadable-video")])
    except OSError as error:
        missing = MediaProblem(
            str(file), code="unreadable", expected="a video", found=str(error.strerror), fix="check the file"
        )
        return Looked(None, [unreadable(where, missing, "unreadable-video")])


# -- Generated storyboards on disk


class OutputsManifest(NamedFolders):
    """``outputs.json``: what the pictures alone do not tell. Everything in it is optional."""

    method: str | None = Field(default=None, min_length=1, description="Name of the method [the folder's].")
    panels: PositiveInt | dict[str, PositiveInt] | None = Field(
        default=None,
        description="Pictures of every story, or of each story named, bridge frames not counted "
        "[as many as the story has scenes].",
    )
    bridges: dict[str, tuple[PositiveInt, ...]] = Field(
        default_factory=dict, description="Story id -> which of its pictures are bridge frames, from 1."
    )
    seeds: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="Seeds of every story [those that any story has]."
    )
    unit: Unit | None = Field(
        default=None,
        description="What one file is: panel, page, keyframe or shot; the last two may be videos.",
    )
    frames: int = Field(
        default=1,
        ge=1,
        le=MOST_FRAMES,
        description="Frames of each video that judges see: the middles of so many equal parts.",
    )

    def panels_of(self, record: StoryRecord) -> int:
        """Return how many pictures a storyboard must have, bridge frames included."""
        planned = self.panels.get(record.story_id) if isinstance(self.panels, dict) else self.panels
        return (planned or len(record.scenes)) + len(set(self.bridges.get(record.story_id, ())))

    def scenes_of(self, record: StoryRecord) -> tuple[int | None, ...]:
        """Return which scene each picture shows, as far as it is known.

        None for bridge frames, and for all where pictures and scenes do not correspond one to one.
        """
        bridges = set(self.bridges.get(record.story_id, ()))
        panels = self.panels_of(record)
        shown = [number for number in range(1, panels + 1) if number not in bridges]
        if len(shown) != len(record.scenes):
            return (None,) * panels
        scene = dict(zip(shown, (scene.scene_index for scene in record.scenes), strict=True))
        return tuple(scene.get(number) for number in range(1, panels + 1))


@dataclass(frozen=True, slots=True)
class Storyboards(Outputs):
    """The storyboards of one method; outputs are sorted by story and seed."""

    # the storyboards of contrastive variants that are there, called by the variant's id
    variants: tuple[Output, ...] = field(default=(), repr=False)
    unit: Unit | None = None  # what one file is; None where the outputs do not say, for panels
    frames: int = 1  # frames of each video that judges see

    @property
    def sha256(self) -> str:
        """Hash of the content of all valid storyboards."""
        boards = [*self.valid, *(board for board in self.variants if not board.codes)]
        content = [[board.unit, board.seed, [file.sha256 for file in board.files]] for board in boards]
        return digest(content if self.frames == 1 else [self.frames, content])

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and is valid (Table 57 of the KathaTrace paper).

        A generation is one story with one seed. A story is valid where at least one of its generations is.
        The invalid rate is that of generations, 0 to 1, and null where none was requested; with one seed this
        is the table's.
        """
        requested, invalid = len(self.outputs), len(self.invalid)
        return {
            "method": self.method,
            "stories_requested": len({board.unit for board in self.outputs}),
            "stories_valid": len({board.unit for board in self.valid}),
            "generations_requested": requested,
            "generations_valid": requested - invalid,
            "generations_invalid": invalid,
            "invalid_rate": invalid / requested if requested else None,
        }

    def details(self) -> dict[str, Json]:
        """Return the seeds, the hash of the content, what is invalid, and the unit where it is stated."""
        stated: dict[str, Json] = {} if self.unit is None else {"unit": self.unit}
        if self.unit in MOVING:
            stated["frames_each"] = self.frames
        return {
            **stated,
            "seeds": list(self.seeds),
            "sha256": self.sha256,
            "invalid": [
                {"story_id": board.unit, "seed": board.seed, "codes": list(board.codes)}
                for board in self.invalid
            ],
        }

    def told(self) -> str:
        counts = self.accounting()
        rate = "-" if counts["invalid_rate"] is None else f"{counts['invalid_rate']:.1%}"
        invalid = f"{counts['generations_invalid']} of {counts['generations_requested']} generations invalid"
        return f"{counts['stories_valid']} of {counts['stories_requested']} stories valid, {invalid} ({rate})"


def check_outputs(
    folder: Path,
    records: Iterable[StoryRecord],
    *,
    known: Iterable[StoryRecord] = (),
    variants: Iterable[StoryRecord] = (),
    decode: bool = True,
) -> Storyboards:
    """Check the outputs of one method against the stories that are to be judged."""
    manifest = read_manifest(folder, OutputsManifest)
    wanted = {record.story_id: record for record in records}
    findings = IssueBin()
    told = {record.story_id: record for record in variants}
    stories = {record.story_id: record for record in known} | told | wanted
    folders = find_story_folders(folder, manifest.folders, stories.values(), manifest.unit)
    findings.extend(folders.issues)
    if not folders.of.keys() & wanted.keys():
        findings.add(_nothing_found(folder, folders, wanted, manifest.unit))
    findings.extend(_strangers(manifest, set(stories)))
    listed = {
        story_id: listed_of(folders.of.get(story_id, Place()), manifest.unit)
        for story_id in sorted(wanted.keys() | told.keys() & folders.of.keys())
    }
    seeds = _seeds(manifest, listed.values())
    for story_id, there in listed.items():
        findings.extend(_around(story_id, there, seeds, manifest.unit))
    generations = [
        _Generation(stories[story_id], seed, _of_seed(there, seed, manifest.unit), manifest, decode)
        for story_id, there in listed.items()
        for seed in seeds
    ]
    boards = look_at(generations, findings)
    pictures = sum(len(board.files) for board in boards if not board.codes)
    outputs = tuple(board for board in boards if board.unit in wanted)
    beside = tuple(board for board in boards if board.unit not in wanted)
    checked = {"stories": len(wanted), "generations": len(outputs), "valid pictures": pictures}
    if beside:
        checked["variants"] = len({board.unit for board in beside})
    named: dict[str, Any] = {} if manifest.method is None else {"method": manifest.method}
    named |= {"outputs": outputs, "variants": beside, "unit": manifest.unit, "frames": manifest.frames}
    return report_of(Storyboards, folder, findings, checked, seeds=seeds, **named)


def wanted_storyboards(records: Iterable[StoryRecord]) -> Wanted:
    """Return what a map of storyboards may name."""
    stories = {record.story_id: record for record in records}
    parts = {
        story_id: [f"{number:02d}" for number in range(1, len(record.scenes) + 1)]
        for story_id, record in stories.items()
    }
    titles = {story_id: record.title for story_id, record in stories.items()}
    return Wanted("story", parts, titles, endings=(*PICTURES, *VIDEOS))


def check_methods(
    folders: Sequence[Path],
    release: Release,
    splits: Sequence[str] = (),
    variants: Sequence[StoryRecord] = (),
) -> tuple[Storyboards, ...]:
    """Check the outputs of several methods against a release, or against some of its splits."""
    check_splits(release, splits)
    records = [record for record in release if not splits or record.split in splits]
    reports = tuple(check_outputs(folder, records, known=release, variants=variants) for folder in folders)
    methods = [report.method for report in reports]
    problems = [
        UserError(
            report.path, what=f"several folders give outputs of the method {report.method!r}",
            fix=f'write {{"method": "NAME"}} into its {MANIFEST}, or rename the folder',
        )
        for report in reports
        if methods.count(report.method) > 1
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return reports


def check_splits(release: Release, splits: Sequence[str]) -> None:
    problems = [
        UserError(
            f"--split {split}", what="the release has no stories in this split",
            fix=f"use one of {', '.join(release.splits)}",
        )
        for split in splits
        if split not in release.splits
    ]  # fmt: skip
    if problems:
        raise InputError(problems)


def can_be_shown(board: Output) -> bool:
    """Return whether every picture of a storyboard, or the middle of every video, can be decoded."""
    return all(look_at_unit(panel.file, "", 1).sha256 is not None for panel in board.files)


@dataclass(frozen=True, slots=True)
class _Generation:
    """One story with one seed: what lies in its folders, and what is expected."""

    record: StoryRecord
    seed: int | None
    there: tuple[Listed, ...]
    manifest: OutputsManifest
    decode: bool

    @property
    def where(self) -> str:
        return self.record.story_id if self.seed is None else f"{self.record.story_id}/seed_{self.seed}"

    def check(self) -> tuple[Output, list[Issue]]:
        """Return the storyboard, with its pictures or the codes of what is wrong; and the findings."""
        files, issues = self._panels()
        codes = sorted({issue.code for issue in issues if issue.level == "error"})
        return Output(self.record.story_id, self.seed, () if codes else files, tuple(codes)), issues

    def _panels(self) -> tuple[tuple[OutputFile, ...], list[Issue]]:
        if len(self.there) > 1:
            message = f"expected one folder of seed {self.seed}, found {len(self.there)}"
            return (), [finding(self.where, "repeated-seed", message, "keep one of them")]
        panels = self.there[0].panels if self.there else ()
        if not panels:
            return (), [missing(self.where, "story", [self.record.story_id])]
        wanted = range(1, self.manifest.panels_of(self.record) + 1)
        issues = list(check_numbers(self.where, self.manifest.unit or "scene", wanted, panels))
        is_numbered = not issues
        scenes = self.manifest.scenes_of(self.record)
        files = []
        looked: dict[str, Looked] = {}
        for number, file in panels:
            place, frames = f"{self.where}/{file.name}", self.manifest.frames
            seen = look_at_unit(file, place, frames, decode=self.decode)
            scene = scenes[number - 1] if 0 < number <= len(scenes) else None
            files.append(OutputFile(number, file, seen.sha256 or "", scene))
            issues += seen.issues
            looked[file.name] = seen
        issues += doubtful_pictures(self.where, looked) if self.decode and is_numbered else ()
        return tuple(files), issues


def _strangers(manifest: OutputsManifest, known: set[str]) -> Iterator[Issue]:
    """Yield what the manifest of a folder says about no story."""
    panels = manifest.panels if isinstance(manifest.panels, dict) else {}
    for story_id in sorted({*panels, *manifest.bridges} - known):
        message = f"{story_id!r} is not a story of the release"
        yield finding(MANIFEST, "unknown-story", message, "correct the id or remove it", "warning")


def _around(
    story_id: str, listed: Listed, seeds: tuple[int | None, ...], unit: Unit | None
) -> Iterator[Issue]:
    """Yield what is wrong in a story's folder besides its generations."""
    yield from _strays(story_id, listed)
    for seed, folder in listed.seeds:
        where = f"{story_id}/{folder.name}"
        if seed not in seeds:
            message = f"{MANIFEST} does not name the seed {seed}"
            yield finding(where, "unknown-seed", message, "name it, or move the folder elsewhere", "warning")
        elif [number for number, _ in listed.seeds].count(seed) > 1:
            yield finding(
                where, "repeated-seed", f"more than one folder is of seed {seed}", "keep one of them"
            )
        else:
            yield from _strays(where, list_folder(folder, with_seeds=False, unit=unit))
    if listed.panels and seeds != (None,):
        message = f"expected folders such as seed_{seeds[0]}, found pictures beside them"
        yield finding(story_id, "mixed-layout", message, "put them into the folder of their seed")


def _strays(where: str, listed: Listed) -> Iterator[Issue]:
    for name in listed.strays:
        message = "expected pictures named by number, such as 01.png"  # or videos, where the unit may be one
        yield finding(f"{where}/{name}", "stray-file", message, "rename it or move it elsewhere", "warning")


def _seeds(manifest: OutputsManifest, listed: Iterable[Listed]) -> tuple[int | None, ...]:
    if manifest.seeds is not None:
        return tuple(sorted(set(manifest.seeds)))
    return tuple(sorted({seed for there in listed for seed, _ in there.seeds})) or (None,)


def _of_seed(listed: Listed, seed: int | None, unit: Unit | None) -> tuple[Listed, ...]:
    """Return what lies in the folders of a seed: one if all is well."""
    if seed is None:
        return (listed,)
    return tuple(
        list_folder(folder, with_seeds=False, unit=unit) for number, folder in listed.seeds if number == seed
    )
