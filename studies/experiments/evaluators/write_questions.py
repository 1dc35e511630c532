"""Stage: a model writes an evaluator's questions about a story, and what they become in a folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....builders.step import LONGEST_TAG, ask
from ....engine.pipeline import Pipeline
from ....engine.stage import Item, Made, Outcome, StageSpec, Tools
from ....models.spec import ModelSettings
from ....schemas.canonical import Json, jsonl_lines, write_atomic
from ....schemas.katha import StoryRecord
from .evaluator import evaluator_of

QUESTIONS = "questions.jsonl"
"""What a finished run holds: one line per story."""
PROMPTS = ("evaluators/story_questions", "evaluators/scene_questions", "evaluators/statements")


class WriterSettings(ModelSettings):
    """Who writes, and for which evaluator."""

    evaluator: str = "generic-story"


SPEC = StageSpec(
    name="write_questions",
    version=1,
    shape="map",
    reads=("record",),
    writes=("questions", "maker"),
    libraries=("jsonschema-rs",),
    settings=WriterSettings,
    asks=PROMPTS,
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the questions about a story and who wrote them; none without a model."""
    settings = tools.own(WriterSettings)
    evaluator, record = evaluator_of(settings.evaluator), StoryRecord.model_validate(item["record"])
    if not settings.models() or evaluator.prompt is None or evaluator.read is None:
        return Made({"questions": [], "maker": None})
    read = evaluator.read

    def rows(reply: Json) -> list[dict[str, Any]]:
        return [question.as_json() for question in read(reply, record)]

    shown: dict[str, Json] = {"language": record.language[:LONGEST_TAG]}
    if evaluator.prompt == PROMPTS[0]:
        shown["story"] = record.story_text
    else:
        shown["scenes"] = [scene.scene_text for scene in record.scenes]
    written = await ask(tools, evaluator.prompt, rows, **shown)
    return Made({"questions": written.value, "maker": written.maker})


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the questions into the run folder; items come sorted by id."""
    lines = (
        {"story_id": item.id, "questions": item["questions"], "maker": item["maker"]}
        for item in items
    )  # fmt: skip
    write_atomic(folder / QUESTIONS, jsonl_lines(lines))


PIPELINE = Pipeline(
    name="evaluator-questions",
    stages=tuple(f"{__package__}.{name}" for name in ("load_stories", "write_questions")),
    finish=f"{__name__}:finish",
    private=True,  # questions and answers about stories of a hidden test may be among them
)
