"""What studies draw their items from, small and made up: evaluations of storyboards and episodes, videos."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..evaluation.archive.archive import EVALUATION
from ..evaluation.entities.archived import EPISODES
from ..evaluation.report.showing import FRAMES
from ..releases.events.form import SUITE
from ..schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ..schemas.katha import StoryRecord
from .drawn import write_video
from .drawn_storyboards import draw_panel
from .simulated_episodes import write_run
from .simulated_evaluations import Simulated, write_simulated
from .simulated_judgements import Truth

METHODS = ("model-a", "model-b")
EVENTS: Mapping[str, tuple[str, ...]] = {
    "cup.mp4": ("A cup falls off a table", "The cup breaks"),
    "dog.mp4": ("A dog runs to a tree", "The dog sits down", "The dog barks"),
}
"""File name of a video in the drawn suite -> its events."""


def storyboard_evaluation(folder: Path, stories: int = 3, bridged: Sequence[str] = ()) -> Simulated:
    """Write a release and an evaluation of it with pictures, whose judges are simulated.

    The pictures say which story and panel they are, as :func:`.drawn_storyboards.numbers_in` reads.
    """
    truth = Truth(errors=(0.1, 0.2))
    made = write_simulated(folder, 6 * stories, [(name, truth) for name in METHODS])
    lines = [
        _frames(made.run, number, record, method, bridged=method in bridged)
        for method in METHODS
        for number, record in enumerate(made.items.records)
    ]
    write_atomic(made.run / FRAMES, jsonl_lines(lines))
    manifest = json.loads((made.run / EVALUATION).read_bytes())
    manifest["environment"]["sources"] = [{"role": "release", "path": str(made.release)}]
    (made.run / EVALUATION).write_bytes(pretty_bytes(manifest))
    return made


def _frames(run: Path, number: int, record: StoryRecord, method: str, *, bridged: bool) -> Json:
    scenes: list[int | None] = [scene.scene_index for scene in record.scenes]
    if bridged:
        scenes.insert(1, None)
    (run / "store").mkdir(exist_ok=True)
    frames = []
    for place, scene in enumerate(scenes):
        name = f"store/{method}-{record.story_id}-{place}.png"
        (run / name).write_bytes(draw_panel(number, scene or 0, 96 if method == METHODS[0] else 64))
        frames.append({"file": name})
    return {
        "method": method, "unit": record.story_id, "seed": None, "scenes": scenes, "frames": frames,
        "invalid": None, "leaks": [],
    }  # fmt: skip


def drawn_videos(folder: Path) -> tuple[Path, list[Path]]:
    """Write a suite and real videos of it (needs the extra ``video``); return the file and the folders."""
    folder.mkdir(parents=True, exist_ok=True)
    suite = {
        name: {"prompt": f"{events[0]}.", "event_list": list(events), "class": ["object", "creative", "easy"]}
        for name, events in EVENTS.items()
    }
    (folder / SUITE).write_text(json.dumps(suite, indent=4) + "\n", "utf-8")
    for number, method in enumerate(METHODS):
        (folder / method).mkdir()
        for name in EVENTS:
            write_video(folder / method / name, 8, size=(48 + 16 * number, 48))
    return folder / SUITE, [folder / method for method in METHODS]


def episode_evaluation(folder: Path) -> Path:
    """Write an evaluation of an episode with a crop of each entity, and frames of each place."""
    run = write_run(folder, METHODS)
    manifest = json.loads((run / EVALUATION).read_bytes())
    manifest["protocol"]["definitions"] = {"judge_locations.frames": 1}
    (run / EVALUATION).write_bytes(pretty_bytes(manifest))
    lines = [json.loads(line) for line in (run / EPISODES).read_bytes().splitlines()]
    for line in lines:
        for shot in line["shots"]:
            shot["frames"]["scene"] = [0]
    write_atomic(run / EPISODES, jsonl_lines(lines))
    return run
