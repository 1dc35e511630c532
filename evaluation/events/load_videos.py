"""Stage: one item per prompt of the suite, method and seed, with the file of the video that is shown.

Videos that are not there are items too: they are counted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import ConfigError
from ...releases.events.form import load_suite
from ...schemas.canonical import Json, digest, sha256_file
from ...schemas.events import Suite
from ...schemas.plain_files import composed
from ..outputs.checked import nothing_to_judge
from ..outputs.videos import MethodVideos, check_methods, check_videos, is_judgeable, videos_of
from .settings import VideoSelection

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
