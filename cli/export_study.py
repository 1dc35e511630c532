"""``fabula export study``: the sample of videos that people judge, anonymised and shuffled."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JsonOption, emit, example, guarded, say, warn
from .suites import SuiteOption, SuiteReleaseOption, given_suite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..people.tasks import Task


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "study",
        epilog=example(
            "fabula export study --release dist/suite-0.1.0 --outputs videos/x --outputs videos/y"
            " --key key.json --out for-people",
            "fabula export study --suite all_prompts.json --outputs videos/x --outputs videos/y"
            " --outputs videos/z --per-prompt 2 --label hard --key key.json --out for-people",
        ),
    )(study)


@guarded
def study(
    outputs: Annotated[
        list[Path],
        typer.Option("--outputs", help="Videos of one method. Repeatable.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", help="New folder for the participants.", show_default=False)],
    key: Annotated[
        Path,
        typer.Option("--key", help="File to write the key to, task -> video. Keep it.", show_default=False),
    ],
    suite: SuiteOption = None,
    release: SuiteReleaseOption = None,
    per_prompt: Annotated[
        int, typer.Option("--per-prompt", min=1, help="Methods drawn at random for each prompt.")
    ] = 2,
    labels: Annotated[
        list[str] | None, typer.Option("--label", help="Only prompts with this label. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N prompts.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw and of the order.")] = 42,
    as_json: JsonOption = False,
) -> int:
    """Prepare anonymised videos for a study with people.

    For every prompt it draws some methods at random, names their videos by task, and shuffles them. The
    folder for the participants holds tasks.csv (task, event, statement) and videos/. The key says which video
    each task is: do not give it to the participants. Collect the answers as lines of kind completion whose
    item is the task, then give them to fabula calibrate RUN --human FILE --key KEY.
    """
    from ..evaluation.completion.load_videos import chosen_prompts
    from ..evaluation.completion.settings import VideoSelection
    from ..evaluation.completion.videos import check_methods, videos_of
    from ..people.tasks import sample_tasks, write_tasks
    from ..releases.suites import load_suite

    place = given_suite(suite, release)
    check_methods(outputs)
    whole = load_suite(place)
    methods = {folder.resolve().name: videos_of(folder, whole.prompts) for folder in outputs}
    prompts = chosen_prompts(whole, VideoSelection(label=tuple(labels or ()), limit=limit)).prompts
    tasks = sample_tasks(list(prompts), list(methods), per_prompt, seed)
    videos = {one: methods[one.method].path(one.video, None) for one in tasks}
    events = {name: prompt.event_list for name, prompt in prompts.items()}
    write_tasks(tasks, out, key, events, videos)
    telling = _telling(videos)
    if as_json:
        told = {"tasks": len(tasks), "prompts": len(prompts), "methods": sorted(methods), "seed": seed}
        emit({**told, "out": str(out), "key": str(key), "telling_metadata": telling})
        return 0
    say(f"{len(tasks)} tasks from {len(prompts)} prompts and {len(methods)} methods: {out}")
    say(f"key, not for participants: {key}")
    if telling is None:
        warn("metadata in the videos was not checked, because the extra `video` is not installed")
    elif telling:
        warn(
            "the videos are copied unchanged, and their metadata shows which method made them: "
            f"{', '.join(telling)}"
        )
    return 0


def _telling(videos: "Mapping[Task, Path]") -> list[str] | None:
    """Return the tags in the shown files that tell methods apart; None where nothing can look."""
    from ..errors import MissingRequirement
    from ..media.video_tags import telling_tags

    shown: dict[str, list[Path]] = {}
    for task, file in videos.items():
        shown.setdefault(task.method, []).append(file)
    try:
        return telling_tags(shown)
    except MissingRequirement:
        return None
