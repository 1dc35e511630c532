"""What must not stand in a generator's prompt: questions and accepted answers of the story.

A prompt is made of the texts that its plan may show, and of the words of its template. What else of the
record stands in it is a leak. An accepted answer may be in it only as far as the texts of the plan say it
anyhow, as a story that is asked about says its answers.
"""

from collections.abc import Iterator
from functools import cache

from ..errors import ConfigError
from ..evaluation.judging.leakage import Secret
from ..prompts.loader import prompt_source
from ..schemas.katha import StoryRecord
from ..schemas.text import contains_phrase, normalize_answer
from .plans import Plan, PlannedPanel


def leaks_of(record: StoryRecord, plan: Plan, panel: PlannedPanel) -> Iterator[str]:
    """Yield what of the questions stands in a prompt and in no text that the plan may show.

    A question counts from a run of six of its words on, an answer whole.
    """
    allowed = [normalize_answer(text) for text in (*panel.texts, _template(plan.prompt_id))]
    written = normalize_answer(panel.prompt)
    for number, question in enumerate(record.questions):
        secrets = [(f"questions[{number}].question", question.question)]
        secrets += [
            (f"questions[{number}].accepted_answers", answer)
            for answer in dict.fromkeys((question.gold_answer, *question.accepted_answers))
        ]
        for path, text in secrets:
            secret = Secret(path, normalize_answer(text))
            if not secret.text:
                continue
            shown = secret.shown_in(written) if path.endswith("question") else _whole(secret, written)
            if shown is not None and not any(contains_phrase(text, shown) for text in allowed):
                yield f"{path}: {shown}"


def check_panels(record: StoryRecord, plan: Plan, panels: tuple[PlannedPanel, ...]) -> None:
    """Check the prompts of a plan.

    Raises:
        ConfigError: something of a question stands in one of them.
    """
    for panel in panels:
        for leak in leaks_of(record, plan, panel):
            raise ConfigError(
                f"plan {plan.name}, {record.story_id}, scene {panel.scene}",
                what=f"its prompt gives away what judges are asked: {leak}",
                fix="a plan may show neither questions nor accepted answers; take the text out of the plan",
            )


def _whole(secret: Secret, written: str) -> str | None:
    return secret.text if contains_phrase(written, secret.text) else None


@cache
def _template(prompt_id: str) -> str:
    return prompt_source(prompt_id).decode("utf-8").partition("---#}")[2]
