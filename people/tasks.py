"""StoryEval's sample for people as plain files: tasks named by numbers and shuffled, the key kept apart.

Only the key says which video and model a task stands for. What is drawn is what a served study of the preset
``storyeval`` draws: two models of each prompt (StoryEval, section 2.3.1).
"""

import random
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, InputError, TargetError, UserError
from ..schemas.canonical import csv_text, new_folder, pretty_bytes, write_atomic
from ..schemas.plain_files import read_json, reason_of

if TYPE_CHECKING:
    from .review.items import Drawn

TASKS = "tasks.csv"
VIDEOS = "videos"


@dataclass(frozen=True)
class VideoTask:
    """What one person judges at a time: a video, and the events that it should show.

    Attributes:
        task: its name for participants.
        video: file name in the suite.
        method: whose video it is.
        file: the video.
        events: what it should show, in order.
    """

    task: str
    video: str
    method: str
    file: Path
    events: tuple[str, ...]


def numbered_tasks(drawn: "Sequence[Drawn]", seed: int = 42) -> tuple[VideoTask, ...]:
    """Return drawn videos as tasks, shuffled and then numbered; the same arguments give the same tasks.

    Args:
        drawn: videos with the events of their prompts (:mod:`.review.sources.videos`).
        seed: of the order.

    Raises:
        ConfigError: a method has several videos of a prompt, which a plain key cannot tell apart.
    """
    if any(item.seed is not None for item in drawn):
        raise ConfigError(
            "--outputs", what="a method has several videos of a prompt, and the key names one",
            fix="give folders with one video of each prompt, or make the study with fabula review init",
        )  # fmt: skip
    order = list(drawn)
    random.Random(f"{seed}/tasks").shuffle(order)
    width = max(4, len(str(len(order))))
    return tuple(
        VideoTask(
            f"task_{number:0{width}d}", item.about, item.methods[0], item.sides[0][0],
            tuple(part.text for parts in item.parts.values() for part in parts),
        )
        for number, item in enumerate(order, 1)
    )  # fmt: skip


def draw_methods(
    there: Mapping[str, Collection[str]], per_unit: int, draw: random.Random
) -> list[tuple[str, str]]:
    """Return unit and method of what is drawn: for each unit some methods, without replacement.

    Args:
        there: story or prompt -> the methods with an output of it; units and methods are sorted by name.
        per_unit: how many methods; where there are fewer, all of them are taken.
        draw: the draw.
    """
    return [
        (unit, method)
        for unit, methods in sorted(there.items())
        for method in draw.sample(sorted(methods), min(per_unit, len(methods)))
    ]


def write_tasks(tasks: Sequence[VideoTask], folder: Path, key: Path) -> None:
    """Write what participants get into a folder, and the key elsewhere; an existing key is not replaced.

    The folder gets ``tasks.csv``, one line per event of a task, and ``videos/`` with copies whose names are
    those of the tasks. Copies keep their bytes: what a file says about its maker in its own metadata stays.

    Args:
        tasks: from :func:`numbered_tasks`.
        folder: a new or empty folder.
        key: the file for the key; not in that folder.

    Raises:
        TargetError: the folder is not empty or cannot be written, or the key would lie in it or exists.
    """
    rows = [(task.task, number, event) for task in tasks for number, event in enumerate(task.events, 1)]
    files = {f"{VIDEOS}/{task.task}{task.file.suffix}": task.file for task in tasks}
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
