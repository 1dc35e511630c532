"""Stage: one item per prompt of the suite, method and seed, with the file of the video that is shown.

Videos that are not there are items too: they are counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import Field

from ...engine.stage import Child, Item, Made, Outcome, StageSpec, Tools, stage
from ...errors import ConfigError
from ...media.images import MediaProblem, Picture
from ...media.video import VideoInfo, probe, sample_frames
from ...models.spec import parse_spec
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.events import Suite
from ...schemas.plain_files import composed
from ...schemas.values import Listed, Own
from ..judging.settings import ImageSettings, JudgeSettings, PreparedPicture, keep_pictures, prepare_picture
from ..outputs.layout import nothing_to_judge
from ..outputs.videos import MethodVideos, check_methods, check_videos, frame_count, is_judgeable, videos_of

# -- Settings of judging events: which frames of a video judges get, and how many (StoryEval, Eq. 2)

SERVICE_VOTES, OWN_VOTES = 3, 2
"""Votes of a judge behind a public service, and of one that the user serves: the paper's N for its closed and
for its open verifier."""


class VideoSelection(Own):
    """Which prompts of a suite are judged; every condition must hold."""

    units: Listed[str] = Field(default=(), description="Only these file names; none: all.")
    label: Listed[str] = Field(default=(), description="Only prompts with one of these labels; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those.")


class FrameSettings(ImageSettings):
    """How many frames judges see, and how they are encoded."""

    count: int | None = Field(
        default=None, ge=1, le=256, description="Frames of every video; null takes as many as Eq. 2 says."
    )


class EventJudgeSettings(JudgeSettings):
    """Who is asked about videos, and how often.

    The votes of a judge are meant to differ, so the temperature is the service's own unless it is set; each
    vote has a sampling seed of its own.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    votes: int = Field(
        default=0, ge=0, le=100,
        description="Votes of each judge on each video; 0: three from a service, two from a server of yours.",
    )  # fmt: skip
    retries: int = Field(
        default=2, ge=0, le=20,
        description="Most additional votes of a judge on a video in place of refused and blocked ones.",
    )  # fmt: skip
    reply: Literal["mark", "structured"] = Field(
        default="mark", description="Whether the flags stand in a marked line, or the reply is structured."
    )

    def votes_of(self, spec: str) -> int:
        """Return how many votes of a judge count on each video."""
        if self.votes:
            return self.votes
        return OWN_VOTES if parse_spec(spec).is_own else SERVICE_VOTES


@dataclass(frozen=True, slots=True)
class PreparedVideo:
    """The frames of one video, as judges get them."""

    info: VideoInfo  # what the video is
    indices: tuple[int, ...]  # which frames were taken, from 0
    times: tuple[Fraction, ...]  # their seconds after the first frame, exact
    pictures: tuple[PreparedPicture, ...]  # the frames, encoded, in order


def prepare_video(path: Path, settings: ImageSettings, count: int | None = None) -> PreparedVideo:
    """Take frames evenly from a video, as many as Eq. 2 says or as stated, and encode each once.

    The first and the last frame are among them. A video with fewer frames than are wanted (fewer than four
    under Eq. 2) cannot be judged.
    """
    info = probe(path)
    indices, times, pictures = [], [], []
    for frame in sample_frames(path, frame_count(info.frames) if count is None else count):
        indices.append(frame.index)
        times.append(frame.time)
        pictures.append(prepare_picture(Picture(frame.image, "VIDEO", frame.notes), settings))
    return PreparedVideo(info, tuple(indices), tuple(times), tuple(pictures))


# --

SUITE_ROLE, OUTPUTS = "suite", "outputs"
"""Roles of the sources."""

SPEC = StageSpec(
    name="load_videos",
    version=5,
    shape="expand",
    reads=("sources",),
    writes=("prompt", "video", "outputs"),
    settings=VideoSelection,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per prompt, method and seed, by method."""
    from ...releases.events.form import load_suite

    suite = load_suite(tools.of_role(item, SUITE_ROLE)[0])
    chosen = chosen_prompts(suite, tools.own(VideoSelection))
    folders = tools.of_role(item, OUTPUTS)
    check_methods(folders)
    check_some_there(folders, chosen, suite)
    scope = None if len(chosen.prompts) == len(suite.prompts) else list(chosen.prompts)
    for folder in sorted(folders, key=lambda path: path.name):
        videos = videos_of(folder, suite.prompts)
        about = {
            "method": composed(folder.name),
            "suite": {"sha256": suite.sha256(), "prompts": len(suite.prompts)},
            "units": scope,
            "seeds": [seed for seed in videos.seeds if seed is not None],
            "strays": strays_of(videos, suite),
        }
        for unit, prompt in chosen.prompts.items():
            for seed in videos.seeds:
                video = {
                    "method": composed(folder.name),
                    "unit": unit,
                    "seed": seed,
                    **_found(videos.path(unit, seed)),
                }
                fields = {"prompt": prompt.as_json(), "video": video, "outputs": about}
                yield Child(item_id(video), Made(fields))


def chosen_prompts(suite: Suite, settings: VideoSelection) -> Suite:
    """Return the prompts that the settings choose, in the order of the suite."""
    unknown = sorted(set(settings.units) - set(suite.prompts))
    if unknown:
        raise ConfigError("--prompt", what=f"the suite has no {', '.join(unknown)}", fix="check the spelling")
    chosen = [
        name
        for name, prompt in suite.prompts.items()
        if (not settings.units or name in settings.units)
        and (not settings.label or set(settings.label) & set(prompt.labels))
    ][: settings.limit]
    if not chosen:
        raise ConfigError(
            "--label", what="no prompt of the suite has these labels",
            fix=f"use some of: {', '.join(suite.labels())}",
        )  # fmt: skip
    return Suite({name: suite.prompts[name] for name in chosen})


def check_some_there(folders: Sequence[Path], chosen: Suite, suite: Suite) -> None:
    """Check that at least one video can be judged: else nobody is to be asked."""
    places = (
        videos.path(unit, seed)
        for videos in (videos_of(folder, suite.prompts) for folder in folders)
        for seed in videos.seeds
        for unit in chosen.prompts
    )
    if not any(is_judgeable(path) for path in places):
        raise nothing_to_judge("video", [check_videos(folder, chosen, suite) for folder in folders])


def strays_of(videos: MethodVideos, suite: Suite) -> list[str]:
    """Return the videos in a folder that no prompt of the suite asks for, by path in it."""
    own = videos.own()
    prompts = {*map(composed, suite.prompts)}
    return sorted(
        name
        for path in videos.folder.rglob("*.mp4")
        if composed(path.name) not in prompts
        and not path.name.startswith(".")
        and (name := composed(path.relative_to(videos.folder).as_posix())) not in own
    )


def item_id(video: Json) -> str:
    """Return the id of the item for one video: method, name and, where there are several, seed."""
    seed = "" if video["seed"] is None else f"/seed_{video['seed']}"
    return f"{video['method']}/{video['unit']}{seed}"


def _found(path: Path) -> dict[str, Json]:
    if not path.is_file():
        return {"file": None, "sha256": None}
    return {"file": str(path.absolute()), "sha256": sha256_file(path)}


def outputs_sha256(videos: Sequence[Json]) -> str:
    """Return what identifies the videos of a method: the hash of their names, seeds and contents."""
    return digest(sorted([video["unit"], video["seed"] or 0, video["sha256"] or ""] for video in videos))


# -- Stage: the frames of a video as judges get them, evenly taken (Eq. 2), encoded once, kept by content


@stage(
    version=2,
    reads=("video",),
    writes=("frames", "taken"),
    libraries=("pillow", "av"),
    settings=FrameSettings,
)
def take_frames(item: Item, tools: Tools) -> Outcome:
    """Return name, size, number and time of each frame; none, and why, for a video that cannot be judged."""
    settings = tools.own(FrameSettings)
    file = item["video"]["file"]
    if file is None:
        return Made({"frames": [], "taken": {"invalid": "missing", "reason": "no such file"}})
    encoding = ImageSettings.model_validate(
        {name: getattr(settings, name) for name in ImageSettings.model_fields}
    )
    try:
        video = prepare_video(Path(file), encoding, count=settings.count)
    except MediaProblem as problem:
        return Made({"frames": [], "taken": {"invalid": problem.code, "reason": problem.found}})
    if tools.store is not None:
        keep_pictures(video.pictures, tools.store)
    frames = [
        {
            "file": picture.file_name, "width": picture.width, "height": picture.height,
            "index": index, "time": str(time),
        }
        for picture, index, time in zip(video.pictures, video.indices, video.times, strict=True)
    ]  # fmt: skip
    info = {
        "video_frames": video.info.frames,
        "duration": str(video.info.duration),
        "fps": str(video.info.fps),
    }
    return Made({"frames": frames, "taken": {"invalid": None, **info}})
