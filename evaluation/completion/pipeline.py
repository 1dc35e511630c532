"""The stages of judging videos, in order, and the files that a finished run holds."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...engine.asking import UNASKED
from ...engine.execute import STORE
from ...engine.manifest import read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.suites import SUITE, load_suite, write_suite
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ..archive.archive import merged, write_archive
from .about import About
from .load_videos import SUITE_ROLE

KIND = "evaluate-events"
FRAMES = "frames.jsonl"
"""One line per video: its frames in the run's store, or why there are none."""

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(f"{__package__}.{name}" for name in ("load_videos", "take_frames", "judge_events")),
    finish=f"{__name__}:finish",
    final_fields=("frames", "outputs", "taken", "video"),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest, frames and a copy of the suite into the run folder."""
    run = read_manifest(folder)
    about = About(run)
    frames: list[Json] = []

    def judgements() -> Iterator[Judgement]:
        for item in items:
            about.add(item)
            frames.append(_frames_line(item))
            video = item["video"]
            for row in item["votes"]:
                if row["outcome"] == UNASKED:
                    about.leave(row)
                    continue
                yield Judgement.model_validate(
                    {
                        "protocol": "events", "kind": "completion", "condition": "video",
                        "method": video["method"], "unit": video["unit"], "item": video["unit"],
                        "seed": video["seed"], "time": run.created_at, **row,
                    }
                )  # fmt: skip

    kept = merged([("the run", judgements())])
    for judgement in kept:
        about.count(judgement)
    source = next(one for one in run.source_list(folder) if one.role == SUITE_ROLE)
    write_suite(folder / SUITE, load_suite(source.path))
    write_archive(folder, about.manifest(), kept)
    write_atomic(folder / FRAMES, jsonl_lines(frames))


def _frames_line(item: Item) -> Json:
    video, taken = item["video"], item["taken"]
    pictures = [{**frame, "file": f"{STORE}/{frame['file']}"} for frame in item["frames"]]
    return {
        "method": video["method"], "unit": video["unit"], "seed": video["seed"], "frames": pictures, **taken,
    }  # fmt: skip
