"""Stage: a model answers the questions of a record from its text alone, without having seen an answer.

An item is a record of the draft or of the gold set. Its first stage reads them; the last writes the answers.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...builders.katha.checks.reading import read_answers
from ...builders.replies import ask, language
from ...engine.pipeline import Pipeline
from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import jsonl_lines, write_atomic

ANSWERS = "answers.jsonl"
"""What a finished run holds: one line per record that was answered."""
PROMPT = "katha/answer_questions"


class BlindSettings(ModelSettings):
    """Settings of the stage: who answers."""


SPEC = StageSpec(
    name="answer_blind",
    version=2,
    shape="map",
    reads=("role", "story", "scenes", "questions"),
    writes=("answers",),
    libraries=("jsonschema-rs",),
    settings=BlindSettings,
    asks=(PROMPT,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one short answer per question, null where the text is unclear; none without a model."""
    questions = item["questions"]
    if not questions or not tools.own(BlindSettings).models():
        return Made({"answers": []})
    answered = await ask(
        tools,
        PROMPT,
        lambda reply: read_answers(reply, len(questions)),
        (),
        0,
        language=language(item["story"]),
        scenes=item["scenes"],
        questions=questions,
    )
    return Made({"answers": [texts[0] if texts else None for texts in answered.value]})


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the answers into the run folder; items come sorted by id."""

    def lines() -> Iterator[dict[str, object]]:
        for item in items:
            yield {"role": item["role"], "story_id": item["story"]["id"], "answers": item["answers"]}

    write_atomic(folder / ANSWERS, jsonl_lines(lines()))


PIPELINE = Pipeline(
    name="audit-katha",
    stages=tuple(f"{__package__}.{name}" for name in ("load_questions", "answer_blind")),
    finish=f"{__name__}:finish",
    final_fields=("role", "story"),
    private=True,  # drafts may hold stories of a hidden test
)
