"""The stages of judging storyboards, in order, and the files that a finished run holds."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...engine.asking import UNASKED
from ...engine.execute import STORE
from ...engine.manifest import read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ..archive.archive import write_judgements, write_manifest
from .about import About
from .answers import judgement_of

KIND = "evaluate-katha"
FRAMES = "frames.jsonl"
"""One line per generation: its pictures in the run's store, and why there are none."""

STAGES = (
    "load_items",
    "prepare_images",
    "scan_packets",
    "judge:JUDGE_TEXT",
    "judge:JUDGE_IMAGES",
    "judge:JUDGE_BOTH",
    "judge:JUDGE_CONTRASTS",
    "match_answers",
    "match_vectors",
)
ANSWERS = (
    "text_answers",
    "image_answers",
    "text_image_answers",
    "contrast_answers",
    "match_answers",
    "match_vectors",
)

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("about", "frames", "scan", "shown", "unusable", *ANSWERS),
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest and frames into the run folder."""
    run = read_manifest(folder)
    about = About(run)
    frames: list[Json] = []

    def judgements() -> Iterator[Judgement]:
        for item in items:
            about.add(item)
            frames.append(_frames_line(item))
            for answers in ANSWERS:
                for row in item[answers]:
                    if row["outcome"] == UNASKED:
                        about.leave_once(row, item["shown"]["story_id"])
                        continue
                    yield Judgement.model_validate(judgement_of(row, item["shown"], run.created_at))

    # Text-only answers stand in the items of every method; each is kept and counted once.
    write_judgements(folder, judgements(), about.count)
    write_manifest(folder, about.manifest())
    write_atomic(folder / FRAMES, jsonl_lines(frames))


def _frames_line(item: Item) -> Json:
    shown = item["shown"]
    invalid = shown["invalid"] or item["unusable"] or None
    pictures = [{**frame, "file": f"{STORE}/{frame['file']}"} for frame in item["frames"]]
    return {
        "method": shown["method"], "unit": shown["story_id"], "seed": shown["seed"],
        "scenes": [] if invalid else shown["scenes"], "frames": pictures, "invalid": invalid,
        "leaks": item["scan"]["leaks"],
    }  # fmt: skip
