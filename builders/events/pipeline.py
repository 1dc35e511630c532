"""The stages of the StoryEval suite builder, in order, and the files that a finished run holds."""

from collections.abc import Iterable
from pathlib import Path

from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.layout import PROMPTS, SUITE
from ...releases.suites import write_suite
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.events import EventPrompt, Suite

STAGES = (
    "load_seeds",
    "write_prompts",
    "list_events",
    "check_conditions",
    "select_prompts",
    "grade_prompts",
    "settle_prompts",
)

PIPELINE = Pipeline(
    name="events",
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    identity=f"{__package__}.load_seeds:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the suite in the official form, sorted by file name, and the same with its history."""
    records = sorted((item["record"] for item in items), key=lambda record: str(record["unit"]))
    prompts = {record["unit"]: EventPrompt.model_validate(record["entry"]) for record in records}
    write_suite(folder / SUITE, Suite(prompts))
    write_atomic(folder / PROMPTS, jsonl_lines(records))
