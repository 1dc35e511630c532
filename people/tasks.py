"""StoryEval's sample for people: a few models per prompt, anonymised and shuffled, the key kept apart.

Every prompt is shown with the videos of ``per_prompt`` models drawn at random; tasks are named by numbers,
and only the key says which video and model a task stands for (StoryEval, section 2.3.1: 2 of 11 models).
"""

import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, InputError, TargetError, UserError
from ..schemas.canonical import csv_text, new_folder, pretty_bytes, write_atomic
from ..schemas.plain_files import read_json, reason_of

PER_PROMPT = 2
TASKS = "tasks.csv"
VIDEOS = "videos"


@dataclass(frozen=True)
class Task:
    """What one person judges at a time: a video, and the events that it should show."""

    task: str
    video: str
    method: str


def sample_tasks(
    videos: Sequence[str], methods: Sequence[str], per_prompt: int = PER_PROMPT, seed: int = 42
) -> tuple[Task, ...]:
    """Draw models for every prompt and shuffle the videos; the same arguments give the same tasks.

    Args:
        videos: file names of the suite's videos, one per prompt.
        methods: the models.
        per_prompt: how many of them are drawn for each prompt, without replacement.
        seed: of the draw and of the order.

    Raises:
        ConfigError: there are fewer models than are to be drawn, or one is named twice.
    """
    names = sorted(set(methods))
    if not 1 <= per_prompt <= len(names) or len(names) < len(methods):
        raise ConfigError(
            "models",
            what=f"a study with {per_prompt} methods per prompt needs that many different methods; "
            f"given: {', '.join(methods) or 'none'}",
            fix="name every model once, or draw fewer per prompt",
        )
    draw = random.Random(seed)
    drawn = [(video, method) for video in sorted(set(videos)) for method in draw.sample(names, per_prompt)]
    draw.shuffle(drawn)
    width = max(4, len(str(len(drawn))))
    return tuple(
        Task(f"task_{number:0{width}d}", video, method) for number, (video, method) in enumerate(drawn, 1)
    )


def write_tasks(
    tasks: Sequence[Task],
    folder: Path,
    key: Path,
    events: Mapping[str, Sequence[str]],
    sources: Mapping[Task, Path] | None = None,
) -> None:
    """Write what participants get into a folder, and the key elsewhere; an existing key is not replaced.

    The folder gets ``tasks.csv``, one line per event of a task, and, where videos are given, ``videos/``
    with copies whose names are those of the tasks. Copies keep their bytes: what a file says about its
    maker in its own metadata stays.

    Args:
        tasks: from :func:`sample_tasks`.
        folder: a new or empty folder.
        key: the file for the key; not in that folder.
        events: video -> its events, in order.
        sources: task -> its video.

    Raises:
        TargetError: the folder is not empty or cannot be written, or the key would lie in it or exists.
        InputError: videos are missing; all of them are listed.
    """
    sources = {} if sources is None else sources
    missing = [source for source in sources.values() if not source.is_file()]
    if missing:
        what, fix = "the video of a drawn prompt is missing", "generate it, or draw from other models"
        raise InputError([UserError(str(source), what=what, fix=fix) for source in missing])
    rows = [
        (task.task, number, event) for task in tasks for number, event in enumerate(events[task.video], 1)
    ]
    files = {f"{VIDEOS}/{task.task}{source.suffix}": source for task, source in sources.items()}
    answers = {task.task: (task.video, task.method) for task in tasks}
    write_study(folder, key, (("task", "event", "statement"), rows), files, answers)


def write_study(
    folder: Path,
    key: Path,
    table: tuple[Sequence[str], Sequence[Sequence[str | int]]],
    files: Mapping[str, Path],
    tasks: Mapping[str, tuple[str, str]],
) -> None:
    """Write tasks and copies of files for participants, and the key elsewhere.

    Args:
        folder: a new or empty folder.
        key: the file for the key; not in that folder.
        table: header and rows of ``tasks.csv``.
        files: path in the folder -> the file that is copied there.
        tasks: task -> what it stands for, and method.

    Raises:
        TargetError: the folder is not empty or cannot be written, or the key would lie in it or exists.
    """
    if key.resolve().is_relative_to(folder.resolve()):
        raise TargetError(
            str(key), what=f"the key would lie in {folder}, where participants can read it",
            fix="choose another place for the key",
        )  # fmt: skip
    if key.exists():
        raise TargetError(
            str(key), what="the file is there already",
            fix="choose another: without its key a study cannot be read",
        )  # fmt: skip
    with new_folder(folder):
        write_atomic(folder / TASKS, [csv_text(*table).encode("utf-8")])
        for name, source in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / name)
        key.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(key, [pretty_bytes({task: list(stands) for task, stands in tasks.items()})])


def read_key(path: str | Path) -> dict[str, tuple[str, str]]:
    """Return task -> video and model.

    Raises:
        InputError: the file cannot be read or is no key.
    """
    try:
        document = read_json(Path(path), follow=True)
        key = {str(task): (str(video), str(method)) for task, (video, method) in document.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        what = f"this is not the key of a study (task -> [video, model]): {reason_of(error)}"
        fix = "give the key that was written with the tasks"
        raise InputError([UserError(str(path), what=what, fix=fix)]) from error
    return key
