"""Keyframes of videos as a method's outputs: pictures of shots, and the review file beside the stories."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, TargetError, UserError
from ...media.images import MediaProblem, encode_image
from ...media.video import frames_at
from ...releases.shots.tree import read_shot_set
from ...schemas.canonical import pretty_bytes, write_atomic
from ...schemas.paths import format_path
from ...schemas.plain_files import read_plain
from ..outputs.shot_folders import REVIEW
from .keyframes import Finding, Review, StoryReview, review_videos, videos_left_out


@dataclass(frozen=True, slots=True)
class Keyframes:
    """What was written."""

    folder: Path  # the outputs
    review: Review  # which frame stands for which shot

    @property
    def complete(self) -> bool:
        """Whether every shot of every script has a picture and no shot of a video is left over."""
        stories = self.review.stories.values()
        return all(
            story.reviewed or (story.problem is None and not story.missing and not story.surplus)
            for story in stories
        )

    def as_json(self) -> dict[str, Any]:
        """Return folder, review file and counts."""
        stories = self.review.stories
        return {
            "folder": str(self.folder),
            "review": str(self.folder / REVIEW),
            "complete": self.complete,
            "stories": {
                key: {
                    "problem": story.problem, "found": len(story.found), "shots": len(story.shots),
                    "missing": list(story.missing), "surplus": list(story.surplus),
                    "reviewed": story.reviewed,
                }
                for key, story in stories.items()
            },
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield a line for every story that a person has to look at, and where to correct it."""
        for key, story in self.review.stories.items():
            if story.reviewed:
                continue
            if story.problem is not None:
                yield f"story {key}: no shots: {story.problem}"
            elif story.missing or story.surplus:
                yield (
                    f"story {key}: {len(story.found)} shots found, {len(story.shots)} in the script;"
                    f" missing: {_listed(story.missing)}; surplus: {_listed(story.surplus)}"
                )
        pictures = sum(len(story.shots) - len(story.missing) for story in self.review.stories.values())
        asked = sum(len(story.shots) for story in self.review.stories.values())
        yield f"{pictures} of {asked} shots have a keyframe in {self.folder}"
        if not self.complete:
            yield f"correct {self.folder / REVIEW}, set reviewed to true, and run the command again"


def take_keyframes(
    videos: Path | str,
    release: Path | str,
    out: Path | str,
    finding: Finding | None = None,
    review: Path | str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Keyframes:
    """Find the shots of one video per story, and write the keyframes that stand for the shots of the scripts.

    A review file that is there, or is given, stands for every video that it was made of: what a person
    corrected in it is what is written. Pictures of shots that have none any more go.
    """
    folder, target = Path(videos), Path(out)
    shot_set, _ = read_shot_set(release)
    known = _known(target, None if review is None else Path(review))
    for name in videos_left_out(folder, shot_set) if folder.is_dir() else ():
        progress(f"{name}: left out: its name is the number of no story of the set, such as 01.mp4")

    def keep(story_id: str, so_far: Review) -> None:
        _write_review(target, so_far)
        story = so_far.stories[story_id]
        progress(f"story {story_id}: {story.problem or f'{len(story.found)} shots'}")

    reviewed = review_videos(folder, shot_set, finding or Finding(), known, keep)
    _write_review(target, reviewed)
    try:
        for story_id, story in reviewed.stories.items():
            _write(target / story_id / "shots", folder, story)
    except OSError as error:
        raise _unwritten(target, error) from error
    return Keyframes(target, reviewed)


def read_review(path: Path) -> Review:
    """Read a review file."""
    try:
        return Review.model_validate_json(read_plain(path, follow=True))
    except (OSError, ValidationError) as error:
        if isinstance(error, OSError):
            reason = str(error.strerror)
        else:
            first = error.errors(include_url=False)[0]
            reason = f"{first['msg']} at {format_path(first['loc'])}"
        expected = "a review file of keyframes"
        fix = "correct it, or remove it to begin anew"
        raise InputError([UserError(str(path), expected=expected, found=reason, fix=fix)]) from error


def _known(target: Path, given: Path | None) -> Review | None:
    own = target / REVIEW
    if target.exists() and not own.exists() and (not target.is_dir() or any(target.iterdir())):
        raise TargetError(
            str(target), what="the folder holds something other than keyframes",
            fix="choose another folder with --out",
        )  # fmt: skip
    if given is not None:
        return read_review(given)
    return read_review(own) if own.exists() else None


def _write_review(target: Path, review: Review) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_atomic(target / REVIEW, [pretty_bytes(review.as_json())])
    except OSError as error:
        raise _unwritten(target, error) from error


def _unwritten(target: Path, error: OSError) -> TargetError:
    return TargetError(
        str(target), what=f"the folder cannot be written: {error.strerror or error}",
        fix="check the path, its permissions and the space on the disk",
    )  # fmt: skip


def _write(path: Path, videos: Path, story: StoryReview) -> None:
    """Write the pictures of one story; shots that have none any more lose theirs."""
    wanted: dict[int, list[Path]] = {}
    for match in story.shots:
        frame = story.frame_of(match)
        if frame is not None:
            wanted.setdefault(frame, []).append(path / f"shot_{match.shot:02d}.png")
    files = {file for some in wanted.values() for file in some}
    for old in path.glob("shot_*.png") if path.is_dir() else ():
        if old not in files:
            old.unlink()
    if not wanted or story.video is None:
        return
    path.mkdir(parents=True, exist_ok=True)
    try:
        for taken in frames_at(videos / story.video, sorted(wanted)):
            data = encode_image(taken.image, format="png")
            for file in wanted[taken.index]:
                write_atomic(file, [data])
    except MediaProblem as problem:
        raise InputError([problem]) from problem


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers)) or "none"
