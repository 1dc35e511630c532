"""The stages of the StoryEval suite builder, in order, and the files that a finished run holds."""

import math
from collections.abc import Iterable
from pathlib import Path

from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.events.form import PROMPTS, SUITE, write_suite
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.events import EventPrompt, Suite

STAGES = (
    "load_seeds",
    "write_prompts",
    "list_events",
    "select_prompts:CHECK_CONDITIONS",
    "select_prompts",
    "grade_prompts",
    "select_prompts:SETTLE_PROMPTS",
)

PIPELINE = Pipeline(
    name="events",
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("place",),
    identity=f"{__package__}.load_seeds:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the suite in the official form, and the same with its history, sorted by file name.

    Prompts of a suite that was given come first, in its order; the others follow, sorted by file name.
    """
    entries = sorted(
        ((item["place"], item["record"]) for item in items), key=lambda entry: str(entry[1]["unit"])
    )
    records = [record for _, record in entries]
    entries.sort(key=lambda entry: math.inf if entry[0] is None else entry[0])
    prompts = {record["unit"]: EventPrompt.model_validate(record["entry"]) for _, record in entries}
    write_suite(folder / SUITE, Suite(prompts))
    write_atomic(folder / PROMPTS, jsonl_lines(records))
