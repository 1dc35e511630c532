"""One video per story: its shots are found, matched to the script's in order, and listed for review.

A generator of multi-shot videos is evaluated by keyframes: the middle frame of every shot that is found
(ViStoryBench supplement, section F.5.5: TransNetV2, then manual verification). Shots are matched by order,
which is right only where as many are found as the script has: so every match, missing and surplus shot goes
into a review file, which a person corrects. The keyframes lie beside it as a method's outputs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...errors import InputError, TargetError, mismatch
from ...media.images import MediaProblem, encode_image
from ...media.shot_detection import Method, ShotBoundaries, detect
from ...media.video import frames_at
from ...releases.shots.tree import ShotSet, ShotStory, read_shot_set
from ...schemas.canonical import pretty_bytes, sha256_file, write_atomic, writing
from ...schemas.plain_files import explaining, read_plain
from ...schemas.values import Own
from ..outputs.layout import VIDEOS
from ..outputs.shots import REVIEW, shot_number


class Found(Own):
    """A shot that was found in a video."""

    number: int = Field(ge=1)  # from 1, in the video
    first: int = Field(ge=0)  # its first frame, counted from 0
    last: int = Field(ge=0)  # its last frame
    start: float  # when it begins, in seconds; ``end``, when it ends
    end: float
    keyframe: int = Field(ge=0)  # its middle frame


class Match(Own):
    """Which picture stands for a shot of the script."""

    shot: int  # number of the shot in the script
    text: str = ""  # what the script says of it, to compare with
    # number of the shot in the video whose keyframe it is; null: the shot is missing
    found: int | None = None
    # a frame of the video that is taken instead; null: the keyframe of ``found``
    frame: int | None = Field(default=None, ge=0)


class StoryReview(Own):
    """The shots of one story's video against its script."""

    video: str | None = None  # file of the video, by its path in the folder of videos; null: there is none
    sha256: str | None = None  # of the video
    # why there are no shots, as a code such as ``missing`` or ``truncated``; null: there are
    problem: str | None = None
    method: str | None = None  # what found the shots
    frames: int = 0  # how many frames the video has
    found: tuple[Found, ...] = ()  # the shots of the video
    # the shots of the script, each with its match. This is what a person corrects.
    shots: tuple[Match, ...] = ()
    surplus: tuple[int, ...] = ()  # shots of the video that stand for no shot of the script
    reviewed: bool = False  # whether a person has looked at it

    def frame_of(self, match: Match) -> int | None:
        """Return the frame that stands for a shot; None for a missing one."""
        if match.frame is not None:
            return match.frame
        return None if match.found is None else self.found[match.found - 1].keyframe

    def settled(self) -> "StoryReview":
        """Return the review with ``surplus`` as its matches now have it."""
        used = {match.found for match in self.shots if match.frame is None}
        surplus = tuple(shot.number for shot in self.found if shot.number not in used)
        return self.model_copy(update={"surplus": surplus})

    @property
    def missing(self) -> tuple[int, ...]:
        """Shots of the script without a picture."""
        return tuple(match.shot for match in self.shots if self.frame_of(match) is None)


class Review(Own):
    """The review file of one method."""

    kind: Literal["keyframes"] = "keyframes"  # ``keyframes``
    version: Literal[1] = 1  # of the format
    stories: dict[str, StoryReview]  # story id -> its review; every story of the set has one


@dataclass(frozen=True, slots=True)
class Finding:
    """How shots are found."""

    method: Method = "transnetv2"  # ``transnetv2``, or ``histogram``, which needs no network
    threshold: float | None = None  # None for that of the method
    device: str = "cpu"  # where the network runs

    def shots_of(self, path: Path) -> ShotBoundaries:
        return detect(path, self.method, threshold=self.threshold, device=self.device)


def story_videos(folder: Path, shot_set: ShotSet) -> dict[str, Path]:
    """Return the video of each story: ``01.mp4``, ``story_01.mp4``, or the only video in a folder ``01``."""
    if not folder.is_dir():
        raise InputError(
            [mismatch(str(folder), "a folder with one video per story", "none", "check the path")]
        )
    numbers = {int(story.story_id): story.story_id for story in shot_set.stories}
    videos: dict[str, Path] = {}
    problems = []
    for number, path in _numbered(folder):
        story_id = None if number is None else numbers.get(number)
        if story_id is None:
            continue
        if story_id in videos:
            both = f"{videos[story_id].name} and {path.name}"
            problems.append(mismatch(f"story {story_id}", "one video", both, "keep one of them"))
        videos.setdefault(story_id, path)
    if not videos and not problems:
        expected = "videos named by their story, such as 01.mp4"
        problems.append(mismatch(str(folder), expected, "none", "name each by the number of its story"))
    if problems:
        raise InputError(problems)
    return videos


def videos_left_out(folder: Path, shot_set: ShotSet) -> list[str]:
    """Return the videos of a folder that are of no story of the set, by their paths in it."""
    numbers = {int(story.story_id) for story in shot_set.stories}
    return [
        path.relative_to(folder).as_posix() for number, path in _numbered(folder) if number not in numbers
    ]


def _numbered(folder: Path) -> Iterator[tuple[int | None, Path]]:
    """Yield every video with the number of its story; None where its name says none."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and entry.name.isdecimal():
            for file in sorted(entry.iterdir()):
                if file.suffix.lower() in VIDEOS and not file.name.startswith("."):
                    yield int(entry.name), file
        elif entry.suffix.lower() in VIDEOS:
            yield shot_number(entry), entry


def review_videos(
    folder: Path,
    shot_set: ShotSet,
    finding: Finding,
    known: Review | None = None,
    tell: Callable[[str, Review], None] = lambda *_: None,
) -> Review:
    """Return which frames stand for which shots, for every story of a set."""
    videos = story_videos(folder, shot_set)
    hashes = {story_id: sha256_file(path) for story_id, path in videos.items()}
    before = {} if known is None else known.stories
    check_known(before, shot_set, hashes)
    stories = {}
    for story in shot_set.stories:
        path, old = videos.get(story.story_id), before.get(story.story_id)
        if path is None:
            missing = StoryReview(problem="missing", shots=matches_of(story, 0))
            stories[story.story_id] = missing
        elif old is not None and old.sha256 == hashes[story.story_id] and old.problem is None:
            stories[story.story_id] = old.settled()
        else:
            where = path.relative_to(folder).as_posix()
            draft = drafted(story, path, finding)
            about = {"video": where, "sha256": hashes[story.story_id]}
            stories[story.story_id] = draft.model_copy(update=about)
            tell(story.story_id, Review(stories={**before, **stories}))
    return Review(stories=stories)


def drafted(story: ShotStory, path: Path, finding: Finding) -> StoryReview:
    """Return the shots of a video, matched to those of a script by their order."""
    try:
        shots = finding.shots_of(path)
    except MediaProblem as problem:
        return StoryReview(problem=problem.code, shots=matches_of(story, 0))
    spans = tuple(
        Found(
            number=number, first=span.first, last=span.last, start=round(float(span.start), 3),
            end=round(float(span.end), 3), keyframe=span.middle,
        )
        for number, span in enumerate(shots.spans, 1)
    )  # fmt: skip
    matches = matches_of(story, len(spans))
    review = StoryReview(method=shots.method, frames=shots.frames, found=spans, shots=matches)
    return review.settled()


def matches_of(story: ShotStory, count: int) -> tuple[Match, ...]:
    """Return the shots of a script, the first so many of them matched to the shots found, in order."""
    return tuple(
        Match(shot=shot.index, text=_text(shot), found=index if index <= count else None)
        for index, shot in enumerate(story.script.shots, 1)
    )


def check_known(known: dict[str, StoryReview], shot_set: ShotSet, hashes: dict[str, str]) -> None:
    """Check that a review fits the scripts and the videos."""
    problems = []
    for story_id, review in sorted(known.items()):
        story = shot_set.by_id.get(story_id)
        if story is None:
            continue
        where = f"keyframes of story {story_id}"
        if review.reviewed and review.sha256 is not None and hashes.get(story_id) != review.sha256:
            other = "another one" if story_id in hashes else "none"
            fix = "put the old video back, or remove the story from the file and review it again"
            problems.append(mismatch(where, "the video that was reviewed", other, fix))
        wanted = [shot.index for shot in story.script.shots]
        if [match.shot for match in review.shots] != wanted:
            listed = f"shots {[match.shot for match in review.shots]}"
            problems.append(mismatch(where, f"shots {wanted}, each once", listed, "list each shot once"))
        for match in review.shots:
            if match.found is not None and not 1 <= match.found <= len(review.found):
                expected = f"a shot of the video, 1 to {len(review.found)}, or null"
                problems.append(
                    mismatch(f"{where}, shot {match.shot}", expected, str(match.found), "correct it")
                )
            if match.frame is not None and match.frame >= review.frames:
                expected = f"a frame of the video, 0 to {review.frames - 1}, or null"
                problems.append(
                    mismatch(f"{where}, shot {match.shot}", expected, str(match.frame), "correct it")
                )
    if problems:
        raise InputError(problems)


def _text(shot: object) -> str:
    texts = getattr(shot, "static", None)
    return "" if texts is None else (texts.of("en") or texts.of("ch")).strip()


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
    with writing(target):
        for story_id, story in reviewed.stories.items():
            _write(target / story_id / "shots", folder, story)
    return Keyframes(target, reviewed)


def read_review(path: Path) -> Review:
    with explaining(
        path, "correct it, or remove it to begin anew", what="this is no review file of keyframes"
    ):
        return Review.model_validate_json(read_plain(path, follow=True))


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
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        write_atomic(target / REVIEW, [pretty_bytes(review.as_json())])


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
