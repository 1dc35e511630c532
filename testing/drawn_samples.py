"""``python -m fabula.testing.drawn_samples``: drawn pictures and videos to try commands on.

::

    python -m fabula.testing.drawn_samples shots FOLDER         data/: two scripts, references; model-x/
    python -m fabula.testing.drawn_samples videos SUITE FOLDER  a short grey film for each prompt
    python -m fabula.testing.drawn_samples film FOLDER          film.mp4: ten shots; film.jsonl: who is where
    python -m fabula.testing.drawn_samples episodes FOLDER      set/: two episodes; videos/sound and /faulty

They show shapes, not stories: numbers that are computed from them mean nothing beyond the drawings. All but
``shots`` need the extra ``video``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ..errors import UserError
from ..media.video import video_library

SHOTS = ("AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1")
"""The shots of the film, as :mod:`.load_films` writes them: letters of people, number of the place."""


def write_shots(folder: Path) -> list[Path]:
    """Write two shot scripts with reference images, and the pictures of one method."""
    from .drawn_shots import draw_shot_outputs, draw_shot_set

    return [draw_shot_set(folder / "data"), draw_shot_outputs(folder / "model-x")]


def write_videos(suite: Path, folder: Path) -> list[Path]:
    """Write a video of eight frames for each prompt of a suite."""
    from .drawn import write_video

    folder.mkdir(parents=True, exist_ok=True)
    return [write_video(folder / name, 8) for name in json.loads(suite.read_text("utf-8"))]


def write_film(folder: Path) -> list[Path]:
    """Write a video of ten shots, and the detections of the three people in it."""
    from .drawn_episode import write_episode

    return list(write_episode(folder, SHOTS))


def write_episode_videos(folder: Path) -> list[Path]:
    """Write two episodes, videos that show all of it, and videos in which somebody is missing or changes."""
    from .drawn_entities import write_outputs
    from .written_episodes import SECOND, write_episodes, written_episode

    episodes = [written_episode(), written_episode("ep_b", SECOND)]
    keys = [episode["story_name"] for episode in episodes]
    faults = {f"{keys[0]}/{shot}": fault for shot, fault in FAULTS.items()}
    return [
        write_episodes(folder / "set", episodes),
        write_outputs(folder / "videos" / "sound", episodes, frames=6),
        write_outputs(folder / "videos" / "faulty", episodes, faults, frames=6),
    ]


FAULTS: Mapping[str, Mapping[str, Literal["absent", "faded", "changed"]]] = {
    "2:1": {"Ben": "absent"},
    "2:2": {"Ana": "changed"},
    "2:3": {"the red cup": "faded"},
}
"""Shot of the first episode -> name -> what is wrong with it in ``videos/faulty``."""

WRITERS: Mapping[str, Callable[..., list[Path]]] = {
    "shots": write_shots,
    "videos": write_videos,
    "film": write_film,
    "episodes": write_episode_videos,
}


def main() -> int:
    """Write what is asked for, and print where."""
    options = argparse.ArgumentParser(
        prog="python -m fabula.testing.drawn_samples",
        description="Drawn pictures and videos to try commands on.",
    )
    kinds = options.add_subparsers(dest="kind", required=True)
    for name, write in WRITERS.items():
        kind = kinds.add_parser(name, help=(write.__doc__ or "").rstrip("."))
        if write is write_videos:
            kind.add_argument("suite", type=Path, help="all_prompts.json")
        kind.add_argument("folder", type=Path)
    given = vars(options.parse_args())
    write = WRITERS[given.pop("kind")]
    try:
        if write is not write_shots:
            video_library()
        for path in write(**given):
            sys.stdout.write(f"{path}\n")
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
